"""CenterCropPad (introduced in opset 18): a Slice of the center, then a Pad around it.

If the difference is odd, the smaller part is cut off or added at the front.
"""

from collections.abc import Sequence

from opshift.adapters import Node, Rewriter, adapter
from opshift.adapters.emit.expression import Expression


@adapter("CenterCropPad", 18, 17)
def crop_then_pad(node: Node, out: Rewriter) -> None:
    """Emit Slice and Pad, with constants and only where necessary if the sizes are known."""
    data = node.inputs[0]
    sizes, target = out.known_shape(data), out.constant_value(node.inputs[1])
    # Without `axes`, computed sizes do not need the rank.
    axes = [axis % out.rank(data) for axis in node.attribute("axes", ())]
    if sizes is None or target is None:
        _rewrite_computed_sizes(node, axes, out)
        return
    cuts, pads = {}, [0] * (2 * len(sizes))
    for axis, size in zip(axes or range(len(sizes)), map(int, target.values), strict=True):
        missing = size - sizes[axis]
        if missing < 0:
            cuts[axis] = (-missing // 2, -missing // 2 + size)
        elif missing:
            pads[axis], pads[axis + len(sizes)] = missing // 2, missing - missing // 2
    if cuts:
        bounds = [out.int64([cut[side] for cut in cuts.values()]) for side in (0, 1)]
        inputs = [data, *bounds, out.int64(list(cuts))]
        data = out.emit("Slice", inputs, 1 if any(pads) else node.outputs)
    if any(pads):
        out.emit("Pad", [data, out.int64(pads)], node.outputs)
    elif not cuts:
        out.replace(node, op_type="Identity", inputs=[data], attributes={})


def _rewrite_computed_sizes(node: Node, axes: Sequence[int], out: Rewriter) -> None:
    data, target_name = node.inputs
    shape = out.emit("Shape", [data])
    if axes:
        shape = out.emit("Gather", [shape, out.int64(axes)], axis=0)
    sizes = Expression(shape, "int64", out, rank=1)
    target = Expression(out.cast(target_name, "int64"), "int64", out, rank=1)
    excess = _clamp_to_zero(sizes - target)
    start = excess / 2
    end = start + (sizes - excess)
    missing = _clamp_to_zero(target - sizes)
    before = missing / 2
    after = missing - before
    cropped = out.emit("Slice", [data, start.name, end.name, *([out.int64(axes)] if axes else [])])
    pads = [_expand_to_all_axes(amounts.name, axes, data, out) for amounts in (before, after)]
    out.emit("Pad", [cropped, out.emit("Concat", pads, axis=0)], node.outputs)


def _clamp_to_zero(numbers: Expression) -> Expression:
    # Relu supports floats only before opset 14; double represents every size exactly.
    return numbers.cast("double").apply("Relu").cast("int64")


def _expand_to_all_axes(numbers: str, axes: Sequence[int], data: str, out: Rewriter) -> str:
    """Expand numbers for some axes to all axes, with 0 for the others."""
    if not axes:
        return numbers
    with_zero = out.emit("Concat", [numbers, out.int64([0])], axis=0)
    indices = [axes.index(axis) if axis in axes else len(axes) for axis in range(out.rank(data))]
    return out.emit("Gather", [with_zero, out.int64(indices)], axis=0)
