"""Shapes of reductions."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.registry.shapes.dims import normalize_axes, unknown
from opshift.registry.shapes.node_reading import (
    Setting,
    axis_attribute,
    input_shape,
    integer_attribute,
    setting,
    string_attribute,
)
from opshift.registry.shapes.rule_table import Shape, ShapeContext, rule


@rule("reduce")
def reduce(node: ShapeContext) -> Sequence[Shape | None]:
    """Replace the axes by 1 or remove them.

    Without axes, all dimensions are reduced, or none if `noop_with_empty_axes` is set.
    """
    data, axes = input_shape(node, 0), setting(node, "axes")
    keep = integer_attribute(node, "keepdims", 1) != 0
    if axes.absent or axes.length == 0:
        return [_without_axes(node, data, keep)]
    if data is None:
        return [None]
    known = normalize_axes(axes.values, len(data))
    return [_reduced_by_unknown_axes(data, axes, keep) if known is None else _reduced(data, known, keep)]


@rule("arg_reduce")
def arg_reduce(node: ShapeContext) -> Sequence[Shape | None]:
    """Replace one axis by 1 or remove it."""
    data = input_shape(node, 0)
    if not data:
        return [None]
    keep = integer_attribute(node, "keepdims", 1) != 0
    found = axis_attribute(node, len(data), 0)
    if found is None:
        return [unknown(len(data) if keep else len(data) - 1)]
    return [_reduced(data, (found,), keep)]


@rule("determinant")
def determinant(node: ShapeContext) -> Sequence[Shape | None]:
    """Remove the last two dimensions, which are a square matrix."""
    data = input_shape(node, 0)
    return [data[:-2] if data is not None and len(data) >= 2 else None]


@rule("loss")
def loss(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer a scalar, or one loss per label without a reduction; log-probabilities match the scores."""
    labels = input_shape(node, 1)
    return [labels if string_attribute(node, "reduction") == "none" else (), input_shape(node, 0)]


def _without_axes(node: ShapeContext, data: Shape | None, keep: bool) -> Shape | None:
    if integer_attribute(node, "noop_with_empty_axes", 0):
        return data
    if not keep:
        return ()
    return None if data is None else (1,) * len(data)


def _reduced(data: Shape, axes: tuple[int, ...], keep: bool) -> Shape:
    if keep:
        return tuple(1 if position in axes else dim for position, dim in enumerate(data))
    return tuple(dim for position, dim in enumerate(data) if position not in axes)


def _reduced_by_unknown_axes(data: Shape, axes: Setting, keep: bool) -> Shape | None:
    if axes.values is not None and None not in axes.values:
        return None
    if keep:
        return unknown(len(data))
    return unknown(len(data) - 1) if axes.length == 1 and data else None
