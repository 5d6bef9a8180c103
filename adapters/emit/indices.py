"""Emit computations of indices and axes: negative indices, computed axes, and positions in flattened data."""

from collections.abc import Mapping
from math import prod

from opshift.adapters import Rewriter, Tensor, UnknownShape
from opshift.adapters.emit.shapes import SLICE_END, index_column, reshape

INDICES_OPSET = 10
"""Opset of the emitted index arithmetic: the last opset without negative indices."""

COMPARISON_OPSET = 9
"""Opset of emitted Less and Greater: the first opset in which they compare integers."""

UNSIGNED_INTEGERS = ("uint8", "uint16", "uint32", "uint64")
"""Types of indices that cannot be negative, so that the indices need no rewrite."""

MAX_CONSTANT_INDICES = 1 << 16
"""Maximum number of indices in a constant; a larger constant would bloat the model."""

MAX_CONSTANT_POSITIONS = 1 << 12
"""Maximum number of positions along one axis in a constant; there is one such constant for each axis."""

INT64_ONE = Tensor("int64", (1,), (1,))
INT64_ZERO = Tensor("int64", (1,), (0,))


def nonnegative_axis(axis: int, data: str, out: Rewriter) -> int:
    """Return an axis of `data` as a nonnegative number.

    Raises:
        CannotConvert: The axis is negative and the rank of `data` is unknown.
    """
    return axis + out.rank(data) if axis < 0 else axis


def nonnegative_indices(indices: str, data: str, axis: int, out: Rewriter) -> str:
    """Return indices into one dimension of `data`, with the size of the dimension added to negative indices.

    Computed indices are returned unchanged if the caller allows `assume-nonnegative`.
    """
    constant = out.constant_value(indices)
    if constant is not None and all(value >= 0 for value in constant.values):
        return indices
    if constant is None and out.is_nonnegative(indices):
        return indices
    size = out.known_dimension(data, axis)
    if constant is not None and size is not None:
        shifted = tuple(value + size if value < 0 else value for value in constant.values)
        return out.tensor(Tensor(constant.element_type, constant.dims, shifted))
    reason = f"the indices {indices!r} are computed and assumed nonnegative, as required before opset 11"
    if constant is None and out.workspace.allow("assume-nonnegative", reason):
        return indices
    return add_to_negative_indices(indices, dimension_scalar(data, axis, out), out.element_type(indices), out)


def add_to_negative_indices(indices: str, size: str, element_type: str, out: Rewriter) -> str:
    """Return `indices` of type `element_type`; add `size`, an int64 scalar, to negative indices."""
    out = out.for_opset(INDICES_OPSET)
    if element_type != "int64":
        size = out.cast(size, element_type)
    shift = out.emit("Mul", [is_negative(indices, element_type, out), size])
    return out.emit("Add", [indices, shift])


def is_negative(indices: str, element_type: str, out: Rewriter) -> str:
    """Return 1 where an index is negative and 0 elsewhere, in the given element type."""
    out = out.for_opset(INDICES_OPSET)
    # A cast to float keeps the sign.
    return out.cast(is_less(indices, 0, element_type, out, float_type="float"), element_type)


def is_less(
    first: str | int, second: str | int, element_type: str, out: Rewriter, *, float_type: str = "double"
) -> str:
    """Compare indices or sizes of type `element_type` with each other, or with a number.

    From target opset 9 on, int32 and int64 are compared directly. All other operands are cast to
    `float_type`, which has to keep their order: double represents integers up to 2**53 exactly.
    """
    is_compared = out.default_opset >= COMPARISON_OPSET and element_type in ("int32", "int64")
    kind = element_type if is_compared else float_type
    operands = [
        out.constant(each, kind) if isinstance(each, int) else each if is_compared else out.cast(each, kind)
        for each in (first, second)
    ]
    return out.emit("Less", operands, opset=COMPARISON_OPSET, domain="")


def dimension_scalar(data: str, axis: int, out: Rewriter) -> str:
    """Return one dimension of a value as an int64 scalar."""
    out = out.for_opset(INDICES_OPSET)
    size = out.known_dimension(data, axis)
    if size is not None:
        return out.int64(size)
    return out.emit("Squeeze", [slice_dimension(data, axis, out)], axes=[0])


def slice_dimension(data: str, axis: int, out: Rewriter) -> str:
    """Emit one dimension as an int64 tensor of shape (1,); the axis may be negative in every opset."""
    # For axis -1, the end `axis + 1` would be 0, and select nothing.
    bounds = [out.int64([each]) for each in (axis, axis + 1 or SLICE_END, 0)]
    return out.emit("Slice", [out.emit("Shape", [data]), *bounds])


def count_axes(axes: str, rank: int, out: Rewriter) -> str:
    """Emit how often each of `rank` dimensions occurs in `axes`; both are 1-D int64 tensors."""
    # An axis may be nonnegative or negative: count both numbers.
    numbers = out.tensor(Tensor("int64", (2, 1, rank), (*range(rank), *range(-rank, 0))))
    matches = out.emit("Equal", [reshape(axes, (-1, 1), out, opset=11), numbers], opset=11)
    return out.emit("ReduceSum", [out.cast(matches, "int64")], opset=11, axes=[0, 1], keepdims=0)


def kept_axes_mask(chosen: str, out: Rewriter) -> str:
    """Emit a mask, True for dimensions with 0 in `chosen`, which counts axes as `count_axes` does."""
    return out.emit("Equal", [chosen, out.int64([0])], opset=11)


def shape_without_axes(data: str, chosen: str, out: Rewriter) -> str:
    """Emit the shape of `data` without the dimensions that `chosen` counts, see `kept_axes_mask`."""
    return out.emit("Compress", [out.emit("Shape", [data]), kept_axes_mask(chosen, out)], opset=11, axis=0)


def axis_count(axes: str, out: Rewriter) -> int | None:
    """Return the length of `axes`, a 1-D tensor, or `None` if it is unknown."""
    return out.known_dimension(axes, 0)


def gather_blocks(
    data: str, rank: int | None, element_type: str | None, indices: str, axis: int, out: Rewriter
) -> str:
    """Gather along an axis with a 1-D tensor of indices; for strings, swap the axis with the last one first.

    If dimensions follow the axis, onnxruntime's Gather copies only one string for each index. If the rank is
    `None` (unknown), strings are gathered along `axis`.
    """
    if element_type != "string" or rank is None or axis == rank - 1:
        return out.emit("Gather", [data, indices], axis=axis)
    swapped = list(range(rank))
    swapped[axis], swapped[-1] = rank - 1, axis
    columns = out.emit("Gather", [out.emit("Transpose", [data], perm=swapped), indices], axis=rank - 1)
    return out.emit("Transpose", [columns], perm=swapped)


def index_depth(indices: str, out: Rewriter) -> int:
    """Return the length of the index tuples of GatherND and ScatterND: the last dimension of `indices`.

    Raises:
        UnknownShape: the dimension is unknown.
        CannotConvert: the dimension exceeds `MAX_RANK`.
    """
    depth = out.known_dimension(indices, -1)
    if depth is None:
        reason = f"the last dimension of the index tuples {indices!r} is unknown"
        raise UnknownShape(reason, indices)
    # The tuples index the leading dimensions of a tensor, so their length is limited by the maximum rank.
    return out.require_rank(depth)


def flatten_index_tuples(data: str, indices: str, out: Rewriter) -> str:
    """Emit the row number that each index tuple selects if the indexed dimensions of `data` are flattened."""
    out = out.for_opset(INDICES_OPSET)
    depth = index_depth(indices, out)
    if depth == 0:
        # An empty tuple selects row 0, the whole tensor.
        outer_shape = out.emit("Slice", [out.emit("Shape", [indices]), out.int64([0]), out.int64([-1])])
        return out.emit("ConstantOfShape", [outer_shape], value=INT64_ZERO)
    columns = []
    for axis in range(depth):
        column = out.emit("Gather", [indices, out.int64(axis)], axis=-1)
        columns.append(_nonnegative_column(column, indices, data, axis, out))
    return _row_major(data, columns, out)


def _nonnegative_column(column: str, indices: str, data: str, axis: int, out: Rewriter) -> str:
    """Return `column`, elements of `indices`, with the size of dimension `axis` added to negative indices."""
    # Query the input `indices` first: a rewrite that queries facts about emitted values is not cached.
    if out.is_nonnegative(indices) or out.is_nonnegative(column):
        return column
    return add_to_negative_indices(column, dimension_scalar(data, axis, out), "int64", out)


def _row_major(data: str, columns: list[str], out: Rewriter) -> str:
    """Emit row-major positions; `columns` has one tensor of indices for each leading dimension of `data`."""
    flat = columns[0]
    for axis, column in enumerate(columns[1:], 1):
        scaled = out.emit("Mul", [flat, dimension_scalar(data, axis, out)])
        flat = out.emit("Add", [scaled, column])
    return flat


def flatten_element_indices(data: str, indices: str, axis: int, out: Rewriter) -> str:
    """Emit 1-D int64 positions in flattened `data` for the indices of GatherElements or ScatterElements.

    In every dimension other than `axis`, the index is the position of the element in `indices`.
    """
    out = out.for_opset(INDICES_OPSET)
    flattened = reshape(indices, (-1,), out)
    if out.element_type(indices) != "int64":
        flattened = out.cast(flattened, "int64")
    chosen = _nonnegative_column(flattened, indices, data, axis, out)
    return _row_major(data, _element_positions(indices, out.rank(data), {axis: chosen}, out), out)


def broadcast_element_indices(data: str, indices: str, axis: int, out: Rewriter) -> str:
    """Emit positions in flattened `data` for the indices of GatherElements, in the shape of `indices`.

    Along every dimension other than `axis`, the positions are a column that broadcasts.
    """
    out = out.for_opset(INDICES_OPSET)
    rank = out.rank(data)
    chosen = nonnegative_indices(indices, data, axis, out)
    if out.element_type(indices) != "int64":
        chosen = out.cast(chosen, "int64")
    columns = [
        chosen if each == axis else _position_column(indices, each, rank - 1 - each, out)
        for each in range(rank)
    ]
    return _row_major(data, columns, out)


def _position_column(indices: str, axis: int, trailing: int, out: Rewriter) -> str:
    """Return the positions along a dimension of `indices`, followed by `trailing` dimensions of 1."""
    size = out.known_dimension(indices, axis)
    if size is not None and size <= MAX_CONSTANT_POSITIONS:
        return out.tensor(Tensor("int64", (size, *[1] * trailing), tuple(range(size))))
    return index_column(slice_dimension(indices, axis, out), out, trailing)


def _element_positions(indices: str, rank: int, columns: Mapping[int, str], out: Rewriter) -> list[str]:
    """Return one tensor per dimension: the positions of all elements of `indices` in it, in row-major order.

    For the dimensions in `columns`, return the tensors of `columns` instead.
    """
    shape = out.shape(indices)
    known = [size for size in shape or () if size is not None]
    if len(known) == rank and prod(known) <= MAX_CONSTANT_INDICES:
        positions = enumerate(_constant_positions(known))
        return [columns.get(axis) or out.int64(column) for axis, column in positions]
    if len(columns) == rank:
        return [columns[axis] for axis in range(rank)]
    # NonZero of ones lists the positions of all elements, with one row for each dimension.
    ones = out.emit("ConstantOfShape", [out.emit("Shape", [indices])], value=INT64_ONE)
    rows = out.emit("NonZero", [ones])
    return [columns.get(axis) or out.emit("Gather", [rows, out.int64(axis)], axis=0) for axis in range(rank)]


def _constant_positions(sizes: list[int]) -> list[tuple[int, ...]]:
    strides = [prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    pairs = list(zip(strides, sizes, strict=True))
    return [tuple(position // stride % size for position in range(prod(sizes))) for stride, size in pairs]
