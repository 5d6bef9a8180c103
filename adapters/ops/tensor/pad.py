"""Pad: `pads` and `value` changed from attributes to inputs in opset 11, and `axes` was added in opset 18."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from opshift.adapters.core.adapter_table import adapter
from opshift.adapters.core.rewriter import Rewriter
from opshift.adapters.core.type_guard import wider_type
from opshift.adapters.ops.tensor.padding_indices import (
    gather_padded,
    padded_positions,
    pads_of_axis,
    wrapped_indices,
)
from opshift.model.element_types import BY_NAME, FLOAT_MAX
from opshift.model.errors import CannotConvert
from opshift.model.node import Node, Tensor

PADDABLE_TYPES = ("float16", "float", "double")
"""The element types that Pad supports before opset 11."""

WIDER_TYPES = ("tensor(float)", "tensor(double)")
"""The types to cast other element types to before opset 11."""


@adapter("Pad", 18, 13)
def expand_pads_to_all_axes(node: Node, out: Rewriter) -> None:
    """Drop `axes`, and add pads of 0 for all other dimensions."""
    data, pads, axes = node.input(0), node.input(1), node.input(3)
    inputs = node.inputs[:3] if node.input(2) else node.inputs[:2]
    if axes:
        inputs = (data, _pads_of_all_axes(data, pads, axes, out), *inputs[2:])
    out.replace(node, inputs=inputs)


def _pads_of_all_axes(data: str, pads: str, axes: str, out: Rewriter) -> str:
    """Return the pads of all dimensions, given the pads of some axes."""
    rank, known_pads, known_axes = out.known_rank(data), out.constant_value(pads), out.constant_value(axes)
    if rank is not None and known_pads is not None and known_axes is not None:
        full = [0] * (2 * rank)
        count = len(known_axes.values)
        for position, axis in enumerate(known_axes.values):
            full[axis % rank] = known_pads.values[position]
            full[rank + axis % rank] = known_pads.values[count + position]
        return out.constant(full, "int64")
    zeros = _zeros(data, out)
    # The first half of the pads belongs to the start of each axis, the second half to the end.
    halves = out.emit_all("Split", [pads], 2, axis=0)
    scattered = [out.emit("ScatterElements", [zeros, axes, half], axis=0) for half in halves]
    return out.emit("Concat", scattered, axis=0)


def _zeros(data: str, out: Rewriter) -> str:
    """Return a list with one zero for each dimension."""
    rank = out.known_rank(data)
    if rank is not None:
        return out.constant([0] * rank, "int64")
    count = out.emit("Shape", [out.emit("Shape", [data])])
    return out.emit("ConstantOfShape", [count], value=Tensor("int64", (1,), (0,)))


@adapter("Pad", 11, 2)
def move_pads_and_value_to_attributes(node: Node, out: Rewriter) -> None:
    """Move pads and value to attributes if they are constant and float32 holds the value; else use Gather."""
    pads = out.constant_value(node.input(1))
    element_type = out.element_type(node.inputs[0])
    wider = element_type if element_type in PADDABLE_TYPES else wider_type(element_type, WIDER_TYPES, "order")
    is_filled = node.attribute("mode", b"constant") == b"constant" and bool(node.input(2))
    number = _float32_value(out.constant_value(node.input(2))) if is_filled else 0.0
    if pads is None or wider is None or number is None:
        gather_padded(node, out)
        return
    value = {"value": number} if is_filled else {}
    attributes = {**node.attributes, "pads": pads.values, **value}
    if wider == element_type:
        out.replace(node, inputs=node.inputs[:1], attributes=attributes)
        return
    wide = out.emit("Cast", [node.inputs[0]], opset=10, to=BY_NAME[wider].number)
    padded = out.fresh("pad")
    out.replace(node, inputs=[wide], outputs=[padded], attributes=attributes)
    out.emit("Cast", [padded], node.outputs, opset=10, to=BY_NAME[element_type].number)


def _float32_value(value: Tensor | None) -> float | None:
    """Return the number if it is a constant that float32, the type of the attribute, holds exactly."""
    number = float(value.scalar) if value is not None else None
    if number is None or not math.isfinite(number):
        return number
    # The limit is tested first because struct.pack raises OverflowError above it.
    is_exact = abs(number) <= FLOAT_MAX and struct.unpack("<f", struct.pack("<f", number)) == (number,)
    return number if is_exact else None


@adapter("Pad", 2, 1)
def rename_pads_to_paddings(node: Node, out: Rewriter) -> None:
    """Rename `pads` to `paddings`; negative pads, which crop, are refused."""
    pads: Sequence[int] = node.attribute("pads")
    if any(pad < 0 for pad in pads):
        raise CannotConvert(
            f"pads is {list(pads)}; Pad-1 does not support negative pads", remedy="crop with a Slice"
        )
    out.replace(node, attributes={**node.without("pads"), "paddings": pads})


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


def _indices_along(node: Node, axis: int, axis_pads: tuple[int, int], out: Rewriter) -> str:
    """Return the indices to gather along an axis; negative pads crop before the rest is repeated."""
    before, after = axis_pads
    shape = out.shape(node.inputs[0])
    size = shape[axis] if shape else None
    if size is None:
        lists = [out.constant([pad], "int64") for pad in axis_pads]
        return wrapped_indices(padded_positions(node.inputs[0], lists[0], lists[1], axis, out), out)
    kept = range(max(-before, 0), size - max(-after, 0))
    if not kept:
        raise CannotConvert(f"dimension {axis} is empty, so mode 'wrap' has no elements to repeat")
    count = len(kept)
    indices = [kept[position % count] for position in range(-max(before, 0), count + max(after, 0))]
    return out.constant(indices, "int64")


def _gather_with_computed_pads(value: str, pads: str, axes: tuple[int, ...], out: Rewriter) -> str:
    for position, axis in enumerate(axes):
        before, after = pads_of_axis(pads, position, len(axes), out)
        indices = wrapped_indices(padded_positions(value, before, after, axis, out), out)
        value = out.emit("Gather", [value, indices], axis=axis)
    return value
