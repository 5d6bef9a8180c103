"""Adapters of Pad and CenterCropPad.

`pads` and `value` of Pad are inputs since opset 11, `axes` exists since 18, and the mode `wrap` since 19. A
Pad without an older equivalent becomes one Gather per axis, with computed indices. CenterCropPad (introduced
in opset 18) becomes Slice and Pad. If an odd number of elements is cut off or added, the smaller part is at
the front.
"""

import math
from collections.abc import Sequence

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor, adapter, expression
from opshift.adapters.core.rewriter import rename_output
from opshift.adapters.core.type_guard import wider_type
from opshift.adapters.emit.expression import IEEE_FLOAT_TYPES, Expression
from opshift.adapters.emit.indices import gather_blocks
from opshift.adapters.emit.shapes import double_sizes, index_range, reshape
from opshift.model.element_types import round_to_float32

WIDER_TYPES = ("tensor(float)", "tensor(double)")
"""Types to which other element types are cast: before opset 11, Pad supports only floating-point types."""

PADDING_OPSET = 10
"""Opset for which the index arithmetic is written: the last opset without negative indices."""


@adapter("Pad", 19, 18)
def gather_wrapped_elements(node: Node, out: Rewriter) -> None:
    """For the mode `wrap`, gather along each padded axis with indices modulo the size of the axis."""
    if node.attribute("mode", b"constant") != b"wrap":
        out.replace(node)
        return
    data, pads, axes = node.inputs[0], node.inputs[1], _padded_axes(node, out)
    known = out.constant_value(pads)
    if known is not None:
        pairs = zip(axes, known.values, known.values[len(axes) :], strict=False)
        padded = [(axis, before, after) for axis, before, after in pairs if before or after]
        for axis, before, after in padded:
            size = out.known_dimension(node.inputs[0], axis)
            if size is not None:
                indices = _wrapped_indices(axis, size, before, after, out)
                rank, element_type = out.rank(node.inputs[0]), out.known_element_type(node.inputs[0])
                data = gather_blocks(data, rank, element_type, indices, axis, out)
        computed = [each for each in padded if out.known_dimension(node.inputs[0], each[0]) is None]
        axes, *amounts = zip(*computed, strict=True) if computed else ((), ())
        pads = out.int64([amount for side in amounts for amount in side])
    rename_output(_gather_padded(data, node, pads, axes, "", out), node, out)


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
    """Move constant pads and value to attributes if float32 holds the value; in other cases, use Gather."""
    pads = out.constant_value(node.input(1))
    element_type = out.element_type(node.inputs[0])
    wider: str | None = element_type
    if element_type not in IEEE_FLOAT_TYPES:
        wider = wider_type(element_type, WIDER_TYPES, "order")
    mode, fill_value = node.attribute("mode", b"constant").decode(), node.input(2)
    is_filled = mode == "constant" and bool(fill_value)
    number = _float32_value(out.constant_value(fill_value)) if is_filled else 0.0
    if pads is None or wider is None or number is None:
        gather_padded_elements(node, out)
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


@expression("Pad", 11)
def gather_padded_elements(node: Node, out: Rewriter) -> None:
    """Replace Pad by one Gather for each axis, with computed indices."""
    data, element_type = node.inputs[0], out.element_type(node.inputs[0])
    fill_value = node.input(2)
    if not fill_value:
        fill_value = out.constant(0.0 if element_type in IEEE_FLOAT_TYPES else 0, element_type)
    padded = _gather_padded(data, node, node.inputs[1], range(out.rank(data)), fill_value, out)
    rename_output(padded, node, out)


@adapter("Pad", 2, 1)
def rename_pads_to_paddings(node: Node, out: Rewriter) -> None:
    """Rename `pads` to `paddings`; negative pads, which crop, are refused."""
    pads: Sequence[int] = node.attribute("pads")
    if any(pad < 0 for pad in pads):
        reason = f"pads is {list(pads)}; Pad-1 does not support negative pads"
        raise CannotConvert(reason, "value.unsupported", remedy="crop with a Slice")
    out.replace(node, attributes={**node.without("pads"), "paddings": pads})


def _padded_axes(node: Node, out: Rewriter) -> tuple[int, ...]:
    """Return the axes to which `pads` applies, in the same order and nonnegative."""
    if node.input(3):
        axes = out.require_constant(node.input(3), "input axes").values
        # Only negative axes require the rank, which may be unknown.
        rank = out.rank(node.inputs[0]) if any(axis < 0 for axis in axes) else 0
        return tuple(axis + rank if axis < 0 else axis for axis in axes)
    count = out.known_dimension(node.inputs[1], 0)
    return tuple(range(out.rank(node.inputs[0]) if count is None else out.require_rank(count // 2)))


def _wrapped_indices(axis: int, size: int, before: int, after: int, out: Rewriter) -> str:
    """Return the indices that repeat an axis as mode `wrap` does; negative pads crop the axis first."""
    kept = range(max(-before, 0), size - max(-after, 0))
    if not kept:
        reason = f"dimension {axis} is empty, so mode 'wrap' has no elements to repeat"
        raise CannotConvert(reason, "shape.unsupported")
    count = len(kept)
    out.require_elements(count + max(before, 0) + max(after, 0))
    indices = [kept[position % count] for position in range(-max(before, 0), count + max(after, 0))]
    return out.int64(indices)


def _pads_of_all_axes(data: str, pads: str, axes: str, out: Rewriter) -> str:
    """Return the pads of all dimensions, given the pads of some axes."""
    rank, known_pads, known_axes = out.known_rank(data), out.constant_value(pads), out.constant_value(axes)
    if rank is not None and known_axes is not None:
        count = len(known_axes.values)
        # A 0 is appended to the pads, at position 2 * count; all other dimensions read this 0.
        positions = [2 * count] * (2 * rank)
        for position, axis in enumerate(known_axes.values):
            positions[axis % rank], positions[axis % rank + rank] = position, position + count
        if known_pads is not None:
            return out.int64([(*known_pads.values, 0)[position] for position in positions])
        with_zero = out.emit("Concat", [pads, out.int64([0])], axis=0)
        return out.emit("Gather", [with_zero, out.int64(positions)])
    if rank is None:
        shape_of_shape = out.emit("Shape", [out.emit("Shape", [data])])
        zeros = out.emit("ConstantOfShape", [shape_of_shape], value=Tensor("int64", (1,), (0,)))
    else:
        zeros = out.int64([0] * rank)
    # The first half of the pads is for the starts of the axes, the second half for the ends.
    halves = out.emit_all("Split", [pads], 2, axis=0)
    scattered = [out.emit("ScatterElements", [zeros, axes, half], axis=0) for half in halves]
    return out.emit("Concat", scattered, axis=0)


def _float32_value(value: Tensor | None) -> float | None:
    """Return a constant as a number if the attribute `value` can store it: NaN, or exact in float32."""
    if value is None:
        return None
    number = float(value.scalar)
    return number if math.isnan(number) or round_to_float32(number) == number else None


def _gather_padded(
    data: str, node: Node, pads: str, axes: Sequence[int], fill_value: str, out: Rewriter
) -> str:
    """Emit one Gather for each of `axes`, and return the padded data; mode `constant` needs all axes."""
    if not axes:
        return data
    mode = node.attribute("mode", b"constant").decode()
    rank, element_type = out.known_rank(node.inputs[0]), out.known_element_type(node.inputs[0])
    out = out.for_opset(PADDING_OPSET)
    amounts = Expression(out.cast(pads, "double"), "double", out, rank=1)
    size = Expression(double_sizes(data, axes, out), "double", out, rank=1)
    before, after = _halves(amounts, out)
    counts = (size + before + after).cast("int64")
    if mode == "constant":
        # One fill value is added at both ends of each axis, empty or not, and repeated as in mode `edge`.
        columns = [1 - before, size + 1]
        fill_value = reshape(fill_value, [1] * len(axes), out)
    else:
        # Negative pads crop the axis before elements are repeated.
        first, removed = _halves((-amounts).apply("Relu"), out)
        columns = [-before.apply("Relu"), *_limits(mode, size - first - removed), first]
    for position, axis in enumerate(axes):
        chosen = [out.emit("Gather", [each.name, out.int64(position)]) for each in columns]
        start, *limits = (Expression(each, "double", out) for each in chosen)
        count = out.emit("Gather", [counts.name, out.int64([position])])
        numbers = out.cast(index_range(count, out, is_compact=True), "double")
        positions = Expression(numbers, "double", out, rank=1) + start
        if mode == "constant":
            data = _add_border(data, fill_value, axis, len(axes), out)
            indices = _source_positions("edge", positions, limits)
        else:
            *limits, first = limits
            indices = _source_positions(mode, positions, limits) + first
        data = gather_blocks(data, rank, element_type, indices.cast("int64").name, axis, out)
    return data


def _halves(numbers: Expression, out: Rewriter) -> list[Expression]:
    """Split numbers in the order of `pads` into the numbers for the starts and for the ends of the axes."""
    halves = out.emit_all("Split", [numbers.name], 2, axis=0)
    return [Expression(half, "double", out, rank=1) for half in halves]


def _limits(mode: str, length: Expression) -> list[Expression]:
    """Return `[period]` for mode `wrap`, `[last position, period]` for `reflect`, else `[last position]`."""
    last = length - 1
    if mode == "wrap":
        return [length]
    # The period of `reflect` is 2 * last, but at least 1: a single element would cause a division by 0.
    return [last, (last + last - 1).apply("Relu") + 1] if mode == "reflect" else [last]


def _add_border(data: str, fill_value: str, axis: int, rank: int, out: Rewriter) -> str:
    """Concatenate `fill_value`, one element with the rank of the data, to both ends of an axis."""
    shape = Expression(out.emit("Shape", [data]), "int64", out, rank=1)
    is_axis, is_other = (
        shape.constant([int((each == axis) == chosen) for each in range(rank)]) for chosen in (True, False)
    )
    border = out.emit("Tile", [fill_value, (shape * is_other + is_axis).name])
    return out.emit("Concat", [border, data, border], axis=axis)


def _source_positions(mode: str, positions: Expression, limits: Sequence[Expression]) -> Expression:
    """Map positions of output elements to positions in the data, relative to the first uncropped element."""
    if mode != "edge":
        period = limits[-1]
        positions = positions - (positions / period).apply("Floor") * period
    if mode == "wrap":
        return positions
    last = limits[0]
    if mode == "reflect":
        return last - abs(last - positions)
    return last - (last - positions.apply("Relu")).apply("Relu")


@adapter("CenterCropPad", 18, 17)
def crop_then_pad(node: Node, out: Rewriter) -> None:
    """Emit Slice and Pad; for known sizes, with constant bounds and pads, and only the necessary nodes."""
    data = node.inputs[0]
    sizes, target = out.known_shape(data), out.constant_value(node.inputs[1])
    # Without `axes`, the rewrite for computed sizes does not need the rank, which may be unknown.
    attribute = node.attribute("axes")
    axes = None if attribute is None else [axis % out.rank(data) for axis in attribute]
    count = out.known_rank(data) if axes is None else len(axes)
    if target is not None and count is not None and len(target.values) != count:
        reason = f"input shape has {len(target.values)} sizes for {count} axes"
        raise CannotConvert(reason, "node.invalid", remedy="set one size for each axis")
    if axes == []:
        out.replace(node, op_type="Identity", inputs=[data], attributes={})
        return
    if sizes is None or target is None:
        _rewrite_computed_sizes(node, axes, out)
        return
    cuts, pads = {}, [0] * (2 * len(sizes))
    for axis, size in zip(range(len(sizes)) if axes is None else axes, map(int, target.values), strict=True):
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


def _rewrite_computed_sizes(node: Node, axes: Sequence[int] | None, out: Rewriter) -> None:
    data, target_name = node.inputs
    shape = out.emit("Shape", [data])
    if axes is not None:
        shape = out.emit("Gather", [shape, out.int64(axes)], axis=0)
    sizes = Expression(shape, "int64", out, rank=1)
    target = Expression(out.cast(target_name, "int64"), "int64", out, rank=1)
    excess = _clamp_to_zero(sizes - target)
    start = excess / 2
    end = start + (sizes - excess)
    missing = _clamp_to_zero(target - sizes)
    before = missing / 2
    after = missing - before
    cropped = out.emit("Slice", [data, start.name, end.name, *([] if axes is None else [out.int64(axes)])])
    pads = [_expand_to_all_axes(amounts.name, axes, data, out) for amounts in (before, after)]
    out.emit("Pad", [cropped, out.emit("Concat", pads, axis=0)], node.outputs)


def _clamp_to_zero(numbers: Expression) -> Expression:
    # Before opset 14, Relu supports only floating-point types; double represents every size exactly.
    return numbers.cast("double").apply("Relu").cast("int64")


def _expand_to_all_axes(numbers: str, axes: Sequence[int] | None, data: str, out: Rewriter) -> str:
    """Return one number for each axis: the given numbers for `axes`, and 0 for all other axes."""
    if axes is None:
        return numbers
    with_zero = out.emit("Concat", [numbers, out.int64([0])], axis=0)
    indices = [axes.index(axis) if axis in axes else len(axes) for axis in range(out.rank(data))]
    return out.emit("Gather", [with_zero, out.int64(indices)], axis=0)
