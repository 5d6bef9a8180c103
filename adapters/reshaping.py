"""Reshape: the attribute `allowzero` (opset 14), with which a 0 in the shape is an empty dimension.

Without it, a 0 copies the dimension of the input.
"""

from __future__ import annotations

from opshift.adapters.node import Node, Tensor
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME

FILLERS = {"string": b"", "bool": False}
"""Temporary elements by element type; all other types use 0."""


@adapter("Reshape", 14, 13)
def zero_copies_a_size(node: Node, out: Rewriter) -> None:
    """Drop `allowzero` if the new shape has no 0; otherwise emit an empty constant, or fill and slice."""
    attributes = node.without("allowzero")
    data, shape = node.inputs
    if not node.attribute("allowzero", 0) or _has_no_zero(data, shape, out):
        out.become(node, attributes=attributes)
        return
    known = out.constant_value(shape)
    if known is None:
        _fill_and_slice(node, out)
        return
    # A constant shape with a 0 means that the result is empty, whatever the data is.
    sizes = tuple(max(size, 0) for size in known.values)
    empty = out.tensor(Tensor(out.element_type(data), sizes, ()))
    out.become(node, op_type="Identity", inputs=[empty], attributes={})


def _has_no_zero(data: str, shape: str, out: Rewriter) -> bool:
    """Return whether the new shape certainly has no 0: it is a constant, or the data is not empty."""
    known = out.constant_value(shape)
    if known is not None:
        return 0 not in known.values
    sizes = out.shape(data)
    return sizes is not None and all(sizes)


def _fill_and_slice(node: Node, out: Rewriter) -> None:
    """Add elements to empty data so that every dimension is at least 1, reshape, and slice them off."""
    data, shape = node.inputs
    zero, one = (out.constant([each], "int64") for each in (0, 1))
    is_empty = _equal_as_int64(out.emit("Size", [data]), zero, out)
    filled_shape = out.emit("Add", [shape, _equal_as_int64(shape, zero, out)])
    # Abs counts the inferred dimension, -1, as 1.
    count = out.emit("ReduceProd", [out.emit("Abs", [filled_shape])], axes=[0], keepdims=1)
    missing = out.emit("Mul", [is_empty, count])
    element_type = out.element_type(data)
    element = out.constant([FILLERS.get(element_type, 0)], element_type)
    filler = out.emit("Expand", [element, missing])
    flat = out.emit("Reshape", [data, out.constant([-1], "int64")])
    filled = out.emit("Reshape", [out.emit("Concat", [flat, filler], axis=0), filled_shape])
    # An inferred dimension ends at 0 if the data is empty, and at the largest int32 (no limit) otherwise.
    limit = out.emit("Mul", [out.emit("Sub", [one, is_empty]), out.constant([2**31 - 1], "int64")])
    is_inferred = _equal_as_int64(shape, out.constant([-1], "int64"), out)
    ends = out.emit("Add", [shape, out.emit("Mul", [is_inferred, out.emit("Add", [limit, one])])])
    out.emit("Slice", [filled, out.emit("Sub", [shape, shape]), ends], node.outputs)


def _equal_as_int64(values: str, number: str, out: Rewriter) -> str:
    """Return 1 where a value equals the number, and 0 elsewhere."""
    return out.emit("Cast", [out.emit("Equal", [values, number])], to=BY_NAME["int64"].number)
