"""Expand before opset 8: Tile for known ranks, otherwise a product with ones or a conjunction with True."""

from opshift.adapters import CannotConvert, Node, Rewriter, adapter
from opshift.adapters.emit.cast import ARITHMETIC_TYPES, cast, cast_between

MULTIPLIABLE_TYPES = frozenset(
    {"float16", "float", "double", "int32", "int64", "uint32", "uint64", *ARITHMETIC_TYPES}
)
"""Element types that Mul supports before opset 14, directly or after a cast to a wider type."""


@adapter("Expand", 8, 7)
def expand_by_tiling(node: Node, out: Rewriter) -> None:
    """Repeat dimensions of size 1 by Tile; if ranks are unknown, use Mul with ones, or And with True."""
    data, shape = node.inputs
    rank, length = out.known_rank(data), out.shape(shape)
    if rank is not None and length and length[0] is not None:
        _emit_tile(node, rank, length[0], out)
        return
    element_type = out.element_type(data)
    if element_type == "bool":
        out.emit("And", [data, _full(shape, "bool", True, out)], node.outputs)
    elif element_type in MULTIPLIABLE_TYPES:
        compute_type = ARITHMETIC_TYPES.get(element_type, element_type)
        value = cast_between(data, element_type, compute_type, out)
        product = out.emit("Mul", [value, _full(shape, compute_type, 1, out)])
        cast(product, element_type, out, node.outputs)
    else:
        reason = f"the rank of {data!r} or the length of {shape!r} is unknown"
        raise CannotConvert(reason, remedy="declare the shapes of the inputs, or convert to opset 8 or later")


def _emit_tile(node: Node, rank: int, length: int, out: Rewriter) -> None:
    data, shape = node.inputs
    result_rank = out.require_rank(max(rank, length))
    if rank < result_rank:
        data = out.emit("Unsqueeze", [data], axes=list(range(result_rank - rank)))
    sizes, constant_shape = out.shape(node.inputs[0]), out.constant_value(shape)
    if constant_shape is not None and sizes is not None:
        targets = [*[1] * (result_rank - length), *constant_shape.values]
        pairs = list(zip([*[1] * (result_rank - rank), *sizes], targets, strict=True))
        # A target of 1 never repeats a dimension, even if its size is unknown.
        if all(size is not None or target == 1 for size, target in pairs):
            repeats = out.int64([target if size == 1 else 1 for size, target in pairs])
            out.emit("Tile", [data, repeats], node.outputs)
            return
    if length < result_rank:
        ones = out.int64([1] * (result_rank - length))
        shape = out.emit("Concat", [ones, shape], axis=0)
    out.emit("Tile", [data, _repeats(data, shape, out)], node.outputs)


def _repeats(data: str, shape: str, out: Rewriter) -> str:
    """Return the number of repetitions of each dimension: the target size where its size is 1, else 1."""
    one = out.int64([1])
    is_one = cast(out.emit("Equal", [out.emit("Shape", [data]), one]), "int64", out)
    additional = out.emit("Mul", [is_one, out.emit("Sub", [shape, one])])
    return out.emit("Add", [additional, one])


def _full(shape: str, element_type: str, value: int, out: Rewriter) -> str:
    """Return a tensor of a computed shape filled with one value."""
    # ConstantOfShape exists since opset 9 only: tile a single element of the same rank.
    zeros = out.emit("Sub", [shape, shape])
    ones = out.emit("Add", [zeros, out.int64([1])])
    single = out.emit("Reshape", [out.constant([value], element_type), ones])
    return out.emit("Tile", [single, shape])
