"""Matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from opshift.registry.shapes.context import Shape, ShapeContext
from opshift.registry.shapes.dims import broadcast
from opshift.registry.shapes.reading import input_shape, integer
from opshift.registry.shapes.table import rule


@rule("matmul")
def matmul(node: ShapeContext) -> Sequence[Shape | None]:
    """Numpy's matmul of the first two inputs."""
    return [_product(input_shape(node, 0), input_shape(node, 1))]


@rule("quantized_matmul")
def quantized_matmul(node: ShapeContext) -> Sequence[Shape | None]:
    """Numpy's matmul of the inputs 0 and 3; scales and zero points stand between and behind."""
    return [_product(input_shape(node, 0), input_shape(node, 3))]


@rule("gemm")
def gemm(node: ShapeContext) -> Sequence[Shape | None]:
    """A matrix: rows of the first input, columns of the second, each transposed if asked."""
    first, second = input_shape(node, 0), input_shape(node, 1)
    rows = first[1 if integer(node, "transA", 0) else 0] if _is_matrix(first) else None
    columns = second[0 if integer(node, "transB", 0) else 1] if _is_matrix(second) else None
    return [(rows, columns)]


def _product(first: Shape | None, second: Shape | None) -> Shape | None:
    """A 1-D operand stands for a row or a column, which the result does not have."""
    if not first or not second:
        return None
    batch = broadcast([first[:-2], second[:-2]]) or ()
    rows = first[-2:-1]
    columns = second[-1:] if len(second) > 1 else ()
    return (*batch, *rows, *columns)


def _is_matrix(shape: Shape | None) -> TypeGuard[tuple[int | None, int | None]]:
    return shape is not None and len(shape) == 2
