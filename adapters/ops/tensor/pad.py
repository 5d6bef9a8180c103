"""Pad: pads and value as attributes or inputs (opset 11), `axes` (opset 18) and the mode `wrap` (opset 19).

Without an older equivalent, elements are gathered along each axis by computed indices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor, adapter
from opshift.adapters.core.type_guard import wider_type
from opshift.adapters.emit.cast import IEEE_FLOAT_TYPES
from opshift.adapters.emit.expression import Expression
from opshift.adapters.emit.shapes import computed_dimension
from opshift.model.element_types import round_to_float32

WIDER_TYPES = ("tensor(float)", "tensor(double)")
"""The types to cast other element types to before opset 11."""

PADDING_OPSET = 11
"""Opset of the emitted index arithmetic: the first with Range."""


class PaddedPositions(NamedTuple):
    """Positions along a padded axis, as int64 lists."""

    positions: Expression
    """Position of each output element relative to the first kept element; others are padding."""
    first: Expression
    """Index of the first element that is not cropped."""
    length: Expression
    """Number of elements that are not cropped."""
    size: Expression
    """Number of elements before the axis is padded."""


@adapter("Pad", 19, 18)
def gather_wrapped_elements(node: Node, out: Rewriter) -> None:
    """For the mode `wrap`, gather along each padded axis with indices modulo its size."""
    if node.attribute("mode", b"constant") != b"wrap":
        out.replace(node)
        return
    axes = _padded_axes(node, out)
    pads = out.constant_value(node.inputs[1])
    value = node.inputs[0]
    if pads is None:
        value = _gather_with_computed_pads(value, node.inputs[1], axes, out)
    else:
        for axis, before, after in zip(axes, pads.values, pads.values[len(axes) :], strict=False):
            if before or after:
                indices = _indices_along(node, axis, before, after, out)
                value = out.emit("Gather", [value, indices], axis=axis)
    out.emit("Identity", [value], node.outputs)


@adapter("Pad", 18, 13)
def expand_pads_to_all_axes(node: Node, out: Rewriter) -> None:
    """Drop `axes`, and add pads of 0 for all other dimensions."""
    data, pads, axes = node.input(0), node.input(1), node.input(3)
    inputs = node.inputs[:3] if node.input(2) else node.inputs[:2]
    if axes:
        inputs = (data, _pads_of_all_axes(data, pads, axes, out), *inputs[2:])
    out.replace(node, inputs=inputs)


@adapter("Pad", 11, 2)
def move_pads_and_value_to_attributes(node: Node, out: Rewriter) -> None:
    """Move pads and value to attributes if they are constant and float32 holds the value; else use Gather."""
    pads = out.constant_value(node.input(1))
    element_type = out.element_type(node.inputs[0])
    wider: str | None = element_type
    if element_type not in IEEE_FLOAT_TYPES:
        wider = wider_type(element_type, WIDER_TYPES, "order")
    is_filled = node.attribute("mode", b"constant") == b"constant" and bool(node.input(2))
    number = _float32_value(out.constant_value(node.input(2))) if is_filled else 0.0
    if pads is None or wider is None or number is None:
        _gather_padded(node, out)
        return
    value = {"value": number} if is_filled else {}
    attributes = {**node.attributes, "pads": pads.values, **value}
    if wider == element_type:
        out.replace(node, inputs=node.inputs[:1], attributes=attributes)
        return
    wide = out.cast(node.inputs[0], wider, opset=10)
    padded = out.fresh("pad")
    out.replace(node, inputs=[wide], outputs=[padded], attributes=attributes)
    out.cast(padded, element_type, node.outputs, opset=10)


@adapter("Pad", 2, 1)
def rename_pads_to_paddings(node: Node, out: Rewriter) -> None:
    """Rename `pads` to `paddings`; negative pads, which crop, are refused."""
    pads: Sequence[int] = node.attribute("pads")
    if any(pad < 0 for pad in pads):
        raise CannotConvert(
            f"pads is {list(pads)}; Pad-1 does not support negative pads", remedy="crop with a Slice"
        )
    out.replace(node, attributes={**node.without("pads"), "paddings": pads})


def _padded_axes(node: Node, out: Rewriter) -> tuple[int, ...]:
    """Return the padded axes in the order of `pads`."""
    if node.input(3):
        axes = out.require_constant(node.input(3), "input axes").values
        # Only negative axes need the rank, which may be unknown.
        rank = out.rank(node.inputs[0]) if any(axis < 0 for axis in axes) else 0
        return tuple(axis + rank if axis < 0 else axis for axis in axes)
    count = out.known_dimension(node.inputs[1], 0)
    return tuple(range(out.rank(node.inputs[0]) if count is None else count // 2))


def _gather_with_computed_pads(value: str, pads: str, axes: tuple[int, ...], out: Rewriter) -> str:
    view = out.for_opset(PADDING_OPSET)
    for position, axis in enumerate(axes):
        axis_pads = _pads_of_axis(pads, position, len(axes), view)
        indices = _wrapped_indices(_padded_positions(value, axis_pads, axis, view))
        value = out.emit("Gather", [value, indices], axis=axis)
    return value


def _pads_of_axis(pads: str, position: int, count: int, out: Rewriter) -> list[str]:
    """Return the pads before and after one of `count` axes, each as a list of one element."""
    return [out.emit("Gather", [pads, out.int64([each])], axis=0) for each in (position, count + position)]


def _wrapped_indices(padded: PaddedPositions) -> str:
    """Return the indices for the mode `wrap`: positions modulo the number of kept elements."""
    return (padded.positions.apply("Mod", padded.length) + padded.first).name


def _padded_positions(value: str, pads: Sequence[str], axis: int, out: Rewriter) -> PaddedPositions:
    """Return the positions along an axis, given the pads at its start and end, as lists of one element.

    Negative pads crop. The rewriter is one for `PADDING_OPSET`.
    """
    before, after = (Expression(pad, "int64", out, rank=1) for pad in pads)
    first, last = _max_with_zero(-before), _max_with_zero(-after)
    size = Expression(computed_dimension(value, axis, out), "int64", out, rank=1)
    length = size - first - last
    bounds = -_max_with_zero(before), length + _max_with_zero(after)
    scalars = [out.emit("Squeeze", [bound.name], axes=[0]) for bound in bounds]
    positions = Expression(out.emit("Range", [*scalars, out.int64(1)]), "int64", out, rank=1)
    return PaddedPositions(positions, first, length, size)


def _max_with_zero(value: Expression) -> Expression:
    # (x + |x|) / 2, because Max does not support integers before opset 12.
    return (value + abs(value)) / 2


def _indices_along(node: Node, axis: int, before: int, after: int, out: Rewriter) -> str:
    """Return the indices to gather along an axis; negative pads crop before the rest is repeated."""
    size = out.known_dimension(node.inputs[0], axis)
    if size is None:
        out = out.for_opset(PADDING_OPSET)
        lists = [out.int64([pad]) for pad in (before, after)]
        return _wrapped_indices(_padded_positions(node.inputs[0], lists, axis, out))
    kept = range(max(-before, 0), size - max(-after, 0))
    if not kept:
        raise CannotConvert(f"dimension {axis} is empty, so mode 'wrap' has no elements to repeat")
    count = len(kept)
    out.require_elements(count + max(before, 0) + max(after, 0))
    indices = [kept[position % count] for position in range(-max(before, 0), count + max(after, 0))]
    return out.int64(indices)


def _pads_of_all_axes(data: str, pads: str, axes: str, out: Rewriter) -> str:
    """Return the pads of all dimensions, given the pads of some axes."""
    rank, known_pads, known_axes = out.known_rank(data), out.constant_value(pads), out.constant_value(axes)
    if rank is not None and known_pads is not None and known_axes is not None:
        full = [0] * (2 * rank)
        count = len(known_axes.values)
        for position, axis in enumerate(known_axes.values):
            full[axis % rank] = known_pads.values[position]
            full[rank + axis % rank] = known_pads.values[count + position]
        return out.int64(full)
    if rank is None:
        shape_of_shape = out.emit("Shape", [out.emit("Shape", [data])])
        zeros = out.emit("ConstantOfShape", [shape_of_shape], value=Tensor("int64", (1,), (0,)))
    else:
        zeros = out.int64([0] * rank)
    # The first half of the pads belongs to the start of each axis, the second half to the end.
    halves = out.emit_all("Split", [pads], 2, axis=0)
    scattered = [out.emit("ScatterElements", [zeros, axes, half], axis=0) for half in halves]
    return out.emit("Concat", scattered, axis=0)


def _float32_value(value: Tensor | None) -> float | None:
    """Return the number if it is a constant that float32, the type of the attribute, holds exactly."""
    if value is None:
        return None
    number = float(value.scalar)
    return number if math.isnan(number) or round_to_float32(number) == number else None


def _gather_padded(node: Node, out: Rewriter) -> None:
    """Emit a Gather for each axis; for the mode `constant`, from data with the value appended."""
    out = out.for_opset(PADDING_OPSET)
    value, pads = node.inputs[:2]
    mode, element_type, rank = node.attribute("mode", b"constant"), out.element_type(value), out.rank(value)
    fill_value = node.input(2)
    if mode == b"constant" and not fill_value:
        fill_value = out.constant(0.0 if element_type in IEEE_FLOAT_TYPES else 0, element_type)
    for axis in range(rank):
        padded = _padded_positions(value, _pads_of_axis(pads, axis, rank, out), axis, out)
        if mode == b"constant":
            # An empty axis has no element that the padding could gather instead.
            indices = _indices_or_end(padded)
            value = out.emit("Concat", [value, _fill_slice(value, fill_value, axis, rank, out)], axis=axis)
        else:
            indices = _reflected_indices(padded) if mode == b"reflect" else _edge_indices(padded)
        value = out.emit("Gather", [value, indices.name], axis=axis)
    out.emit("Identity", [value], node.outputs)


def _indices_or_end(padded: PaddedPositions) -> Expression:
    """Return the indices for the mode `constant`: those of kept elements, and the size in the padding."""
    is_after_start = padded.positions.apply("Less", 0).apply("Not")
    is_kept = padded.positions.apply("Less", padded.length).apply("And", is_after_start).cast("int64")
    return is_kept * (padded.positions + padded.first - padded.size) + padded.size


def _fill_slice(value: str, fill_value: str, axis: int, rank: int, out: Rewriter) -> str:
    """Return a slice, filled with one element, to append to the value along an axis."""
    shape = Expression(out.emit("Shape", [value]), "int64", out, rank=1)
    is_axis = shape.constant([int(each == axis) for each in range(rank)])
    is_other = shape.constant([int(each != axis) for each in range(rank)])
    return out.emit("Expand", [fill_value, (shape * is_other + is_axis).name])


def _reflected_indices(padded: PaddedPositions) -> Expression:
    """Return the indices for the mode `reflect`: positions mirrored at the first and last kept element."""
    last = padded.length - 1
    # The period is 2 * last, but at least 1: a single kept element must not lead to Mod by 0.
    period = _max_with_zero(last + last - 1) + 1
    return last - abs(last - padded.positions.apply("Mod", period)) + padded.first


def _edge_indices(padded: PaddedPositions) -> Expression:
    """Return the indices for the mode `edge`: positions clamped to the kept elements."""
    last = padded.length - 1
    return last - _max_with_zero(last - _max_with_zero(padded.positions)) + padded.first
