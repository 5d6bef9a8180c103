"""Det of small matrices, expanded into the sum over all permutations."""

from itertools import permutations

from opshift.adapters import CannotConvert, Node, Rewriter, UnknownShape, adapter
from opshift.adapters.emit.cast import cast
from opshift.adapters.emit.expression import fold

MAX_MATRIX_SIZE = 4
"""Largest matrix that is expanded: the number of products is the factorial of the size."""

ERROR = "at most 2^-46 of the sum of the magnitudes of all products, and 1 unit in the last place"


@adapter("Det", 11, 10, error=ERROR)
def expand_det(node: Node, out: Rewriter) -> None:
    """Expand into the sum over all permutations, with products of odd permutations subtracted.

    The sum is computed in double.
    """
    data = node.inputs[0]
    size = out.known_dimension(data, -1)
    remedy = "compute the determinant outside the model, or convert to opset 11 or later"
    if size is None:
        raise UnknownShape(f"the size of the matrices in {data!r} is unknown", data, otherwise=remedy)
    if not 0 < size <= MAX_MATRIX_SIZE:
        reason = f"the size of the matrices in {data!r} is {size:,}, not between 1 and {MAX_MATRIX_SIZE}"
        raise CannotConvert(reason, "limit.exceeded", remedy=remedy)
    out.allow("approximate", "the determinant is the sum of the products of all permutations")
    element_type = out.element_type(data)
    value = data if element_type == "double" else cast(data, "double", out)
    rank = out.rank(data)
    indices = [out.int64(index) for index in range(size)]
    rows = [out.emit("Gather", [value, index], axis=rank - 2) for index in indices]
    elements = [[out.emit("Gather", [row, index], axis=rank - 2) for index in indices] for row in rows]
    total = ""
    for permutation in permutations(range(size)):
        product = fold("Mul", (elements[row][column] for row, column in enumerate(permutation)), out)
        total = out.emit("Sub" if _is_odd(permutation) else "Add", [total, product]) if total else product
    cast(total, element_type, out, node.outputs)


def _is_odd(permutation: tuple[int, ...]) -> bool:
    inversions = sum(
        first > second for position, first in enumerate(permutation) for second in permutation[position + 1 :]
    )
    return inversions % 2 == 1
