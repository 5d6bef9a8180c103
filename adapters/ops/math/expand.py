"""Expand before opset 8: Tile for known ranks, otherwise a product with ones or a conjunction with True."""

from collections.abc import Sequence

from opshift.adapters import Node, Rewriter, Tensor, UnknownShape, adapter
from opshift.adapters.emit.cast import ARITHMETIC_TYPES, cast, cast_between, cast_output

MULTIPLIABLE_TYPES = frozenset(
    {"float16", "float", "double", "int32", "int64", "uint32", "uint64", *ARITHMETIC_TYPES}
)
"""Element types that Mul supports before opset 14, directly or after a cast to a wider type."""


BROADCASTING_OPSET = 7
"""First opset in which Mul and And broadcast shapes that are known only at run time."""


@adapter("Expand", 8, 7)
def expand_by_tiling(node: Node, out: Rewriter) -> None:
    """Repeat dimensions of size 1 by Tile; if sizes are unknown, use Mul with ones, or And with True."""
    data, shape = node.inputs
    rank, length = out.known_rank(data), out.known_dimension(shape, 0)
    if rank is None or length is None:
        _multiply_by_ones(node, None, out)
        return
    result_rank = out.require_rank(max(rank, length))
    sizes = (*[1] * (result_rank - rank), *(out.shape(data) or [None] * rank))
    constant = out.constant_value(shape)
    targets = (
        (*[1] * (result_rank - length), *constant.values) if constant is not None else (0,) * result_rank
    )
    # A target of 1 never repeats a dimension, even if its size is unknown.
    is_known = all(size is not None or target == 1 for size, target in zip(sizes, targets, strict=True))
    if not is_known and out.default_opset >= BROADCASTING_OPSET and _compute_type(data, out):
        _multiply_by_ones(node, length, out)
        return
    if rank < result_rank:
        data = out.emit("Unsqueeze", [data], axes=list(range(result_rank - rank)))
    if constant is not None and is_known:
        repeats = out.int64([target if size == 1 else 1 for size, target in zip(sizes, targets, strict=True)])
    else:
        if length < result_rank:
            shape = out.emit("Concat", [out.int64([1] * (result_rank - length)), shape], axis=0)
        repeats = _repeats(data, sizes if is_known else None, shape, out)
    out.emit("Tile", [data, repeats], node.outputs)


def _repeats(data: str, sizes: Sequence[int | None] | None, shape: str, out: Rewriter) -> str:
    """Return the number of repetitions of each dimension: the target size where its size is 1, else 1."""
    if sizes is not None and set(sizes) <= {1}:
        return shape
    one = out.int64([1])
    if sizes is not None:
        is_one = out.int64([int(size == 1) for size in sizes])
    else:
        is_one = cast(out.emit("Equal", [out.emit("Shape", [data]), one]), "int64", out)
    additional = out.emit("Mul", [is_one, out.emit("Sub", [shape, one])])
    return out.emit("Add", [additional, one])


def _compute_type(data: str, out: Rewriter) -> str | None:
    """Return the type in which data is multiplied by ones, `bool` for a conjunction, or `None`."""
    element_type = out.known_element_type(data) or ""
    if element_type != "bool" and element_type not in MULTIPLIABLE_TYPES:
        return None
    return ARITHMETIC_TYPES.get(element_type, element_type)


def _multiply_by_ones(node: Node, length: int | None, out: Rewriter) -> None:
    """Emit the product with ones of the given shape, whose length may be unknown.

    Raises:
        CannotConvert: the element type is unknown or has no product.
    """
    data, shape = node.inputs
    compute_type = _compute_type(data, out)
    if compute_type is None:
        reason = f"the rank of {data!r} or the length of {shape!r} is unknown"
        raise UnknownShape(reason, data, shape, otherwise="convert to opset 8 or later")
    is_bool = compute_type == "bool"
    # ConstantOfShape exists since opset 9 only: tile a single element of the same rank.
    if length is None:
        zeros = out.emit("Sub", [shape, shape])
        ones = out.emit("Add", [zeros, out.int64([1])])
        single = out.emit("Reshape", [out.constant([is_bool or 1], compute_type), ones])
    else:
        single = out.tensor(Tensor(compute_type, (1,) * out.require_rank(length), (is_bool or 1,)))
    value = cast_between(data, out.element_type(data), compute_type, out)
    product = out.emit("And" if is_bool else "Mul", [value, out.emit("Tile", [single, shape])])
    cast_output(product, compute_type, out.element_type(data), node, out)
