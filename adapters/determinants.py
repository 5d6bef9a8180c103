"""Det: the sum over all permutations that defines it, for small matrices."""

from __future__ import annotations

from itertools import permutations

from opshift.adapters.casts import cast
from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

LARGEST = 4


@adapter("Det", 11, 10)
def permutations_are_summed(node: Node, out: Rewriter) -> None:
    """Each permutation multiplies an element of every row; an odd number of swaps counts negative."""
    data = node.inputs[0]
    shape = out.shape(data)
    size = shape[-1] if shape else None
    if shape is None or size is None or not 0 < size <= LARGEST:
        raise CannotConvert(
            f"the matrices in {data!r} are not known to be of size 1 to {LARGEST}",
            remedy="compute it outside the model, or convert to opset 11 or later",
        )
    out.concede("approximate", "the determinant is summed up in another order than a factorisation does")
    element_type = out.element_type(data)
    value = data if element_type in ("float", "double") else cast(data, "float", out)
    rank = len(shape)
    rows = [_picked(value, row, rank - 2, out) for row in range(size)]
    elements = [[_picked(row, column, rank - 2, out) for column in range(size)] for row in rows]
    total = ""
    for order in permutations(range(size)):
        product = elements[0][order[0]]
        for row in range(1, size):
            product = out.emit("Mul", [product, elements[row][order[row]]])
        total = out.emit("Sub" if _is_odd(order) else "Add", [total, product]) if total else product
    cast(total, element_type, out, node.outputs)


def _picked(value: str, place: int, axis: int, out: Rewriter) -> str:
    return out.emit("Gather", [value, out.constant(place, "int64")], axis=axis)


def _is_odd(order: tuple[int, ...]) -> bool:
    swaps = sum(one > other for at, one in enumerate(order) for other in order[at + 1 :])
    return swaps % 2 == 1
