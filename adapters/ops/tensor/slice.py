"""Slice: bounds as inputs and steps (opset 10), and negative axes (opset 11).

Before opset 10, a slice with computed bounds or with steps gathers the elements along each axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor, adapter
from opshift.adapters.emit.cast import cast
from opshift.adapters.emit.expression import Expression
from opshift.adapters.emit.indices import (
    INDICES_OPSET,
    MAX_CONSTANT_INDICES,
    add_to_negative_indices,
    dimension_scalar,
    nonnegative_axis,
)

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
    for cut, known in zip(others, indices, strict=True):
        outputs: Sequence[str] | int = node.outputs if cut is others[-1] else 1
        if known is None:
            data = _gather_computed(data, node.inputs[0], cut, outputs, out)
        else:
            data = out.emit("Gather", [data, out.int64(known)], outputs, axis=cut.axis)


def _axis_slices(node: Node, out: Rewriter) -> list[AxisSlice]:
    """Return the slice of each axis; refuse bounds whose axes depend on an unknown length or rank."""
    starts, ends, axes, steps = (node.input(position) for position in range(1, 5))
    for name in (starts, ends, axes, steps):
        if out.known_rank(name) == 0:
            raise CannotConvert(
                f"{name!r} is a scalar, but Slice requires lists", remedy="reshape it to one dimension"
            )
    known = out.constant_value(axes)
    if axes and known is None:
        return _slices_of_computed_axes(node, out)
    if known is not None:
        numbers = [nonnegative_axis(axis, node.inputs[0], out) for axis in known.values]
    else:
        count = out.known_dimension(starts, 0)
        if count is None:
            raise CannotConvert(
                f"it has no axes input, and the length of {starts!r} is unknown",
                remedy=f"add a value_info with the shape of {starts!r}",
            )
        numbers = list(range(count))
    return [
        AxisSlice(axis, *(_bound(bounds, position, out) for bounds in (starts, ends, steps)))
        for position, axis in enumerate(numbers)
    ]


def _slices_of_computed_axes(node: Node, out: Rewriter) -> list[AxisSlice]:
    """Return a slice for every axis of the data: its bounds if `axes` contains it, else all elements."""
    out = out.for_opset(INDICES_OPSET)
    data, starts, ends, axes = node.inputs[:4]
    cuts = []
    for axis in range(out.rank(data)):
        is_equal = out.emit("Equal", [axes, out.constant(axis, out.element_type(axes))])
        mask = cast(is_equal, "double", out)
        start, end, step = (_masked_bound(each, mask, out) for each in (starts, ends, node.input(4)))
        # 1 for an axis that is not sliced: its start is 0, its end becomes BEYOND_ANY_SIZE and its step 1.
        is_whole = 1 - _sum(mask, out)
        far_end = is_whole * BEYOND_ANY_SIZE
        cuts.append(AxisSlice(axis, start.name, (end + far_end).name, (step + is_whole).name))
    return cuts


def _masked_bound(bounds: str, mask: str, out: Rewriter) -> Expression:
    """Return the bound that a mask of ones and zeros selects, or 0; omitted steps are 1."""
    return _sum(out.emit("Mul", [cast(bounds, "double", out), mask]) if bounds else mask, out)


def _sum(numbers: str, out: Rewriter) -> Expression:
    return Expression(out.emit("ReduceSum", [numbers], axes=[0], keepdims=0), "double", out)


def _bound(bounds: str, position: int, out: Rewriter) -> Bound:
    """Return one of the bounds, or a step, which is 1 by default."""
    if not bounds:
        return 1
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


def _gather_computed(
    data: str, whole: str, cut: AxisSlice, outputs: Sequence[str] | int, out: Rewriter
) -> str:
    """Gather the elements that a slice of one axis selects; `whole` provides the size of the axis."""
    out = out.for_opset(ARITHMETIC_OPSET)
    size = Expression(cast(dimension_scalar(whole, cut.axis, out), "double", out), "double", out)
    # The ends of a forward slice reach from 0 to the size, those of a backward slice from -1 to the size - 1.
    if isinstance(cut.step, str):
        backward = _is_negative(Expression(cut.step, "double", out))
        lowest, highest = -backward, size - backward
    elif cut.step > 0:
        lowest, highest = size.constant(0), size
    else:
        lowest, highest = size.constant(-1), size - 1
    start, end = (_nonnegative_bound(bound, size, out) for bound in (cut.start, cut.end))
    start = _clamp(size.constant(0), start, highest)
    end = _clamp(lowest, end, highest)
    step = cut.step if isinstance(cut.step, str) else size.constant(cut.step).name
    indices = out.emit("Range", [start.name, end.name, step], opset=11)
    return out.emit("Gather", [data, cast(indices, "int64", out)], outputs, axis=cut.axis)


def _is_negative(value: Expression) -> Expression:
    return value.apply("Less", 0).cast("double")


def _nonnegative_bound(bound: Bound, size: Expression, out: Rewriter) -> Expression:
    """Return a bound with the size added if it is negative."""
    value = Expression(bound, "double", out) if isinstance(bound, str) else size.constant(bound)
    if isinstance(bound, int) and bound >= 0:
        return value
    return value + _is_negative(value) * size


def _clamp(lowest: Expression, value: Expression, highest: Expression) -> Expression:
    # Relu, because some runtimes implement it for doubles but not Min and Max.
    above = (value - lowest).apply("Relu")
    return highest - (highest - (lowest + above)).apply("Relu")
