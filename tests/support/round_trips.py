"""Round trips of a node: it is expanded for an older opset, converted back, and recognized."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import onnx

import opshift
from opshift.registry.models import OperatorVersion
from support.cases import own_cases, published_cases

if TYPE_CHECKING:
    from support.published import Case

REGISTRY = opshift.default_registry()

UNRECOGNIZED = {
    "AffineGrid": "its expansion does not read the numbers of samples and channels in its second input",
    "CastLike": "its expansion is a Cast, and any value of the same type could be the second input",
    "CenterCropPad": "for constant sizes, its expansion is any Slice or Pad",
    "Clip": "its expansion without bounds is an Identity, and other opsets have Clip",
    "SequenceMap": "its attribute is a subgraph, so a pattern would have to contain any nodes",
}
"""Operators with an expansion that does not determine the node, and the reason."""

SYNONYMS = {b"swish": b"silu"}
"""Attribute values with the same meaning: an expansion does not show which of them the node had."""

AXES = ("axis", "axes")
"""Attributes that an expansion may count from the other end."""


def function_versions() -> Iterator[OperatorVersion]:
    """Yield the function versions of the default domain."""
    for operator in REGISTRY.operators("ai.onnx"):
        yield from (each for each in operator.versions if each.has_function)


def cases_of(version: OperatorVersion) -> list[Case]:
    """Return the cases of a version with one node."""
    opset = newest_opset_of(version)
    cases = [*own_cases(version, opset, -1), *published_cases(version, opset)]
    return [each for each in cases if len(each.model.graph.node) == 1]


def newest_opset_of(version: OperatorVersion) -> int:
    """Return the last opset with a version."""
    definition = REGISTRY.operator(version.name)
    assert definition is not None
    later = [each.since_version for each in definition.versions if each.since_version > version.since_version]
    return min(later) - 1 if later else REGISTRY.newest_opset()


def expanded(
    model: onnx.ModelProto, version: OperatorVersion, *, to_oldest: bool = False
) -> onnx.ModelProto | None:
    """Return a model without the operator, at the nearest or oldest opset, or as its function body."""
    definition = REGISTRY.operator(version.name)
    assert definition is not None
    first = definition.versions[0].since_version
    for target in range(1, first) if to_oldest else range(first - 1, 0, -1)[:1]:
        with suppress(opshift.ConversionRefused):
            return opshift.convert_version(model, target)
    with suppress(opshift.ConversionRefused):
        return opshift.convert_version(model, None, without=f"ai.onnx.{version.name}")
    return None


def round_trip(case: Case, version: OperatorVersion, *, to_oldest: bool = False) -> bool | None:
    """Return whether a node is recognized with equal attributes; `None` if nothing can replace it."""
    low = expanded(case.model, version, to_oldest=to_oldest)
    if low is None or any(node.op_type == version.name for node in low.graph.node):
        return None
    opset = newest_opset_of(version)
    high = opshift.convert_version(low, {"ai.onnx": opset}, recognize=version.name)
    found = [node for node in high.graph.node if node.op_type == version.name]
    outputs = [name for node in high.graph.node for name in node.output if name]
    if len(found) != 1 or len(outputs) != len(set(outputs)):
        return False
    shape = case.model.graph.input[0].type.tensor_type.shape
    (before,), (after,) = case.model.graph.node, found
    rank = max(len(shape.dim), 1)
    return _attributes_of(before, version, rank) == _attributes_of(after, version, rank)


def _attributes_of(node: onnx.NodeProto, version: OperatorVersion, rank: int) -> dict[str, object]:
    """Return the attributes of a node with defaults, and with axes counted from the start."""
    found: dict[str, object] = {
        name: each.default.encode() if isinstance(each.default, str) else each.default
        for name, each in version.attributes.items()
        if each.default is not None
    }
    for each in node.attribute:
        value = onnx.helper.get_attribute_value(each)
        if isinstance(value, bytes):
            value = SYNONYMS.get(value, value)
        found[each.name] = tuple(value) if isinstance(value, list) else value
    for name in AXES:
        axis = found.get(name)
        if isinstance(axis, int):
            found[name] = axis % rank
        elif isinstance(axis, tuple):
            found[name] = tuple(each % rank for each in axis)
    return found
