"""Output shapes of reductions and of Det."""

from opshift.model.types import Shape
from opshift.registry.shapes.dims import normalize_axes, normalize_axis, unknown, with_dims, without_axes
from opshift.registry.shapes.rule_table import Shapes, data_rule, rule
from opshift.registry.shapes.shape_context import ShapeContext


@rule("reduce")
def reduce(node: ShapeContext) -> Shapes:
    """Replace the sizes of the axes by 1, or remove the axes if `keepdims` is 0.

    Without axes, all dimensions are reduced, or none if `noop_with_empty_axes` is set.
    """
    data, axes = node.shape(0), node.setting("axes")
    if axes.absent or axes.length == 0:
        if node.integer("noop_with_empty_axes", 0):
            return [data]
        if not _keeps_dims(node):
            return [()]
        return [None if data is None else (1,) * len(data)]
    if data is None:
        return [None]
    known = normalize_axes(axes.values, len(data))
    if known is not None:
        return [_reduced_shape(node, data, known)]
    if axes.values is not None and None not in axes.values:
        return [None]
    if _keeps_dims(node):
        return [unknown(len(data))]
    return [unknown(len(data) - 1) if axes.length == 1 and data else None]


@data_rule("arg_reduce")
def arg_reduce(node: ShapeContext, data: Shape) -> Shapes:
    """Replace the size of one axis by 1, or remove the axis if `keepdims` is 0."""
    if not data:
        return [None]
    axis = normalize_axis(node.integer("axis", 0), len(data))
    if axis is None:
        return [unknown(len(data) if _keeps_dims(node) else len(data) - 1)]
    return [_reduced_shape(node, data, (axis,))]


@data_rule("determinant")
def determinant(node: ShapeContext, data: Shape) -> Shapes:
    """Remove the last two dimensions, the rows and columns of the matrices."""
    return [data[:-2] if len(data) >= 2 else None]


def _keeps_dims(node: ShapeContext) -> bool:
    return node.integer("keepdims", 1) != 0


def _reduced_shape(node: ShapeContext, data: Shape, axes: tuple[int, ...]) -> Shape:
    return with_dims(data, dict.fromkeys(axes, 1)) if _keeps_dims(node) else without_axes(data, axes)
