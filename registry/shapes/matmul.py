"""Shapes of matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from opshift.registry.shapes.context import Shape, ShapeContext
from opshift.registry.shapes.dims import broadcast
from opshift.registry.shapes.reading import input_shape, integer
from opshift.registry.shapes.table import rule


@rule("matmul")
def matmul(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the product of the first two inputs, as in NumPy."""
    return [_product(input_shape(node, 0), input_shape(node, 1))]


@rule("quantized_matmul")
def quantized_matmul(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the product of inputs 0 and 3, because each tensor has a scale and a zero point."""
    return [_product(input_shape(node, 0), input_shape(node, 3))]


@rule("gemm")
def gemm(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer rows of the first input and columns of the second, after optional transposition."""
    first, second = input_shape(node, 0), input_shape(node, 1)
    rows = first[1 if integer(node, "transA", 0) else 0] if _is_matrix(first) else None
    columns = second[0 if integer(node, "transB", 0) else 1] if _is_matrix(second) else None
    return [(rows, columns)]


def _product(first: Shape | None, second: Shape | None) -> Shape | None:
    """Return the shape of a product; a 1-D operand is a row or column that the result omits."""
    if not first or not second:
        return None
    batch = broadcast([first[:-2], second[:-2]]) or ()
    rows = first[-2:-1]
    columns = second[-1:] if len(second) > 1 else ()
    return (*batch, *rows, *columns)


def _is_matrix(shape: Shape | None) -> TypeGuard[tuple[int | None, int | None]]:
    return shape is not None and len(shape) == 2
