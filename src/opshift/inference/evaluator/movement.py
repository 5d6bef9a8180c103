"""Evaluator rules of operators that move elements without changing them."""

from __future__ import annotations

from itertools import accumulate
from math import prod

from opshift.inference.constants import INTEGER_RANGES
from opshift.inference.evaluator import elements as moves
from opshift.inference.evaluator.elements import Dims, Elements
from opshift.inference.evaluator.rule_table import (
    EvaluatedNode,
    Outputs,
    UnknownValue,
    axes_of,
    axis_of,
    rule,
)
from opshift.model.node import Tensor


@rule("Identity")
def identity(node: EvaluatedNode) -> Outputs:
    """Return the input."""
    return [node.elements(0)]


@rule("Reshape")
def reshape(node: EvaluatedNode) -> Outputs:
    """Arrange the elements in the given shape; 0 copies a dimension, and -1 is computed."""
    data, shape = node.elements(0), node.setting("shape")
    if shape is None:
        raise UnknownValue
    dims = list(shape)
    if not node.integer("allowzero", 0):
        dims = [
            data.dims[axis] if not size and axis < len(data.dims) else size for axis, size in enumerate(dims)
        ]
        if any(not size for size in shape[len(data.dims) :]):
            raise UnknownValue
    if dims.count(-1) == 1:
        rest = -prod(dims)
        if rest == 0:  # if the result is empty, any size in place of -1 is correct
            raise UnknownValue
        dims[dims.index(-1)] = len(data.values) // rest
    return [node.reshaped(data, tuple(dims))]


@rule("Squeeze")
def squeeze(node: EvaluatedNode) -> Outputs:
    """Remove the given axes, or by default every dimension of 1."""
    data, given = node.elements(0), node.setting("axes")
    if given is None:
        return [node.reshaped(data, tuple(size for size in data.dims if size != 1))]
    axes = axes_of(given, len(data.dims))
    if not axes or any(data.dims[axis] != 1 for axis in axes):
        raise UnknownValue
    return [node.reshaped(data, tuple(size for axis, size in enumerate(data.dims) if axis not in axes))]


@rule("Unsqueeze")
def unsqueeze(node: EvaluatedNode) -> Outputs:
    """Insert dimensions of 1; `axes` are their positions in the output."""
    data, given = node.elements(0), node.setting("axes")
    if given is None:
        raise UnknownValue
    rank = len(data.dims) + len(given)
    axes, sizes = set(axes_of(given, rank)), iter(data.dims)
    return [node.reshaped(data, tuple(1 if axis in axes else next(sizes) for axis in range(rank)))]


@rule("Flatten")
def flatten(node: EvaluatedNode) -> Outputs:
    """Arrange the elements as a matrix: the dimensions before `axis` form the rows."""
    data, axis = node.elements(0), node.integer("axis", 1)
    if not -len(data.dims) <= axis <= len(data.dims):
        raise UnknownValue
    split = axis if axis >= 0 else axis + len(data.dims)
    return [node.reshaped(data, (prod(data.dims[:split]), prod(data.dims[split:])))]


@rule("Transpose")
def transpose(node: EvaluatedNode) -> Outputs:
    """Reorder the dimensions by `perm`, or by default reverse them."""
    data = node.elements(0)
    axes = node.node.attribute("perm") or tuple(reversed(range(len(data.dims))))
    if sorted(axes) != list(range(len(data.dims))):
        raise UnknownValue
    node.require_size(data.dims)
    return [moves.transpose(data, axes)]


@rule("Concat")
def concat(node: EvaluatedNode) -> Outputs:
    """Join the inputs; an unknown 1-D integer input of known length contributes unknown elements."""
    known = [each for each in node.inputs if each is not None]
    if (
        not known
        or len({each.element_type for each in known}) > 1
        or len({len(each.dims) for each in known}) > 1
    ):
        raise UnknownValue
    first = known[0]
    if not first.dims:
        raise UnknownValue
    axis = node.axis("axis", len(first.dims))
    parts = [
        _unknown_list(node, position, first) if each is None else each
        for position, each in enumerate(node.inputs)
    ]
    if len({each.dims[:axis] + each.dims[axis + 1 :] for each in parts}) > 1:
        raise UnknownValue
    node.require_size((prod(first.dims[:axis]), sum(prod(each.dims[axis:]) for each in parts)))
    return [moves.join(parts, axis)]


def _unknown_list(node: EvaluatedNode, position: int, known: Elements) -> Elements:
    """Return an unknown 1-D integer input of known length as unknown elements."""
    if len(known.dims) != 1 or known.element_type not in INTEGER_RANGES:
        raise UnknownValue
    shape = node.scope.shape(node.node.inputs[position])
    if shape is None or len(shape) != 1 or shape[0] is None:
        raise UnknownValue
    node.require_size((shape[0],))
    return Tensor(known.element_type, (shape[0],), (None,) * shape[0])


@rule("Gather")
def gather(node: EvaluatedNode) -> Outputs:
    """Select elements along an axis; negative indices count from the end."""
    data, indices = node.elements(0), node.integers(1)
    axis = node.axis("axis", len(data.dims), 0)
    size, index_dims = data.dims[axis], node.elements(1).dims
    if not all(-size <= index < size for index in indices):
        raise UnknownValue
    node.require_size((*data.dims[:axis], *index_dims, *data.dims[axis + 1 :]))
    return [moves.take(data, axis, [index % size for index in indices], index_dims)]


@rule("Slice")
def slice_(node: EvaluatedNode) -> Outputs:
    """Select ranges along the given axes, or by default along the first axes."""
    data = node.elements(0)
    starts, ends = node.setting("starts"), node.setting("ends")
    if starts is None or ends is None or len(starts) != len(ends):
        raise UnknownValue
    axes, steps = node.setting("axes"), node.setting("steps") if node.version.input_named("steps") else None
    selected = axes_of(range(len(starts)) if axes is None else axes, len(data.dims))
    strides = (1,) * len(starts) if steps is None else steps
    if not len(selected) == len(strides) == len(starts) or 0 in strides:
        raise UnknownValue
    for axis, start, end, step in zip(selected, starts, ends, strides, strict=True):
        chosen = _sliced_positions(data.dims[axis], start, end, step)
        if len(chosen) < data.dims[axis] or step < 0:
            node.require_size((*data.dims[:axis], len(chosen), *data.dims[axis + 1 :]))
            data = moves.take(data, axis, chosen)
    return [data]


def _sliced_positions(size: int, start: int, end: int, step: int) -> range:
    """Return the selected positions; negative bounds count from the end, and bounds are clamped to `size`."""
    # Unknown: onnxruntime reads the largest end as "to the start", unlike the specification.
    if step < 0 and end in (2**31 - 1, 2**63 - 1):
        raise UnknownValue
    low, high = (0, size) if step > 0 else (-1, size - 1)
    first = min(max(start + size if start < 0 else start, 0), high)
    last = min(max(end + size if end < 0 else end, low), high)
    return range(first, last, step)


@rule("Split")
def split(node: EvaluatedNode) -> Outputs:
    """Cut the input into parts of the given lengths, or of equal lengths."""
    data = node.elements(0)
    axis = node.axis("axis", len(data.dims), 0)
    size, lengths, count = data.dims[axis], node.setting("split"), len(node.node.outputs)
    if lengths is None:
        part = -(-size // count)
        if node.integer("num_outputs", count) != count or (
            size % count and "num_outputs" not in node.version.attributes
        ):
            raise UnknownValue
        lengths = (*(part,) * (count - 1), size - part * (count - 1))
    if len(lengths) != count or min(lengths) < 0 or sum(lengths) != size:
        raise UnknownValue
    node.require_size(data.dims)
    ends = accumulate(lengths) if count <= len(data.values) + 64 else ()
    return [moves.take(data, axis, range(end - part, end)) for end, part in zip(ends, lengths, strict=False)]


@rule("Expand")
def expand(node: EvaluatedNode) -> Outputs:
    """Broadcast the input and the given shape to common dimensions."""
    data, shape = node.elements(0), node.integers(1)
    dims = moves.broadcast_dims([data.dims, shape])
    if dims is None:
        raise UnknownValue
    node.require_size(dims)
    return [moves.expand(data, dims)]


@rule("Tile")
def tile(node: EvaluatedNode) -> Outputs:
    """Repeat the input along each axis."""
    if node.version.input_named("tiles"):  # version 1 repeats along a single axis
        raise UnknownValue
    data, repeats = node.elements(0), node.integers(1)
    if len(repeats) != len(data.dims) or min(repeats, default=0) < 0:
        raise UnknownValue
    dims: Dims = tuple(size * count for size, count in zip(data.dims, repeats, strict=True))
    node.require_size(dims)
    for axis, count in enumerate(repeats):
        if count != 1:
            data = moves.take(data, axis_of(axis, len(repeats)), [*range(data.dims[axis])] * count)
    return [data]
