"""Expand: values repeated, which Tile does where it is known how often, and a product with ones elsewhere."""

from __future__ import annotations

from opshift.adapters.casts import WIDER, cast
from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

PRODUCTS = frozenset({"float16", "float", "double", "int32", "int64", "uint32", "uint64", *WIDER})


@adapter("Expand", 8, 7)
def repeated_as_often_as_needed(node: Node, out: Rewriter) -> None:
    """Dimensions of one are repeated; without known ranks a product, or a conjunction, expands."""
    data, shape = node.inputs
    rank, length = out.known_rank(data), out.shape(shape)
    if rank is not None and length and length[0] is not None:
        _repeat(node, rank, length[0], out)
        return
    element_type = out.element_type(data)
    if element_type == "bool":
        out.emit("And", [data, _filled(shape, "bool", True, out)], node.outputs)
    elif element_type in PRODUCTS:
        wide = WIDER.get(element_type, element_type)
        value = data if wide == element_type else cast(data, wide, out)
        product = out.emit("Mul", [value, _filled(shape, wide, 1, out)])
        cast(product, element_type, out, node.outputs)
    else:
        raise CannotConvert(
            f"the rank of {data!r}, or of what it expands to, is not known",
            remedy="state the shapes of its inputs, or convert to opset 8 or later",
        )


def _repeat(node: Node, rank: int, length: int, out: Rewriter) -> None:
    data, shape = node.inputs
    count = max(rank, length)
    if rank < count:
        data = out.emit("Unsqueeze", [data], axes=list(range(count - rank)))
    sizes, wanted = out.shape(node.inputs[0]), out.constant_value(shape)
    if wanted is not None and sizes is not None:
        given = [*[1] * (count - length), *wanted.values]
        pairs = list(zip([*[1] * (count - rank), *sizes], given, strict=True))
        if all(size is not None or target == 1 for size, target in pairs):
            times = out.constant([target if size == 1 else 1 for size, target in pairs], "int64")
            out.emit("Tile", [data, times], node.outputs)
            return
    if length < count:
        ones = out.constant([1] * (count - length), "int64")
        shape = out.emit("Concat", [ones, shape], axis=0)
    out.emit("Tile", [data, _times(data, shape, out)], node.outputs)


def _times(data: str, shape: str, out: Rewriter) -> str:
    """How often each dimension is repeated: as the shape says if it is one, else once."""
    one = out.constant([1], "int64")
    is_one = cast(out.emit("Equal", [out.emit("Shape", [data]), one]), "int64", out)
    more = out.emit("Mul", [is_one, out.emit("Sub", [shape, one])])
    return out.emit("Add", [more, one])


def _filled(shape: str, element_type: str, value: int, out: Rewriter) -> str:
    """A tensor of a computed shape that holds one value."""
    none = out.emit("Sub", [shape, shape])
    ones = out.emit("Add", [none, out.constant([1], "int64")])
    single = out.emit("Reshape", [out.constant([value], element_type), ones])
    return out.emit("Tile", [single, shape])
