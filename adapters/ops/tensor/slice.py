"""Adapters of Slice (bounds and steps as inputs since opset 10, negative axes since 11) and of Split.

Before opset 10, a Slice with computed bounds or other steps than 1 becomes one Gather per axis. The output
sizes of Split, an attribute, become an input in opset 13, and `num_outputs` exists since opset 18.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor, UnknownShape, adapter, expression
from opshift.adapters.core.rewriter import rename_output
from opshift.adapters.core.type_guard import require_supported_types
from opshift.adapters.emit.expression import Expression, fold
from opshift.adapters.emit.indices import (
    INDICES_OPSET,
    MAX_CONSTANT_INDICES,
    add_to_negative_indices,
    gather_blocks,
    nonnegative_axis,
    slice_dimension,
)
from opshift.adapters.emit.shapes import double_sizes, index_range, reshape
from opshift.model.types import MAX_RANK

BEYOND_ANY_SIZE = 2.0**62
"""End that exceeds every dimension: a slice from 0 to this end selects all elements."""

Numbers = Sequence[int] | Expression
"""One number for each sliced axis: known integers, or a double tensor of rank 1."""


class AxisSlices(NamedTuple):
    """Axes to slice, with the start, end and step for each axis."""

    axes: Sequence[int]
    starts: Numbers
    ends: Numbers
    steps: Numbers

    def constant(self, position: int) -> tuple[int, int, int] | None:
        """Return start, end and step of the axis at `position`; `None` if one of them is computed."""
        numbers = [each[position] for each in self[1:] if not isinstance(each, Expression)]
        return (numbers[0], numbers[1], numbers[2]) if len(numbers) == len(self[1:]) else None


@adapter("Slice", 11, 10)
def make_slice_axes_nonnegative(node: Node, out: Rewriter) -> None:
    """Add the rank to negative `axes`."""
    axes = node.input(3)
    known = out.constant_value(axes)
    if not axes or (known is not None and all(axis >= 0 for axis in known.values)):
        out.replace(node)
        return
    if known is None or out.known_rank(node.inputs[0]) is None:
        rank = out.emit("Size", [out.emit("Shape", [node.inputs[0]])])
        nonnegative = add_to_negative_indices(axes, rank, out.element_type(axes), out)
    else:
        values = tuple(nonnegative_axis(axis, node.inputs[0], out) for axis in known.values)
        nonnegative = out.tensor(Tensor(known.element_type, known.dims, values))
    out.replace(node, inputs=[*node.inputs[:3], nonnegative, *node.inputs[4:]])


@adapter("Slice", 10, 1)
def move_bounds_to_attributes(node: Node, out: Rewriter) -> None:
    """Move constant bounds with a step of 1 to attributes; for all other axes, gather the elements."""
    data, slices = node.inputs[0], _axis_slices(node, out)
    attributes: dict[str, list[int]] = {"axes": [], "starts": [], "ends": []}
    gathered: dict[int, str] = {}
    computed = []
    for position, axis in enumerate(slices.axes):
        constant = slices.constant(position)
        if constant is not None and constant[2] == 1:
            for values, value in zip(attributes.values(), (axis, *constant), strict=False):
                values.append(value)
            continue
        # queried only here, because the inference of a shape may be slow
        size = out.known_dimension(data, axis)
        if constant is not None and size is not None and size <= MAX_CONSTANT_INDICES:
            gathered[axis] = out.int64(_known_indices(*constant, size))
        else:
            computed.append(position)
    if computed:
        gathered |= _computed_indices(slices, computed, data, out.for_opset(INDICES_OPSET))
    if attributes["axes"] or not gathered:
        data = out.fresh("slice") if gathered else node.outputs[0]
        out.replace(node, inputs=node.inputs[:1], outputs=[data], attributes=attributes)
    rename_output(_gather_along_axes(data, gathered, node, out), node, out)


@expression("Slice", 10)
def gather_sliced_elements(node: Node, out: Rewriter) -> None:
    """Replace Slice by one Gather for each axis, with computed indices."""
    data, slices = node.inputs[0], _axis_slices(node, out)
    positions = range(len(slices.axes))
    indices = _computed_indices(slices, positions, data, out.for_opset(INDICES_OPSET))
    rename_output(_gather_along_axes(data, indices, node, out), node, out)


def _gather_along_axes(data: str, indices: Mapping[int, str], node: Node, out: Rewriter) -> str:
    """Gather the elements of `data`, which has the rank and element type of the node's input."""
    element_type = out.known_element_type(node.inputs[0])
    rank = out.known_rank(node.inputs[0]) if element_type == "string" else None
    for axis, numbers in indices.items():
        data = gather_blocks(data, rank, element_type, numbers, axis, out)
    return data


def _axis_slices(node: Node, out: Rewriter) -> AxisSlices:
    """Return the slice of each axis; refuse scalar bounds, and axes that need an unknown length or rank."""
    starts, ends, axes, steps = (node.input(position) for position in range(1, 5))
    for name in (starts, ends, axes, steps):
        known = out.constant_value(name)  # The rank of a constant needs no inference.
        if (out.known_rank(name) if known is None else len(known.dims)) == 0:
            reason = f"{name!r} is a scalar, but Slice requires lists"
            raise CannotConvert(reason, "node.invalid", remedy="reshape the input to one dimension")
    known = out.constant_value(axes)
    if axes and known is None:
        return _slices_of_computed_axes(node, out.for_opset(INDICES_OPSET))
    if known is not None:
        numbers = [nonnegative_axis(axis, node.inputs[0], out) for axis in known.values]
    else:
        count = out.known_dimension(starts, 0)
        if count is None:
            reason = f"the node has no axes input, and the length of {starts!r} is unknown"
            raise UnknownShape(reason, starts)
        if count > MAX_RANK:  # checked, because a file of 100 bytes can declare any length
            reason = f"the length of {starts!r} is {count}, but tensors have at most {MAX_RANK} dimensions"
            raise CannotConvert(reason, "node.invalid", remedy="correct the declared shape")
        numbers = list(range(count))
    view = out.for_opset(INDICES_OPSET)
    bounds = (_read_numbers(each, view) if each else [1] * len(numbers) for each in (starts, ends, steps))
    return AxisSlices(numbers, *bounds)


def _read_numbers(name: str, out: Rewriter) -> Numbers:
    known = out.constant_value(name)
    return Expression(out.cast(name, "double"), "double", out, rank=1) if known is None else known.values


def _slices_of_computed_axes(node: Node, out: Rewriter) -> AxisSlices:
    """Return a slice of every axis of the data; axes that `axes` lacks are selected completely."""
    data, starts, ends, axes = node.inputs[:4]
    numbers = range(out.rank(data))
    column = reshape(axes, (-1, 1), out)
    is_equal = out.emit("Equal", [column, out.constant(numbers, out.element_type(axes))])
    mask = Expression(out.cast(is_equal, "double"), "double", out, rank=1)
    start, end = (_masked_sum(each, mask, out) for each in (starts, ends))
    # 1 for an axis that is not sliced, which gets the start 0, the end BEYOND_ANY_SIZE and the step 1.
    is_whole = 1 - _sum_of_numbers(mask, out)
    steps = node.input(4)
    step = _masked_sum(steps, mask, out) + is_whole if steps else [1] * len(numbers)
    return AxisSlices(numbers, start, end + is_whole * BEYOND_ANY_SIZE, step)


def _masked_sum(bounds: str, mask: Expression, out: Rewriter) -> Expression:
    """Return for each axis the bound that a mask of ones and zeros selects, or 0 without a selection."""
    column = reshape(out.cast(bounds, "double"), (-1, 1), out)
    return _sum_of_numbers(Expression(column, "double", out, rank=1) * mask, out)


def _sum_of_numbers(numbers: Expression, out: Rewriter) -> Expression:
    total = out.emit("ReduceSum", [numbers.name], axes=[0], keepdims=0)
    return Expression(total, "double", out, rank=1)


def _known_indices(start: int, end: int, step: int, size: int) -> tuple[int, ...]:
    if step < 0:
        # ONNX clamps the start of a backward slice to the first element; a Python slice would be empty.
        start = max(start, -size)
    return tuple(range(*slice(start, end, step).indices(size)))


def _computed_indices(
    slices: AxisSlices, positions: Sequence[int], data: str, out: Rewriter
) -> dict[int, str]:
    """Emit the indices that the slices at `positions` select, and return their names by axis."""
    size = Expression(double_sizes(data, slices.axes, out), "double", out, rank=1)
    start, end, step = (
        each if isinstance(each, Expression) else size.constant([float(number) for number in each])
        for each in slices[1:]
    )
    if not _is_nonnegative(slices.starts):
        start = start + _is_negative(start) * size
    if not _is_nonnegative(slices.ends):
        end = end + _is_negative(end) * size
    # Clamp start and end of a forward slice to [0, size], the start of a backward slice to [0, size - 1], and
    # its end to [-1, size - 1]. Clamp by Relu: some runtimes lack Min and Max for doubles.
    if _is_nonnegative(slices.steps):
        start, end = (size - (size - each.apply("Relu")).apply("Relu") for each in (start, end))
    else:
        backward = _is_negative(step)
        highest, start, end = size - backward, start.apply("Relu"), (end + backward).apply("Relu") - backward
        start, end = (highest - (highest - each).apply("Relu") for each in (start, end))
    is_plain = not isinstance(slices.steps, Expression) and set(slices.steps) == {1}
    length = end - start if is_plain else ((end - start) / step).apply("Ceil")
    counts, *columns = (each.cast("int64").name for each in (length.apply("Relu"), start))
    if not is_plain:
        columns.append(step.cast("int64").name)
    indices = {}
    for position in positions:
        first, *strides = (out.emit("Gather", [each, out.int64(position)]) for each in columns)
        count = out.emit("Gather", [counts, out.int64([position])])
        numbers = index_range(count, out, is_compact=True)
        distance = fold("Mul", (numbers, *strides), out)
        indices[slices.axes[position]] = out.emit("Add", [distance, first])
    return indices


def _is_nonnegative(numbers: Numbers) -> bool:
    return not isinstance(numbers, Expression) and all(number >= 0 for number in numbers)


def _is_negative(value: Expression) -> Expression:
    return value.apply("Less", 0).cast("double")


@adapter("Split", 1, 2)
def move_split_input_to_attribute(node: Node, out: Rewriter) -> None:
    """Move the input `split` of version 1 to the attribute `split`, and set the default `axis` of 0."""
    sizes = node.input(1)
    attributes = {"axis": 0, **node.attributes}
    if sizes:
        # The input has the element type of the data, which may be floating-point.
        attributes["split"] = tuple(map(int, out.require_constant(sizes, "input split").values))
    out.replace(node, inputs=node.inputs[:1], attributes=attributes)


@adapter("Split", 13, 18)
def add_num_outputs(node: Node, out: Rewriter) -> None:
    """Set `num_outputs` if the node has no sizes; a dimension of 0 gets sizes of 0 instead."""
    data, parts = node.inputs[0], len(node.outputs)
    if node.input(1):
        out.replace(node)
    elif out.known_dimension(data, node.attribute("axis", 0)) == 0:
        # onnxruntime rejects a `num_outputs` that exceeds the size of the dimension.
        out.replace(node, inputs=[data, out.int64([0] * parts)])
    else:
        # Do not compute sizes even if a dimension may be 0: many runtimes support only constant sizes.
        out.replace(node, inputs=[data], attributes={**node.attributes, "num_outputs": parts})


@adapter("Split", 18, 13)
def replace_num_outputs_with_sizes(node: Node, out: Rewriter) -> None:
    """Drop `num_outputs`, and add the input with sizes if the sizes of outputs may differ."""
    attributes = node.without("num_outputs")
    if node.input(1):
        out.replace(node, attributes=attributes)
        return
    data, axis, parts = node.inputs[0], node.attribute("axis", 0), len(node.outputs)
    size = out.known_dimension(data, axis)
    if size is None:
        out.replace(node, inputs=[data, _computed_sizes(data, axis, parts, out)], attributes=attributes)
        return
    # Split-18 rounds the sizes up, so the last output is the smallest.
    part = -(-size // parts)
    last = size - part * (parts - 1)
    if last < 0:
        reason = f"{size} elements cannot be split into {parts} parts of {part}"
        raise CannotConvert(reason, "node.invalid")
    inputs = [data] if part == last else [data, out.int64([*[part] * (parts - 1), last])]
    out.replace(node, inputs=inputs, attributes=attributes)


@adapter("Split", 13, 11)
def move_sizes_to_attribute(node: Node, out: Rewriter) -> None:
    """Move constant sizes to the attribute; for computed sizes, emit one Slice for each output."""
    data, sizes = node.inputs[0], node.input(1)
    known = out.constant_value(sizes)
    if not sizes or known is not None:
        split = {} if known is None else {"split": known.values}
        out.replace(node, inputs=[data], attributes={**node.attributes, **split})
        return
    axis = out.int64([node.attribute("axis", 0)])
    end = out.int64([0])
    for position, part in enumerate(node.outputs):
        start, index = end, out.int64([position])
        end = out.emit("Add", [start, out.emit("Gather", [sizes, index], axis=0)])
        # Skip an omitted output; the next output still starts after the skipped elements.
        if part:
            out.emit("Slice", [data, start, end, axis], [part])


@adapter("Split", 2, 1)
def add_default_axis(node: Node, out: Rewriter) -> None:
    """Add the default `axis` of 0, which version 1 does not define."""
    require_supported_types(node, out)
    out.replace(node, attributes={"axis": 0, **node.attributes})


def _computed_sizes(data: str, axis: int, parts: int, out: Rewriter) -> str:
    """Return the sizes of the parts: the dimension / `parts`, rounded up, and the rest for the last part."""
    size = Expression(slice_dimension(data, axis, out), "int64", out, rank=1)
    part = (size + (parts - 1)) / parts
    last = size - part * (parts - 1)
    return out.emit("Concat", [*[part.name] * (parts - 1), last.name], axis=0)
