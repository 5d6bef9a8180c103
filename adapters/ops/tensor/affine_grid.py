"""AffineGrid (introduced in opset 20): evenly spaced points, transformed by a matrix per sample."""

from opshift.adapters import CannotConvert, Node, Rewriter, UnknownShape, adapter
from opshift.adapters.emit.expression import Expression
from opshift.adapters.emit.shapes import MAX_CONSTANT_ELEMENTS, index_range, reshape


@adapter("AffineGrid", 20, 19)
def expand_affine_grid(node: Node, out: Rewriter) -> None:
    """Rewrite as each matrix column times the positions along one axis, plus the last column.

    The first column belongs to the last axis, the width.
    """
    theta = node.inputs[0]
    axes = _axis_count(node, out)
    grid = _column(theta, axes, axes, out)
    for axis in range(axes):
        shape = [1] * (1 + axis) + [-1] + [1] * (axes - axis)
        positions = reshape(_positions(node, axis, out), shape, out)
        product = out.emit("Mul", [positions, _column(theta, axes - 1 - axis, axes, out)])
        grid = out.emit("Add", [product, grid], node.outputs if axis == axes - 1 else 1)


def _axis_count(node: Node, out: Rewriter) -> int:
    """Return 2 for images and 3 for volumes."""
    sizes, rows = out.known_dimension(node.inputs[1], 0), out.known_dimension(node.inputs[0], 1)
    if sizes is not None:
        return out.require_rank(sizes) - 2
    if rows is not None:
        return out.require_rank(rows)
    reason = "whether the grid has 2 or 3 dimensions is unknown"
    raise UnknownShape(reason, *node.inputs[:2])


def _column(theta: str, index: int, axes: int, out: Rewriter) -> str:
    """Return one column of every matrix, to be broadcast over all points."""
    column = out.emit("Gather", [theta, out.int64(index)], axis=2)
    return reshape(column, (-1, *[1] * axes, axes), out)


def _positions(node: Node, axis: int, out: Rewriter) -> str:
    """Return positions in [-1, 1]: centers of the outer points if `align_corners`, else outer edges."""
    element_type = out.element_type(node.inputs[0])
    corners = bool(node.attribute("align_corners", 0))
    known = out.constant_value(node.inputs[1])
    # The sizes start with samples and channels.
    index = 2 + axis
    size: int | None = None if known is None else int(known.values[index])
    if size == 1 and corners:
        reason = "align_corners is 1, but one point between two corners has no defined position"
        raise CannotConvert(reason, "result.undefined", remedy="set align_corners to 0")
    if size is None:
        count = out.emit("Gather", [node.inputs[1], out.int64([index])], axis=0)
    elif size > MAX_CONSTANT_ELEMENTS:
        count = out.int64([size])
    else:
        step, first = (2 / (size - 1), -1.0) if corners else (2 / size, 1 / size - 1)
        return out.constant(tuple(first + step * index for index in range(size)), element_type)
    return _computed_positions(count, corners, element_type, out)


def _computed_positions(count: str, corners: bool, element_type: str, out: Rewriter) -> str:
    """Return `1 - 2 * (count - 1 - i) / (count - 1)` with `corners`, else `(2 * i + 1) / count - 1`.

    The position of a single point between corners is undefined; onnxruntime places it at 1, the last corner.
    """
    two, one = (Expression(out.constant(number, "double"), "double", out) for number in (2.0, 1.0))
    names = index_range(count, out), count
    indices, points = (Expression(out.cast(name, "double"), "double", out) for name in names)
    doubled = indices * two
    if corners:
        intervals = points - one
        # The maximum is computed in float, because old runtimes lack Max for double.
        remaining = intervals * two - doubled
        position = one - remaining / intervals.cast("float").apply("Max", 1, opset=8).cast("double")
    else:
        position = (doubled + one) / points - one
    return position.cast(element_type).name
