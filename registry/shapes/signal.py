"""Shapes of Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.registry.shapes.context import Shape, ShapeContext
from opshift.registry.shapes.dims import axis_in, unknown
from opshift.registry.shapes.reading import input_shape, integer, scalar, scalar_setting
from opshift.registry.shapes.table import rule


@rule("dft")
def dft(node: ShapeContext) -> Sequence[Shape | None]:
    """Replace the axis by the length of the transform, or by the length of a one-sided spectrum.

    The last dimension is 1 for real and 2 for complex values.
    """
    data, onesided = input_shape(node, 0), integer(node, "onesided", 0)
    if not data:
        return [None]
    real = bool(onesided and integer(node, "inverse", 0))
    axis = axis_in(scalar_setting(node, "axis", -2), len(data))
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
    frame, step = _frame_length(node, signal), scalar(node, 1)
    if frame is None:
        return [(batch, None, None, 2)]
    frames = None if signal is None or not step or step < 0 else (signal - frame) // step + 1
    return [(batch, frames, frame // 2 + 1 if integer(node, "onesided", 1) else frame, 2)]


def _transform_length(node: ShapeContext, dim: int | None, real: bool) -> int | None:
    """Return the length in the input, or that of the axis; a one-sided inverse has an even length."""
    if node.input_count > 1:
        return scalar(node, 1)
    if dim is None or not real:
        return dim
    return 2 * (dim - 1)


def _frame_length(node: ShapeContext, signal: int | None) -> int | None:
    """Return the length in the input, or that of the window, or that of the signal."""
    declared, shape = scalar(node, 3), input_shape(node, 2)
    if declared is not None:
        return declared
    if shape is not None:
        return shape[0] if len(shape) == 1 else None
    return signal if node.input_count <= 2 else None
