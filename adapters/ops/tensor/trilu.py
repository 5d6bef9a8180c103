"""Adapters of Trilu (introduced in opset 14) and EyeLike (opset 9), which compare columns and rows."""

import operator
from collections.abc import Iterator

from opshift.adapters import Node, Rewriter, Tensor, adapter
from opshift.adapters.emit.expression import cast
from opshift.adapters.emit.shapes import MAX_CONSTANT_DATA, dimension, dimension_tensor, index_range, reshape
from opshift.model.element_types import BY_NUMBER


@adapter("Trilu", 14, 13)
def mask_triangle(node: Node, out: Rewriter) -> None:
    """Replace the elements outside the triangle with zeros by Where, or by And for booleans."""
    data = node.inputs[0]
    element_type = out.element_type(data)
    outside = _outside_mask(node, out)
    if element_type == "bool":
        out.emit("And", [data, out.emit("Not", [outside])], node.outputs)
        return
    zero = b"" if element_type == "string" else 0 if "int" in element_type else 0.0
    out.emit("Where", [outside, out.constant(zero, element_type), data], node.outputs, opset=16)


def _outside_mask(node: Node, out: Rewriter) -> str:
    """Return a mask of the last two dimensions that is true outside the triangle."""
    op_type, compare = ("Less", operator.lt) if node.attribute("upper", 1) else ("Greater", operator.gt)
    distances = _distances(node.inputs[0], out)
    diagonal = out.constant_value(node.input(1)) if node.input(1) else Tensor("int64", (), (0,))
    if diagonal and isinstance(distances, Tensor):
        mask = tuple(compare(each, diagonal.values[0]) for each in distances.values)
        return out.tensor(Tensor("bool", distances.dims, mask))
    limit = cast(node.input(1), "float", out) if node.input(1) else out.constant(0.0, "float")
    return out.emit(op_type, [out.tensor(distances) if isinstance(distances, Tensor) else distances, limit])


def _distances(data: str, out: Rewriter) -> Tensor | str:
    """Return `column - row` for each element of the last two dimensions, as float32."""
    # float32, because Less and Greater do not support integers before opset 9.
    rank = out.rank(data)
    rows, columns = (dimension(data, rank - offset, out) for offset in (2, 1))
    if isinstance(rows, int) and isinstance(columns, int) and rows * columns <= MAX_CONSTANT_DATA:
        return Tensor("float", (rows, columns), tuple(_known_distances(rows, columns)))
    across, down = (index_range(dimension_tensor(size, out), out) for size in (columns, rows))
    distance = out.emit("Sub", [across, reshape(down, (-1, 1), out)])
    return cast(distance, "float", out)


def _known_distances(rows: int, columns: int) -> Iterator[int]:
    """Yield `column - row` for each element of a matrix."""
    # Count elements instead of rows, because a matrix without columns may have any number of rows.
    return (index % columns - index // columns for index in range(rows * columns))


@adapter("EyeLike", 9, 8)
def compare_diagonal(node: Node, out: Rewriter) -> None:
    """Emit a constant matrix; if it is large or of unknown size, compare row and column indices."""
    number, k = node.attribute("dtype"), node.attribute("k", 0)
    element_type = BY_NUMBER[number].name if number else out.element_type(node.inputs[0])
    # The rank of the input need not be known: EyeLike requires rank 2.
    rows, columns = (dimension(node.inputs[0], axis, out) for axis in (0, 1))
    if isinstance(rows, int) and isinstance(columns, int) and rows * columns <= MAX_CONSTANT_DATA:
        values = [distance == k for distance in _known_distances(rows, columns)]
        number_type = bool if element_type == "bool" else int if "int" in element_type else float
        matrix = Tensor(element_type, (rows, columns), tuple(map(number_type, values)))
        out.replace(node, op_type="Identity", inputs=[out.tensor(matrix)], attributes={})
        return
    across, down = (
        # Sub broadcasts a row and a column to the matrix.
        reshape(index_range(dimension_tensor(size, out), out), shape, out)
        for size, shape in ((columns, (1, -1)), (rows, (-1, 1)))
    )
    distances = out.emit("Sub", [across, down])
    cast(out.emit("Equal", [distances, out.int64(k)]), element_type, out, node.outputs)
