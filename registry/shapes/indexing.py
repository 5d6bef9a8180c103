"""Output shapes of operators that select elements, such as Gather, Slice and Unique, and of OneHot."""

import math

from opshift.model.types import Shape, Symbol
from opshift.registry.shapes.dims import normalize_axes, normalize_axis, product, unknown, with_dims
from opshift.registry.shapes.rule_table import Shapes, data_rule, rule
from opshift.registry.shapes.shape_context import ShapeContext
from opshift.registry.shapes.sizes import minimum


@data_rule("gather", rank_inputs=(0, 1))
def gather(node: ShapeContext, data: Shape) -> Shapes:
    """Replace the axis by the dimensions of the indices."""
    indices, axis = node.shape(1), normalize_axis(node.integer("axis", 0), len(data))
    return [None if indices is None or axis is None else (*data[:axis], *indices, *data[axis + 1 :])]


@data_rule("gather_nd")
def gather_nd(node: ShapeContext, data: Shape) -> Shapes:
    """Infer the output of GatherND.

    The last dimension of the indices has a size n: an index selects from the n dimensions of the data after
    the batch dimensions.
    """
    indices, batch = node.shape(1), node.integer("batch_dims", 0)
    if not indices or indices[-1] is None or batch is None:
        return [None]
    first_kept = batch + indices[-1]
    if not 0 <= batch < len(indices) or first_kept > len(data):
        return [None]
    return [(*indices[:-1], *data[first_kept:])]


@data_rule("slice", keeps_rank=True)
def slice_(node: ShapeContext, data: Shape) -> Shapes:
    """Shorten the given axes, or the first axes if none are given."""
    starts, ends, axes, steps = (node.setting(name) for name in ("starts", "ends", "axes", "steps"))
    count = starts.length
    if count is None or count > len(data):
        return [unknown(len(data))]
    selected = normalize_axes(range(count) if axes.absent else axes.values, len(data))
    strides = (1,) * count if steps.absent else steps.values or unknown(count)
    bounds = (starts.values or unknown(count), ends.values or unknown(count), strides)
    if selected is None or any(len(each) != len(selected) for each in bounds):
        return [unknown(len(data))]
    rows = zip(selected, *bounds, strict=True)
    is_positive = node.assumes_positive_sizes
    sizes = {axis: _sliced_dim(data[axis], *each, is_positive=is_positive) for axis, *each in rows}
    return [with_dims(data, sizes)]


@data_rule("top_k", keeps_rank=True)
def top_k(node: ShapeContext, data: Shape) -> Shapes:
    """Set the size of the axis to k, for values and indices."""
    axis = normalize_axis(node.integer("axis", -1), len(data))
    count = node.integer("k") if "k" in node.version.attributes else node.constant_integer(1)
    return [] if axis is None else [with_dims(data, {axis: count})] * 2


@data_rule("one_hot")
def one_hot(node: ShapeContext, indices: Shape) -> Shapes:
    """Insert an axis of size `depth`, which is input 1 and may have any numeric type."""
    values = node.constant(1)
    depth = values[0] if values is not None and len(values) == 1 else None
    size = int(depth) if isinstance(depth, int | float) and math.isfinite(depth) else None
    axis = normalize_axis(node.integer("axis", -1), len(indices) + 1)
    return [None if axis is None else (*indices[:axis], size, *indices[axis:])]


UNBOUNDED = (1 << 31) - 1
"""A slice end from this number on is the end of the axis: exporters write the largest int32 or int64."""


def _sliced_dim(
    dim: int | None, start: int | None, end: int | None, step: int | None, *, is_positive: bool
) -> int | None:
    """Return the length of a slice, or `None`; negative bounds count from the end, and bounds are clamped.

    If `is_positive`, an unknown dimension is assumed not to be 0.
    """
    if start is None or end is None or not step:
        return None
    if (dim is None or type(dim) is Symbol) and type(end) is not Symbol and end >= UNBOUNDED:
        if is_positive and (start, step) == (-1, 1):
            return 1
        end = max(end, dim or 0)  # the number of a symbol may exceed `end`
    if dim is None or (step < 0 and end >= UNBOUNDED):
        return None  # with a negative step, onnxruntime reads the largest end as the start of the axis
    if Symbol in (type(start), type(end)):
        # Symbols have no known order: only slices from 0 to the dimension or to a symbol have known sizes.
        if (start, end, step) == (0, dim, 1):
            return dim
        is_cut = type(end) is Symbol and (start, step) == (0, 1) and type(dim) is not Symbol and dim > 0
        return minimum(dim, end) if is_cut else None
    low, high = (0, dim) if step > 0 else (-1, dim - 1)
    first = min(max(start + dim if start < 0 else start, 0), high)
    last = min(max(end + dim if end < 0 else end, low), high)
    return len(range(first, last, step))


@rule("compress")
def compress(node: ShapeContext) -> Shapes:
    """Infer an unknown size for the axis; without an axis, the input is flattened, so the output is 1-D."""
    if node.attribute("axis") is None:
        return [(None,)]
    return [_with_unknown_axis(node)]


@rule("unique")
def unique(node: ShapeContext) -> Shapes:
    """Infer an unknown number of unique values, and one inverse index per element or slice of the input."""
    data = node.shape(0)
    if node.attribute("axis") is None:
        return [(None,), (None,), (None if data is None else product(data),), (None,)]
    axis = normalize_axis(node.integer("axis"), None if data is None else len(data))
    length = None if data is None or axis is None else data[axis]
    return [_with_unknown_axis(node), (None,), (length,), (None,)]


def _with_unknown_axis(node: ShapeContext) -> Shape | None:
    data = node.shape(0)
    axis = normalize_axis(node.integer("axis"), None if data is None else len(data))
    return None if data is None or axis is None else with_dims(data, {axis: None})
