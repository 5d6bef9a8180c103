"""Shapes of matrix products."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeGuard

from opshift.registry.shapes.dims import broadcast, normalize_axis, unify, unknown
from opshift.registry.shapes.node_reading import (
    constant_scalar,
    input_shape,
    integer_attribute,
    scalar_setting,
    string_attribute,
)
from opshift.registry.shapes.rule_table import Shape, ShapeContext, rule


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
    rows = first[1 if integer_attribute(node, "transA", 0) else 0] if _is_matrix(first) else None
    columns = second[0 if integer_attribute(node, "transB", 0) else 1] if _is_matrix(second) else None
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


_TERM = re.compile(r"[A-Za-z]*(?:\.\.\.[A-Za-z]*)?")


@rule("einsum")
def einsum(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer one dimension per label of the output term, and the dimensions of the ellipsis."""
    left, arrow, right = string_attribute(node, "equation").replace(" ", "").partition("->")
    terms = left.split(",")
    output = right if arrow else _implicit_output(left)
    if len(terms) != node.input_count or not all(_TERM.fullmatch(term) for term in [*terms, output]):
        return [None]
    labels: dict[str, Shape | None] = {}
    ellipsis_shapes: list[Shape | None] = []
    for position, term in enumerate(terms):
        _bind_labels(term, input_shape(node, position), labels, ellipsis_shapes)
    before, dots, after = output.partition("...")
    middle = broadcast(ellipsis_shapes) if dots else ()
    if middle is None:
        return [None]
    return [(*_dims(before, labels), *middle, *_dims(after, labels))]


def _implicit_output(left: str) -> str:
    """Return the output of an equation without arrow: the ellipsis, then labels that occur once, sorted."""
    once = sorted(label for label in set(left) if label.isalpha() and left.count(label) == 1)
    return ("..." if "..." in left else "") + "".join(once)


def _bind_labels(
    term: str, shape: Shape | None, labels: dict[str, Shape | None], ellipsis_shapes: list[Shape | None]
) -> None:
    before, dots, after = term.partition("...")
    label_count = len(before) + len(after)
    if shape is not None and (len(shape) < label_count or (len(shape) > label_count and not dots)):
        shape = None
    end = 0 if shape is None else len(shape) - len(after)
    if dots:
        ellipsis_shapes.append(None if shape is None else shape[len(before) : end])
    if shape is None:
        return
    for label, dim in zip(before + after, shape[: len(before)] + shape[end:], strict=True):
        # A label may have size 1 in one term and another size elsewhere, so 1 does not determine the size.
        labels[label] = unify(labels.get(label, (None,)), (None if dim == 1 else dim,))


def _dims(term: str, labels: dict[str, Shape | None]) -> Shape:
    return tuple((labels.get(label) or (None,))[0] for label in term)


@rule("dft")
def dft(node: ShapeContext) -> Sequence[Shape | None]:
    """Replace the axis by the length of the transform, or by the length of a one-sided spectrum.

    The last dimension is 1 for real and 2 for complex values.
    """
    data, onesided = input_shape(node, 0), integer_attribute(node, "onesided", 0)
    if not data:
        return [None]
    real = bool(onesided and integer_attribute(node, "inverse", 0))
    axis = normalize_axis(scalar_setting(node, "axis", -2), len(data))
    shape = (*data[:-1], 1 if real else 2)
    if axis is None or axis == len(data) - 1:
        return [(*unknown(len(data) - 1), shape[-1])]
    size = _transform_length(node, data[axis], real)
    if onesided and not real and size is not None:
        size = size // 2 + 1
    return [(*shape[:axis], size, *shape[axis + 1 :])]


@rule("stft")
def stft(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer batch, frames, frequency bins, and two numbers per complex value."""
    data = input_shape(node, 0)
    batch, signal = data[:2] if data is not None and len(data) == 3 else (None, None)
    frame, step = _frame_length(node, signal), constant_scalar(node, 1)
    if frame is None:
        return [(batch, None, None, 2)]
    frames = None if signal is None or not step or step < 0 else (signal - frame) // step + 1
    return [(batch, frames, frame // 2 + 1 if integer_attribute(node, "onesided", 1) else frame, 2)]


def _transform_length(node: ShapeContext, dim: int | None, real: bool) -> int | None:
    """Return the length in the input, or that of the axis; a one-sided inverse has an even length."""
    if node.input_count > 1:
        return constant_scalar(node, 1)
    if dim is None or not real:
        return dim
    return 2 * (dim - 1)


def _frame_length(node: ShapeContext, signal: int | None) -> int | None:
    """Return the length in the input, or that of the window, or that of the signal."""
    declared, shape = constant_scalar(node, 3), input_shape(node, 2)
    if declared is not None:
        return declared
    if shape is not None:
        return shape[0] if len(shape) == 1 else None
    return signal if node.input_count <= 2 else None
