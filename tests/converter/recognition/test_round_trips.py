"""Round trips: a node is expanded for an old opset, converted back, and recognized with equal attributes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import onnx
import pytest
from support.cases import own_cases, published_cases

import opshift
from opshift.registry.models import OperatorVersion

if TYPE_CHECKING:
    from support.published import Case

REGISTRY = opshift.default_registry()

UNRECOGNIZED = {
    "AffineGrid": "its expansion does not read the number of channels in its second input",
    "CastLike": "its expansion is a Cast, which does not read the second input",
    "CenterCropPad": "its expansion depends on the numbers in its second input",
    "Clip": "its expansion without bounds is an Identity, and other opsets have Clip",
    "LinearAttention": "its expansion is a Scan or Loop with a subgraph",
    "SequenceMap": "its expansion is a Loop with a subgraph",
}
"""Operators with an expansion that does not determine the node, and the reason."""

AXES = ("axis",)
"""Attributes that an expansion may count from the other end."""


def function_versions() -> Iterator[Any]:
    """Yield the function versions of the default domain."""
    for operator in REGISTRY.operators("ai.onnx"):
        for version in operator.versions:
            if version.has_function and operator.name not in UNRECOGNIZED:
                marks = [] if operator.name in ("Gelu", "Mish", "Swish", "Softsign") else [pytest.mark.full]
                yield pytest.param(version, id=str(version.id), marks=marks)


def newest_opset_of(version: OperatorVersion) -> int:
    """Return the last opset with a version."""
    definition = REGISTRY.operator(version.name)
    assert definition is not None
    later = [each.since_version for each in definition.versions if each.since_version > version.since_version]
    return min(later) - 1 if later else REGISTRY.newest_opset()


def expanded(model: onnx.ModelProto, version: OperatorVersion) -> onnx.ModelProto | None:
    """Return a model without the operator, at the nearest older opset or as its function body."""
    definition = REGISTRY.operator(version.name)
    assert definition is not None
    first = definition.versions[0].since_version
    for target in (first - 1, None):
        without = () if target else (f"ai.onnx.{version.name}",)
        if target != 0:
            with suppress(opshift.ConversionRefused):
                return opshift.convert_version(model, target, without=without)
    return None


def attributes_of(node: onnx.NodeProto, version: OperatorVersion, rank: int) -> dict[str, object]:
    """Return the attributes of a node with defaults, and with axes counted from the start."""
    found: dict[str, object] = {
        name: each.default.encode() if isinstance(each.default, str) else each.default
        for name, each in version.attributes.items()
        if each.default is not None
    }
    for each in node.attribute:
        value = onnx.helper.get_attribute_value(each)
        found[each.name] = tuple(value) if isinstance(value, list) else value
    for name in AXES:
        axis = found.get(name)
        if isinstance(axis, int):
            found[name] = axis % rank
    return found


def round_trip(case: Case, version: OperatorVersion) -> bool | None:
    """Return whether a node is recognized with equal attributes; `None` if no other operators express it."""
    low = expanded(case.model, version)
    if low is None or any(node.op_type == version.name for node in low.graph.node):
        return None
    opset = newest_opset_of(version)
    high = opshift.convert_version(low, {"ai.onnx": opset}, recognize=version.name)
    found = [node for node in high.graph.node if node.op_type == version.name]
    if len(found) != 1:
        return False
    shape = case.model.graph.input[0].type.tensor_type.shape
    (before,), (after,) = case.model.graph.node, found
    rank = max(len(shape.dim), 1)
    return attributes_of(before, version, rank) == attributes_of(after, version, rank)


MINIMUM = {"Attention": 0.97, "CausalConvWithState": 0.84, "Range": 0.75}
"""Share of the cases that are recognized, if not all are.

A few nodes of Attention combine more attributes than a pattern, and both `silu` and `swish` are the same
activation of CausalConvWithState. No pattern of Range has the casts of int32.
"""


@pytest.mark.every_case
@pytest.mark.parametrize("version", list(function_versions()))
def test_expansion_is_recognized(version: OperatorVersion) -> None:
    opset = newest_opset_of(version)
    cases = [*own_cases(version, opset, -1), *published_cases(version, opset)][:40]
    results = [round_trip(case, version) for case in cases if len(case.model.graph.node) == 1]
    expressed = [each for each in results if each is not None]
    assert sum(expressed) >= MINIMUM.get(version.name, 1.0) * len(expressed)


def test_reasons_are_needed() -> None:
    functions = {each.name for each in REGISTRY.operators("ai.onnx") if each.is_recognizable}
    assert UNRECOGNIZED.keys() <= functions
    assert MINIMUM.keys() <= functions
