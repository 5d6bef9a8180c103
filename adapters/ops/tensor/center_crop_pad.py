"""CenterCropPad (introduced in opset 18): a Slice of the center, then a Pad around it.

If the difference is odd, the smaller part is cut off or added at the front.
"""

from __future__ import annotations

from collections.abc import Sequence

from opshift.adapters.core.adapter_table import adapter
from opshift.adapters.core.rewriter import Rewriter
from opshift.model.node import Node


@adapter("CenterCropPad", 18, 17)
def crop_then_pad(node: Node, out: Rewriter) -> None:
    """Emit Slice and Pad, with constants and only where necessary if the sizes are known."""
    if not _rewrite_known_sizes(node, out):
        _rewrite_computed_sizes(node, out)


def _rewrite_known_sizes(node: Node, out: Rewriter) -> bool:
    """Rewrite the node if all sizes are known; return whether they are."""
    sizes, target = out.shape(node.inputs[0]), out.constant_value(node.inputs[1])
    if sizes is None or target is None or None in sizes:
        return False
    axes = _axes(node, len(sizes)) or range(len(sizes))
    cuts, pads = {}, [0] * (2 * len(sizes))
    for axis, size in zip(axes, map(int, target.values), strict=True):
        missing = size - (sizes[axis] or 0)
        if missing < 0:
            cuts[axis] = (-missing // 2, -missing // 2 + size)
        elif missing:
            pads[axis], pads[axis + len(sizes)] = missing // 2, missing - missing // 2
    _emit_slice_and_pad(node, cuts, pads, out)
    return True


def _axes(node: Node, rank: int) -> tuple[int, ...]:
    """Return the axes that `shape` applies to; empty if it applies to all."""
    return tuple(axis % rank for axis in node.attribute("axes", ()))


def _emit_slice_and_pad(
    node: Node, cuts: dict[int, tuple[int, int]], pads: Sequence[int], out: Rewriter
) -> None:
    data = node.inputs[0]
    if cuts:
        bounds = [out.int64([cut[side] for cut in cuts.values()]) for side in (0, 1)]
        inputs = [data, *bounds, out.int64(list(cuts))]
        data = out.emit("Slice", inputs, 1 if any(pads) else node.outputs)
    if any(pads):
        out.emit("Pad", [data, out.int64(pads)], node.outputs)
    elif not cuts:
        out.replace(node, op_type="Identity", inputs=node.inputs[:1], attributes={})


def _rewrite_computed_sizes(node: Node, out: Rewriter) -> None:
    data, target = node.inputs
    axes = _axes(node, out.rank(data)) if "axes" in node.attributes else ()
    sizes = out.emit("Shape", [data])
    if axes:
        sizes = out.emit("Gather", [sizes, out.int64(axes)], axis=0)
    target = out.cast(target, "int64")
    two = out.int64([2])
    excess = _clamp_to_zero(out.emit("Sub", [sizes, target]), out)
    start = out.emit("Div", [excess, two])
    end = out.emit("Add", [start, out.emit("Sub", [sizes, excess])])
    missing = _clamp_to_zero(out.emit("Sub", [target, sizes]), out)
    before = out.emit("Div", [missing, two])
    after = out.emit("Sub", [missing, before])
    cropped = out.emit("Slice", [data, start, end, *([out.int64(axes)] if axes else [])])
    pads = out.emit(
        "Concat", [_expand_to_all_axes(amounts, axes, node, out) for amounts in (before, after)], axis=0
    )
    out.emit("Pad", [cropped, pads], node.outputs)


def _clamp_to_zero(numbers: str, out: Rewriter) -> str:
    """Replace negative numbers by 0."""
    # Relu supports floats only before opset 14; double represents every size exactly.
    positive = out.emit("Relu", [out.cast(numbers, "double")])
    return out.cast(positive, "int64")


def _expand_to_all_axes(numbers: str, axes: Sequence[int], node: Node, out: Rewriter) -> str:
    """Expand numbers for some axes to all axes, with 0 for the others."""
    if not axes:
        return numbers
    with_zero = out.emit("Concat", [numbers, out.int64([0])], axis=0)
    indices = [axes.index(axis) if axis in axes else len(axes) for axis in range(out.rank(node.inputs[0]))]
    return out.emit("Gather", [with_zero, out.int64(indices)], axis=0)
