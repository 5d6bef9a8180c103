"""Slice: bounds as inputs and steps (opset 10), and negative axes (opset 11).

Before opset 10, a slice with computed bounds or with steps gathers the elements along each axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from opshift.adapters.core.adapter_table import adapter
from opshift.adapters.core.rewriter import Rewriter
from opshift.adapters.emit.cast import cast
from opshift.adapters.emit.indices import (
    INDICES_OPSET,
    add_to_negative_indices,
    dimension_scalar,
    nonnegative_axis,
)
from opshift.model.errors import CannotConvert
from opshift.model.node import Node, Tensor

MAX_CONSTANT_INDICES = 1 << 16
"""Largest dimension for which indices are emitted as a constant; for larger ones they are computed."""

BEYOND_ANY_SIZE = 2.0**62
"""An end beyond every dimension, which selects all elements."""

Bound = int | str
"""A number, or the name of a double scalar."""

ARITHMETIC_OPSET = 13
"""Opset of the emitted nodes, except Range, which is written for opset 11."""


class AxisSlice(NamedTuple):
    """The slice of one axis."""

    axis: int
    start: Bound
    end: Bound
    step: Bound


class SliceReach(NamedTuple):
    """The size of an axis, and the lowest and highest end that a slice of it can have, as double scalars."""

    size: str
    lowest: str
    highest: str


@adapter("Slice", 11, 10)
def make_slice_axes_nonnegative(node: Node, out: Rewriter) -> None:
    """Add the rank to negative `axes`."""
    axes = node.input(3)
    known = out.constant_value(axes)
    if not axes or (known is not None and all(axis >= 0 for axis in known.values)):
        out.replace(node)
        return
    if known is None:
        rank = out.emit("Size", [out.emit("Shape", [node.inputs[0]])])
        nonnegative = add_to_negative_indices(axes, rank, out.element_type(axes), out)
    else:
        values = tuple(nonnegative_axis(axis, node.inputs[0], out) for axis in known.values)
        nonnegative = out.tensor(Tensor(known.element_type, known.dims, values))
    out.replace(node, inputs=[*node.inputs[:3], nonnegative, *node.inputs[4:]])


@adapter("Slice", 10, 1)
def move_bounds_to_attributes(node: Node, out: Rewriter) -> None:
    """Move constant bounds with a step of 1 to attributes; for all other axes, gather the elements."""
    cuts = _axis_slices(node, out)
    plain = [cut for cut in cuts if cut.step == 1 and isinstance(cut.start, int) and isinstance(cut.end, int)]
    others = [cut for cut in cuts if cut not in plain]
    data = node.inputs[0]
    # Read before the Slice is emitted, because the shape of its output is unknown.
    indices = [_known_indices(cut, data, out) for cut in others]
    if plain or not others:
        data = out.fresh("slice") if others else node.outputs[0]
        axes, starts, ends, _ = zip(*plain, strict=True) if plain else ((),) * 4
        bounds = {"axes": axes, "starts": starts, "ends": ends}
        out.replace(node, inputs=node.inputs[:1], outputs=[data], attributes=bounds)
    _gather_slices(data, others, indices, node, out)


def _axis_slices(node: Node, out: Rewriter) -> list[AxisSlice]:
    """Return the slice of each axis.

    Raises:
        CannotConvert: The node has no axes input, and the number of bounds is unknown; or the rank of the
            data is needed and unknown.
    """
    starts, ends, axes, steps = (node.input(position) for position in range(1, 5))
    known = out.constant_value(axes)
    if axes and known is None:
        return _slices_of_computed_axes(node, out)
    if known is not None:
        numbers = tuple(nonnegative_axis(axis, node.inputs[0], out) for axis in known.values)
    else:
        numbers = tuple(range(_bound_count(starts, out)))
    return [
        AxisSlice(
            axis,
            _bound(starts, position, out),
            _bound(ends, position, out),
            _bound(steps, position, out) if steps else 1,
        )
        for position, axis in enumerate(numbers)
    ]


def _slices_of_computed_axes(node: Node, out: Rewriter) -> list[AxisSlice]:
    """Return a slice for every axis of the data: its bounds if `axes` contains it, else all elements."""
    data, starts, ends, axes = node.inputs[:4]
    cuts = []
    for axis in range(out.rank(data)):
        is_equal = out.emit("Equal", [axes, out.constant(axis, out.element_type(axes))], opset=INDICES_OPSET)
        mask = cast(is_equal, "double", out)
        start, end, step = (_masked_bound(each, mask, out) for each in (starts, ends, node.input(4)))
        # 1 for an axis that is not sliced: its start is 0, its end becomes BEYOND_ANY_SIZE and its step 1.
        is_whole = out.emit("Sub", [out.constant(1.0, "double"), _sum(mask, out)], opset=INDICES_OPSET)
        far_end = out.emit("Mul", [is_whole, out.constant(BEYOND_ANY_SIZE, "double")], opset=INDICES_OPSET)
        end, step = (
            out.emit("Add", pair, opset=INDICES_OPSET) for pair in ((end, far_end), (step, is_whole))
        )
        cuts.append(AxisSlice(axis, start, end, step))
    return cuts


def _masked_bound(bounds: str, mask: str, out: Rewriter) -> str:
    """Return the bound that a mask of ones and zeros selects, or 0; omitted steps are 1."""
    if not bounds:
        return _sum(mask, out)
    return _sum(out.emit("Mul", [cast(bounds, "double", out), mask], opset=INDICES_OPSET), out)


def _sum(numbers: str, out: Rewriter) -> str:
    return out.emit("ReduceSum", [numbers], opset=INDICES_OPSET, axes=[0], keepdims=0)


def _bound_count(bounds: str, out: Rewriter) -> int:
    count = out.known_dimension(bounds, 0)
    if count is None:
        raise CannotConvert(
            f"it has no axes input, and the length of {bounds!r} is unknown",
            remedy=f"add a value_info with the shape of {bounds!r}",
        )
    return count


def _bound(bounds: str, position: int, out: Rewriter) -> Bound:
    """Return one of the bounds: a number if it is constant, else the name of a double scalar."""
    known = out.constant_value(bounds)
    if known is not None:
        return int(known.values[position])
    bound = out.emit("Gather", [bounds, out.int64(position)], opset=INDICES_OPSET, axis=0)
    return cast(bound, "double", out)


def _known_indices(cut: AxisSlice, data: str, out: Rewriter) -> tuple[int, ...] | None:
    """Return the indices that an axis slice selects, or `None` if they are unknown or too many."""
    size = out.known_dimension(data, cut.axis)
    if size is None or size > MAX_CONSTANT_INDICES or any(isinstance(bound, str) for bound in cut[1:]):
        return None
    _, start, end, step = map(int, cut)
    if step < 0:
        # ONNX clamps the start of a backward slice to the first element; a Python slice would be empty.
        start = max(start, -size)
    return tuple(range(*slice(start, end, step).indices(size)))


def _gather_slices(
    data: str, cuts: list[AxisSlice], indices: list[tuple[int, ...] | None], node: Node, out: Rewriter
) -> None:
    """Emit one Gather per axis, with constant indices where they are known and computed ones elsewhere."""
    for cut, known in zip(cuts, indices, strict=True):
        outputs: Sequence[str] | int = node.outputs if cut is cuts[-1] else 1
        if known is None:
            data = gather_axis_slice(data, node.inputs[0], cut, outputs, out)
        else:
            data = out.emit("Gather", [data, out.int64(known)], outputs, axis=cut.axis)


def gather_axis_slice(
    data: str, whole: str, cut: AxisSlice, outputs: Sequence[str] | int, out: Rewriter
) -> str:
    """Gather the elements that a slice of one axis selects.

    Args:
        data: Value to gather from.
        whole: Value with the same size along the axis, from which the size is read.
        cut: Slice of the axis.
        outputs: Names of the outputs, or their number.
        out: The rewriter to emit with.
    """
    out = out.for_opset(ARITHMETIC_OPSET)
    reach = _slice_reach(cast(dimension_scalar(whole, cut.axis, out), "double", out), cut.step, out)
    start, end = (_nonnegative_bound(bound, reach.size, out) for bound in (cut.start, cut.end))
    start = _clamp(out.constant(0.0, "double"), start, reach.highest, out)
    end = _clamp(reach.lowest, end, reach.highest, out)
    indices = out.emit("Range", [start, end, _as_value(cut.step, out)], opset=11)
    return out.emit("Gather", [data, cast(indices, "int64", out)], outputs, axis=cut.axis)


def _slice_reach(size: str, step: Bound, out: Rewriter) -> SliceReach:
    """Return the range of ends: 0 to the size for a forward slice, -1 to the size - 1 for a backward one."""
    if isinstance(step, int):
        if step > 0:
            return SliceReach(size, out.constant(0.0, "double"), size)
        return SliceReach(
            size, out.constant(-1.0, "double"), _binary("Sub", size, out.constant(1.0, "double"), out)
        )
    backward = _is_negative(step, out)
    return SliceReach(size, out.emit("Neg", [backward]), _binary("Sub", size, backward, out))


def _binary(op_type: str, first: str, second: str, out: Rewriter) -> str:
    return out.emit(op_type, [first, second])


def _is_negative(value: str, out: Rewriter) -> str:
    """Return 1 if the value is negative and 0 otherwise, as a double."""
    return cast(_binary("Less", value, out.constant(0.0, "double"), out), "double", out)


def _nonnegative_bound(bound: Bound, size: str, out: Rewriter) -> str:
    """Return a bound with the size added if it is negative."""
    value = _as_value(bound, out)
    if isinstance(bound, int) and bound >= 0:
        return value
    return _binary("Add", value, _binary("Mul", _is_negative(value, out), size, out), out)


def _as_value(bound: Bound, out: Rewriter) -> str:
    return bound if isinstance(bound, str) else out.constant(float(bound), "double")


def _clamp(lowest: str, value: str, highest: str, out: Rewriter) -> str:
    """Return the value limited to the range from `lowest` to `highest`."""
    # Relu, because some runtimes implement it for doubles but not Min and Max.
    above = out.emit("Relu", [_binary("Sub", value, lowest, out)])
    below = out.emit("Relu", [_binary("Sub", highest, _binary("Add", lowest, above, out), out)])
    return _binary("Sub", highest, below, out)
