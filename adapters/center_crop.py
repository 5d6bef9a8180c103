"""CenterCropPad came at 18: a Slice out of the middle, then a Pad around it.

Where the difference is odd, the part cut off or padded at the front is the smaller one.
"""

from __future__ import annotations

from collections.abc import Sequence

from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME

INT64, DOUBLE = BY_NAME["int64"].number, BY_NAME["double"].number


@adapter("CenterCropPad", 18, 17)
def crop_then_pad(node: Node, out: Rewriter) -> None:
    """With known sizes by constants, and of the two only what is needed."""
    if not _with_known_sizes(node, out):
        _with_computed_sizes(node, out)


def _with_known_sizes(node: Node, out: Rewriter) -> bool:
    """Whether all sizes are known, and the node is expressed."""
    sizes, wanted = out.shape(node.inputs[0]), out.constant_value(node.inputs[1])
    if sizes is None or wanted is None or None in sizes:
        return False
    axes = _axes(node, len(sizes)) or range(len(sizes))
    cuts, pads = {}, [0] * (2 * len(sizes))
    for axis, size in zip(axes, map(int, wanted.values), strict=True):
        missing = size - (sizes[axis] or 0)
        if missing < 0:
            cuts[axis] = (-missing // 2, -missing // 2 + size)
        elif missing:
            pads[axis], pads[axis + len(sizes)] = missing // 2, missing - missing // 2
    _emit_known(node, cuts, pads, out)
    return True


def _emit_known(node: Node, cuts: dict[int, tuple[int, int]], pads: Sequence[int], out: Rewriter) -> None:
    data = node.inputs[0]
    if cuts:
        bounds = [out.constant([cut[side] for cut in cuts.values()], "int64") for side in (0, 1)]
        inputs = [data, *bounds, out.constant(list(cuts), "int64")]
        data = out.emit("Slice", inputs, 1 if any(pads) else node.outputs)
    if any(pads):
        out.emit("Pad", [data, out.constant(pads, "int64")], node.outputs)
    elif not cuts:
        out.become(node, op_type="Identity", inputs=node.inputs[:1], attributes={})


def _with_computed_sizes(node: Node, out: Rewriter) -> None:
    data, wanted = node.inputs
    axes = _axes(node, out.rank(data)) if "axes" in node.attributes else ()
    sizes = out.emit("Shape", [data])
    if axes:
        sizes = out.emit("Gather", [sizes, out.constant(axes, "int64")], axis=0)
    wanted = out.emit("Cast", [wanted], to=INT64)
    two = out.constant([2], "int64")
    excess = _above_zero(out.emit("Sub", [sizes, wanted]), out)
    start = out.emit("Div", [excess, two])
    end = out.emit("Add", [start, out.emit("Sub", [sizes, excess])])
    missing = _above_zero(out.emit("Sub", [wanted, sizes]), out)
    before = out.emit("Div", [missing, two])
    after = out.emit("Sub", [missing, before])
    cut = out.emit("Slice", [data, start, end, *([out.constant(axes, "int64")] if axes else [])])
    pads = out.emit("Concat", [_of_all_axes(each, axes, node, out) for each in (before, after)], axis=0)
    out.emit("Pad", [cut, pads], node.outputs)


def _axes(node: Node, rank: int) -> tuple[int, ...]:
    """The axes that `shape` is for; none if it is for all."""
    return tuple(axis % rank for axis in node.attribute("axes", ()))


def _above_zero(numbers: str, out: Rewriter) -> str:
    """The numbers, 0 for those below."""
    positive = out.emit("Relu", [out.emit("Cast", [numbers], to=DOUBLE)])
    return out.emit("Cast", [positive], to=INT64)


def _of_all_axes(numbers: str, axes: Sequence[int], node: Node, out: Rewriter) -> str:
    """Numbers for some axes, with 0 for the others."""
    if not axes:
        return numbers
    with_zero = out.emit("Concat", [numbers, out.constant([0], "int64")], axis=0)
    places = [axes.index(axis) if axis in axes else len(axes) for axis in range(out.rank(node.inputs[0]))]
    return out.emit("Gather", [with_zero, out.constant(places, "int64")], axis=0)
