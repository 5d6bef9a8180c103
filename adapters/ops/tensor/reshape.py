"""Reshape, Squeeze, Unsqueeze, Shape and Identity.

`axes` is an input since opset 13, `allowzero` exists since 14, `start` and `end` of Shape since 15, and
Identity of sequences since 14.
"""

from __future__ import annotations

from opshift.adapters import Node, Rewriter, Tensor, adapter
from opshift.adapters.emit.indices import (
    axis_count,
    count_axes,
    kept_axes_mask,
    require_nonempty,
    shape_without_axes,
)
from opshift.adapters.emit.shapes import SLICE_END, reshape

FILL_VALUES: dict[str, bytes | bool] = {"string": b"", "bool": False}
"""Temporary elements by element type; all other types use 0."""


@adapter("Identity", 14, 13)
def insert_and_erase_element(node: Node, out: Rewriter) -> None:
    """Copy a sequence by appending an empty tensor and erasing it; leave Identity of a tensor unchanged."""
    known_type = out.known_element_type(node.inputs[0]) or ""
    if not known_type.startswith("seq("):
        out.replace(node)
        return
    element_type = known_type.removeprefix("seq(tensor(").removesuffix("))")
    empty = out.tensor(Tensor(element_type, (0,), ()))
    # Without a position, SequenceInsert appends and SequenceErase removes the last element.
    out.emit("SequenceErase", [out.emit("SequenceInsert", [node.inputs[0], empty])], node.outputs)


@adapter("Shape", 15, 13)
def slice_whole_shape(node: Node, out: Rewriter) -> None:
    """Emit the whole shape and a Slice from `start` to `end`."""
    rank = out.known_rank(node.inputs[0])
    start, end = (_nonnegative_bound(node.attribute(name), rank) for name in ("start", "end"))
    if not start and end in (None, rank):
        out.replace(node, attributes={})
        return
    whole = out.fresh("shape")
    out.replace(node, outputs=[whole], attributes={})
    # With an unknown rank, Slice resolves negative and large bounds at run time as Shape does.
    bounds = [out.int64([bound]) for bound in (start or 0, SLICE_END if end is None else end)]
    out.emit("Slice", [whole, *bounds, out.int64([0])], node.outputs)


def _nonnegative_bound(bound: int | None, rank: int | None) -> int | None:
    """Return the bound clamped to the range 0 to `rank`, or unchanged if the rank is unknown."""
    if bound is None or rank is None:
        return bound
    return min(max(bound + rank if bound < 0 else bound, 0), rank)


@adapter("Reshape", 14, 13)
def remove_allowzero(node: Node, out: Rewriter) -> None:
    """Drop `allowzero` if the new shape has no 0; otherwise emit an empty constant, or fill and slice."""
    attributes = node.without("allowzero")
    data, shape = node.inputs
    known = out.constant_value(shape)
    # Data that is not empty cannot get a shape with a 0.
    nonzero_sizes = known.values if known is not None else out.shape(data)
    if not node.attribute("allowzero", 0) or (nonzero_sizes is not None and all(nonzero_sizes)):
        out.replace(node, attributes=attributes)
    elif known is None:
        _fill_and_slice(node, out)
    else:
        # A constant shape with a 0 means that the result is empty, whatever the data is.
        sizes = tuple(max(size, 0) for size in known.values)
        empty = out.tensor(Tensor(out.element_type(data), sizes, ()))
        out.replace(node, op_type="Identity", inputs=[empty], attributes={})


def _fill_and_slice(node: Node, out: Rewriter) -> None:
    """Add elements to empty data so that every dimension is at least 1, reshape, and slice them off."""
    data, shape = node.inputs
    zero, one = (out.int64([each]) for each in (0, 1))
    is_empty = _equal_as_int64(out.emit("Size", [data]), zero, out)
    filled_shape = out.emit("Add", [shape, _equal_as_int64(shape, zero, out)])
    # Abs counts the inferred dimension, -1, as 1.
    count = out.emit("ReduceProd", [out.emit("Abs", [filled_shape])], axes=[0], keepdims=1)
    missing = out.emit("Mul", [is_empty, count])
    element_type = out.element_type(data)
    element = out.constant([FILL_VALUES.get(element_type, 0)], element_type)
    filler = out.emit("Expand", [element, missing])
    flat = reshape(data, (-1,), out)
    filled = out.emit("Reshape", [out.emit("Concat", [flat, filler], axis=0), filled_shape])
    # An inferred dimension ends at 0 if the data is empty, and at the largest int32 (no limit) otherwise.
    limit = out.emit("Mul", [out.emit("Sub", [one, is_empty]), out.int64([2**31 - 1])])
    is_inferred = _equal_as_int64(shape, out.int64([-1]), out)
    ends = out.emit("Add", [shape, out.emit("Mul", [is_inferred, out.emit("Add", [limit, one])])])
    out.emit("Slice", [filled, out.emit("Sub", [shape, shape]), ends], node.outputs)


def _equal_as_int64(values: str, number: str, out: Rewriter) -> str:
    """Return 1 where a value equals the number, and 0 elsewhere."""
    return out.cast(out.emit("Equal", [values, number]), "int64")


@adapter(("Squeeze", "Unsqueeze"), 13, 11)
def move_axes_to_attribute(node: Node, out: Rewriter) -> None:
    """Move constant axes to the attribute; for computed axes, emit a Reshape to a computed shape."""
    data, axes = node.inputs[0], node.input(1)
    known = out.constant_value(axes)
    if not axes or known is not None:
        # Some model checkers require axes in ascending order.
        attributes = {} if known is None else {"axes": sorted(known.values)}
        out.replace(node, inputs=[data], attributes=attributes)
        return
    require_nonempty(data, axes, out)
    count = axis_count(axes, out)
    if count is None or (count == 0 and node.op_type == "Squeeze"):
        # Always raises: the axes are not a constant, and the rank of the output depends on their count.
        out.require_constant(axes, "input axes")
    if node.op_type == "Squeeze":
        shape = shape_without_axes(data, count_axes(axes, out.rank(data), out), out)
    else:
        shape = _unsqueezed_shape(data, axes, out.rank(data), count or 0, out)
    out.emit("Reshape", [data, shape], node.outputs)


def _unsqueezed_shape(data: str, axes: str, rank: int, count: int, out: Rewriter) -> str:
    """Return the shape of data of a known rank, with 1 inserted at `count` axes."""
    ones = out.int64([1] * (rank + count))
    if not rank:
        return ones
    remaining = kept_axes_mask(count_axes(axes, rank + count, out), out)
    data_axes = reshape(out.emit("NonZero", [remaining]), (-1,), out)
    return out.emit("ScatterElements", [ones, data_axes, out.emit("Shape", [data])], axis=0)
