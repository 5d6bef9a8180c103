"""Pad: pads and value as attributes or inputs (opset 11), `axes` (opset 18) and the mode `wrap` (opset 19).

Without an older equivalent, elements are gathered along each axis by computed indices.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import NamedTuple

from opshift.adapters.core.adapter_table import adapter
from opshift.adapters.core.rewriter import Rewriter
from opshift.adapters.core.type_guard import wider_type
from opshift.adapters.emit.arithmetic import add, divide, subtract
from opshift.adapters.emit.shapes import computed_dimension
from opshift.model.element_types import FLOAT_MAX
from opshift.model.errors import CannotConvert
from opshift.model.node import Node, Tensor

PADDABLE_TYPES = ("float16", "float", "double")
"""The element types that Pad supports before opset 11."""

WIDER_TYPES = ("tensor(float)", "tensor(double)")
"""The types to cast other element types to before opset 11."""

PADDING_OPSET = 11
"""Opset of the emitted index arithmetic: the first with Range."""


class PaddedPositions(NamedTuple):
    """Positions along a padded axis, as names of int64 lists.

    Attributes:
        positions: Position of each output element relative to the first kept element: negative in the
            padding before, `length` or more in the padding after.
        first: Index of the first element that is not cropped; one element.
        length: Number of elements that are not cropped; one element.
    """

    positions: str
    first: str
    length: str


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
        count = len(axes)
        for position, axis in enumerate(axes):
            axis_pads = pads.values[position], pads.values[count + position]
            if axis_pads != (0, 0):
                value = out.emit("Gather", [value, _indices_along(node, axis, axis_pads, out)], axis=axis)
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
    wider = element_type if element_type in PADDABLE_TYPES else wider_type(element_type, WIDER_TYPES, "order")
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
    shape = out.shape(node.inputs[1])
    if shape and shape[0] is not None:
        return tuple(range(shape[0] // 2))
    return tuple(range(out.rank(node.inputs[0])))


def _gather_with_computed_pads(value: str, pads: str, axes: tuple[int, ...], out: Rewriter) -> str:
    view = out.for_opset(PADDING_OPSET)
    for position, axis in enumerate(axes):
        before, after = _pads_of_axis(pads, position, len(axes), view)
        indices = _wrapped_indices(_padded_positions(value, before, after, axis, view), view)
        value = out.emit("Gather", [value, indices], axis=axis)
    return value


def _pads_of_axis(pads: str, position: int, count: int, out: Rewriter) -> tuple[str, str]:
    """Return the pads before and after one of `count` axes, each as a list of one element."""
    indices = (out.int64([each]) for each in (position, count + position))
    before, after = (out.emit("Gather", [pads, index], axis=0) for index in indices)
    return before, after


def _wrapped_indices(padded: PaddedPositions, out: Rewriter) -> str:
    """Return the indices for the mode `wrap`: positions modulo the number of kept elements."""
    return add(out.emit("Mod", [padded.positions, padded.length]), padded.first, out)


def _padded_positions(value: str, before: str, after: str, axis: int, out: Rewriter) -> PaddedPositions:
    """Return the positions along a padded axis of a value.

    Args:
        value: Value to pad.
        before: Pad at the start, a list of one element; a negative pad crops.
        after: Pad at the end, likewise.
        axis: Axis to pad, not negative.
        out: A rewriter for `PADDING_OPSET`.
    """
    first, last = (_max_with_zero(out.emit("Neg", [pad]), out) for pad in (before, after))
    count = subtract(subtract(computed_dimension(value, axis, out), first, out), last, out)
    start = out.emit("Neg", [_max_with_zero(before, out)])
    limit = add(count, _max_with_zero(after, out), out)
    scalars = [out.emit("Squeeze", [each], axes=[0]) for each in (start, limit)]
    return PaddedPositions(out.emit("Range", [*scalars, out.int64(1)]), first, count)


def _max_with_zero(value: str, out: Rewriter) -> str:
    """Return the maximum of an integer and 0."""
    # (x + |x|) / 2, because Max does not support integers before opset 12.
    return divide(add(value, out.emit("Abs", [value]), out), out.int64([2]), out)


def _indices_along(node: Node, axis: int, axis_pads: tuple[int, int], out: Rewriter) -> str:
    """Return the indices to gather along an axis; negative pads crop before the rest is repeated."""
    before, after = axis_pads
    size = out.known_dimension(node.inputs[0], axis)
    if size is None:
        out = out.for_opset(PADDING_OPSET)
        lists = [out.int64([pad]) for pad in axis_pads]
        return _wrapped_indices(_padded_positions(node.inputs[0], lists[0], lists[1], axis, out), out)
    kept = range(max(-before, 0), size - max(-after, 0))
    if not kept:
        raise CannotConvert(f"dimension {axis} is empty, so mode 'wrap' has no elements to repeat")
    count = len(kept)
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
    zeros = _zeros(data, out)
    # The first half of the pads belongs to the start of each axis, the second half to the end.
    halves = out.emit_all("Split", [pads], 2, axis=0)
    scattered = [out.emit("ScatterElements", [zeros, axes, half], axis=0) for half in halves]
    return out.emit("Concat", scattered, axis=0)


def _zeros(data: str, out: Rewriter) -> str:
    """Return a list with one zero for each dimension."""
    rank = out.known_rank(data)
    if rank is not None:
        return out.int64([0] * rank)
    count = out.emit("Shape", [out.emit("Shape", [data])])
    return out.emit("ConstantOfShape", [count], value=Tensor("int64", (1,), (0,)))


def _float32_value(value: Tensor | None) -> float | None:
    """Return the number if it is a constant that float32, the type of the attribute, holds exactly."""
    number = float(value.scalar) if value is not None else None
    if number is None or not math.isfinite(number):
        return number
    # The limit is tested first because struct.pack raises OverflowError above it.
    is_exact = abs(number) <= FLOAT_MAX and struct.unpack("<f", struct.pack("<f", number)) == (number,)
    return number if is_exact else None


def _gather_padded(node: Node, out: Rewriter) -> None:
    """Emit a Gather for each axis; for the mode `constant`, replace the padding with the value by Where."""
    out = out.for_opset(PADDING_OPSET)
    value, pads = node.inputs[:2]
    mode, element_type, rank = node.attribute("mode", b"constant"), out.element_type(value), out.rank(value)
    fill_value = node.input(2)
    if mode == b"constant" and not fill_value:
        fill_value = out.constant(0.0 if element_type in PADDABLE_TYPES else 0, element_type)
    for axis in range(rank):
        before, after = _pads_of_axis(pads, axis, rank, out)
        padded = _padded_positions(value, before, after, axis, out)
        # The mode `constant` gathers edge elements, which Where then replaces.
        indices = _reflected_indices(padded, out) if mode == b"reflect" else _edge_indices(padded, out)
        value = out.emit("Gather", [value, indices], axis=axis)
        if mode == b"constant":
            value = out.emit("Where", [_inside_mask(padded, rank - axis - 1, out), value, fill_value])
    out.emit("Identity", [value], node.outputs)


def _reflected_indices(padded: PaddedPositions, out: Rewriter) -> str:
    """Return the indices for the mode `reflect`: positions mirrored at the first and last kept element."""
    one = out.int64([1])
    last = subtract(padded.length, one, out)
    # The period is 2 * last, but at least 1: a single kept element must not lead to Mod by 0.
    period = add(_max_with_zero(subtract(add(last, last, out), one, out), out), one, out)
    offset = subtract(last, out.emit("Mod", [padded.positions, period]), out)
    return add(subtract(last, out.emit("Abs", [offset]), out), padded.first, out)


def _edge_indices(padded: PaddedPositions, out: Rewriter) -> str:
    """Return the indices for the mode `edge`: positions clamped to the kept elements."""
    last = subtract(padded.length, out.int64([1]), out)
    distance_to_last = subtract(last, _max_with_zero(padded.positions, out), out)
    return add(subtract(last, _max_with_zero(distance_to_last, out), out), padded.first, out)


def _inside_mask(padded: PaddedPositions, trailing: int, out: Rewriter) -> str:
    """Return which positions are not padding, with `trailing` dimensions of 1 appended to broadcast."""
    shape = out.int64([-1, *[1] * trailing])
    is_before = out.emit("Less", [padded.positions, out.int64([0])])
    is_below_length = out.emit("Less", [padded.positions, padded.length])
    mask = out.emit("And", [is_below_length, out.emit("Not", [is_before])])
    return out.emit("Reshape", [mask, shape])
