"""Pad: the mode `wrap`, which repeats the data periodically (opset 19)."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.positions import around, pair, steps
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter


@adapter("Pad", 19, 18)
def wrapped_positions_are_gathered(node: Node, out: Rewriter) -> None:
    """For the mode `wrap`, gather along each padded axis with indices modulo its size."""
    if node.attribute("mode", b"constant") != b"wrap":
        out.become(node)
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
        return around(steps(node.inputs[0], lists[0], lists[1], axis, out), out)
    kept = range(max(-before, 0), size - max(-after, 0))
    if not kept:
        raise CannotConvert(f"dimension {axis} is empty, so mode 'wrap' has no elements to repeat")
    count = len(kept)
    indices = [kept[position % count] for position in range(-max(before, 0), count + max(after, 0))]
    return out.constant(indices, "int64")


def _gather_with_computed_pads(value: str, pads: str, axes: tuple[int, ...], out: Rewriter) -> str:
    for position, axis in enumerate(axes):
        before, after = pair(pads, position, len(axes), out)
        indices = around(steps(value, before, after, axis, out), out)
        value = out.emit("Gather", [value, indices], axis=axis)
    return value
