"""Unique (introduced in opset 11), as a comparison of all pairs of elements or slices."""

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor, adapter
from opshift.adapters.emit.cast import FLOAT_TYPES, cast
from opshift.adapters.emit.shapes import (
    computed_dimension,
    dimension,
    index_range,
    reshape,
    shape_tensor,
)

COMPARISON_OPSET = 9
"""Opset of the emitted comparisons: the first that compares integers."""


@adapter("Unique", 11, 10)
def compare_all_pairs(node: Node, out: Rewriter) -> None:
    """Compare all elements pairwise, select the first of equal elements, and count how many precede it."""
    axis = node.attribute("axis")
    rows = _rows(node.inputs[0], axis, out)
    numbers = index_range(computed_dimension(rows, 0, out), out)
    less, same = _compare(rows, axis is not None, out)
    earliest = out.emit("ArgMax", [same], axis=0, keepdims=0)
    is_first = out.emit("Equal", [earliest, numbers])
    firsts = reshape(out.emit("NonZero", [is_first]), (-1,), out)
    precedes = less
    if not node.attribute("sorted", 1):
        is_earlier = out.emit("Less", [reshape(numbers, (-1, 1), out), earliest], opset=COMPARISON_OPSET)
        precedes = cast(is_earlier, "float", out)
    # The output position of an element is the number of distinct elements that precede it.
    firsts_before = out.emit("Gather", [precedes, firsts], axis=0)
    positions = cast(out.emit("ReduceSum", [firsts_before], axes=[0], keepdims=0), "int64", out)
    indices = _in_output_order(firsts, positions, out)
    if node.output(0):
        data = node.inputs[0]
        values, axis = (reshape(data, (-1,), out), 0) if axis is None else (data, axis % out.rank(data))
        out.emit("Gather", [values, indices], [node.output(0)], axis=axis)
    for value, name in ((indices, node.output(1)), (positions, node.output(2))):
        if name:
            out.emit("Identity", [value], [name])
    if node.output(3):
        counts = cast(out.emit("ReduceSum", [same], axes=[0], keepdims=0), "int64", out)
        out.emit("Gather", [counts, indices], [node.output(3)], axis=0)


def _rows(data: str, axis: int | None, out: Rewriter) -> str:
    """Return a matrix with one row for each element, or for each slice along the axis."""
    element_type = out.element_type(data)
    if element_type not in FLOAT_TYPES and "int" not in element_type:
        reason = f"{data!r} has element type {element_type}, which the operator Less does not support"
        raise CannotConvert(reason, "type.unsupported", subject=element_type)
    if axis is None:
        return reshape(data, (-1, 1), out)
    rank = out.rank(data)
    order = [axis % rank, *(other for other in range(rank) if other != axis % rank)]
    rows = out.emit("Flatten", [out.emit("Transpose", [data], perm=order)], axis=1)
    if all(out.known_dimension(data, other) for other in order[1:]):
        return rows
    # Slices without elements are equal. A column of zeros is one to compare.
    shape = shape_tensor((dimension(data, order[0], out), 1), out)
    zeros = out.emit("ConstantOfShape", [shape], value=Tensor(element_type, (1,), (0,)))
    return out.emit("Concat", [rows, zeros], axis=1)


def _compare(rows: str, has_columns: bool, out: Rewriter) -> tuple[str, str]:
    """Return two square matrices: 1 where a row is less than the row of the column, and where both are equal.

    Rows of several elements compare by their first difference.
    """
    sides = [out.emit("Unsqueeze", [rows], axes=[axis]) for axis in (1, 0)]
    below = cast(out.emit("Less", sides, opset=COMPARISON_OPSET), "float", out)
    above = cast(out.emit("Greater", sides, opset=COMPARISON_OPSET), "float", out)
    sign = out.emit("Sub", [below, above])
    if has_columns:
        # Keep only the sign of the first column that differs.
        column = out.emit("ArgMax", [out.emit("Abs", [sign])], axis=2, keepdims=0)
        choice = out.constant([0.0, 1.0], "float")
        is_first = out.emit("OneHot", [column, computed_dimension(rows, 1, out), choice])
        sign = out.emit("Mul", [sign, is_first])
    order = out.emit("ReduceSum", [sign], axes=[2], keepdims=0)
    differs = out.emit("Abs", [order])
    return out.emit("Relu", [order]), out.emit("Sub", [out.constant(1.0, "float"), differs])


def _in_output_order(firsts: str, positions: str, out: Rewriter) -> str:
    """Return the indices of the distinct elements in the order of the output."""
    column = reshape(index_range(computed_dimension(firsts, 0, out), out), (-1, 1), out)
    is_here = out.emit("Equal", [column, out.emit("Gather", [positions, firsts], axis=0)])
    order = out.emit("ArgMax", [cast(is_here, "float", out)], axis=1, keepdims=0)
    return out.emit("Gather", [firsts, order], axis=0)
