"""Models with one node of com.microsoft, and the comparison with the standard operators that replace it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import helper

from opshift import convert_version, default_registry
from opshift.inference.facts import OperatorStatus
from opshift.inference.scope import Scope
from opshift.inference.survey import survey
from opshift.model.element_types import BY_NUMBER
from opshift.model.operator_ids import opset_imports
from opshift.registry.steps import Allow
from support.execution import Array, Feeds, assert_equal, run
from support.forms import in_form

DOMAIN = "com.microsoft"

UNKNOWN_TYPES = {"MatMulInteger16", "ReduceSumInteger", "QGemm"}
"""Operators with results of a type that no other parameter needs to have."""


class NodeCase(NamedTuple):
    """A node of com.microsoft and its inputs, `None` for an omitted one."""

    op_type: str
    inputs: Sequence[Array | None]
    outputs: Sequence[Any]
    attributes: dict[str, Any]


def case(op_type: str, *inputs: Any, outputs: Sequence[Any] = (), **attributes: Any) -> NodeCase:
    """Return a case; `outputs` are types of outputs, `None` for an omitted one, by default the first type."""
    arrays = [None if each is None else np.asarray(each) for each in inputs]
    types = outputs or [next(each.dtype for each in arrays if each is not None)]
    return NodeCase(op_type, arrays, types, attributes)


def model_of(given: NodeCase, form: str = "fed", opset: int = 17) -> tuple[onnx.ModelProto, Feeds]:
    """Return a model of the node in one of the forms of `support.forms`, and its feeds."""
    feeds = {f"x{index}": array for index, array in enumerate(given.inputs) if array is not None}
    names = [f"x{index}" if array is not None else "" for index, array in enumerate(given.inputs)]
    outputs = {
        f"y{index}": helper.np_dtype_to_tensor_dtype(np.dtype(each))
        for index, each in enumerate(given.outputs)
        if each is not None
    }
    results = [f"y{index}" if each is not None else "" for index, each in enumerate(given.outputs)]
    node = helper.make_node(given.op_type, names, results, name="node", domain=DOMAIN, **given.attributes)
    model, fed = in_form(form, [node], feeds, outputs, opset)
    for proto in (model, *model.functions):
        proto.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    return model, fed


def without_microsoft(model: onnx.ModelProto, opset: int, allow: Sequence[Allow] = ()) -> onnx.ModelProto:
    """Return the model with standard operators of an opset only."""
    result = convert_version(model, opset, without=DOMAIN, allow=allow)
    assert DOMAIN not in {each.domain for each in result.opset_import}
    assert f'"{DOMAIN}"' not in str(result)
    return result


def assert_replaced(
    given: NodeCase,
    form: str = "fed",
    opset: int = 17,
    *,
    expected: Sequence[Array] | None = None,
    tolerance: float = 1e-5,
    allow: Sequence[Allow] = (),
) -> onnx.ModelProto:
    """Assert that standard operators compute the same as the kernel, or as expected; return the model.

    Integers must be equal, or differ by 1 if an approximation is allowed.
    """
    model, feeds = model_of(given, form)
    result = without_microsoft(model, opset, allow)
    found = run(result, feeds)
    wanted = run(model, feeds) if expected is None else expected
    assert_inferred(model, wanted, is_required=form == "fed")
    for actual, other in zip(found, wanted, strict=True):
        if allow and other.dtype.kind in "iu":
            actual, other = actual.astype(int), other.astype(int)
            assert np.abs(actual - other).max() <= 1
            assert (actual != other).mean() < 0.02
        else:
            assert_equal([actual], [other], 0 if other.dtype.kind in "iub" else tolerance)
    return result


def assert_inferred(model: onnx.ModelProto, computed: Sequence[Array], *, is_required: bool) -> None:
    """Assert that inferred element types and shapes are those of computed outputs, or unknown.

    If they are required, the type of the first output must be known, and ranks if there is a shape rule.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.output[:]
    scope = Scope(copy.graph, opset_imports(copy.opset_import), default_registry(), {})
    survey(scope, "graph", lambda node, inner: OperatorStatus(has_step=False, has_graphs=True))
    for position, (output, array) in enumerate(zip(model.graph.output, computed, strict=True)):
        element_type, shape = scope.element_type(output.name), scope.shape(output.name)
        has_rule = any(
            each.shape for node in copy.graph.node if (each := scope.operator(node.op_type, node.domain))
        )
        is_typed = UNKNOWN_TYPES.isdisjoint(each.op_type for each in copy.graph.node)
        if (is_required and is_typed and not position) or element_type is not None:
            assert element_type == BY_NUMBER[helper.np_dtype_to_tensor_dtype(array.dtype)].name
        if shape is not None:
            assert len(shape) == array.ndim
            assert all(size in (None, actual) for size, actual in zip(shape, array.shape, strict=True))
        assert shape is not None or not (is_required and has_rule)
