"""GridSample (introduced in opset 16): gather pixels from a table.

Before version 20 it supports 2-D images only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from opshift.adapters.core.adapter_table import adapter
from opshift.adapters.core.rewriter import Rewriter, rename_output
from opshift.adapters.emit.pixel_table import (
    COMPUTE_TYPES,
    OPSET,
    PixelTap,
    as_int64,
    edge_tap,
    emit_pixel_table,
    require_image_shape,
    weighted_sum,
)
from opshift.model.element_types import BY_NAME
from opshift.model.errors import CannotConvert
from opshift.model.node import Node

OLD_MODES = {"linear": b"bilinear", "cubic": b"bicubic", "nearest": b"nearest"}

NEW_MODES = {"bilinear": "linear", "bicubic": "cubic"}

CUBIC_COEFFICIENT = -0.75
"""Coefficient of the cubic convolution kernel (Keys), as in ONNX's definition."""


class Interpolation(NamedTuple):
    """Interpolation mode, padding mode and alignment of the grid."""

    mode: str
    padding: str
    align_corners: bool


@adapter("GridSample", 20, 16)
def rename_modes(node: Node, out: Rewriter) -> None:
    """Rename the modes of 2-D images; rewrite images of other ranks as lookups."""
    if out.rank(node.inputs[0]) != 4:
        expand_grid_sample(node, out)
        return
    mode = node.attribute("mode", b"linear").decode()
    out.replace(node, attributes={**node.attributes, "mode": OLD_MODES.get(mode, mode.encode())})


@adapter("GridSample", 16, 15)
def expand_grid_sample(node: Node, out: Rewriter) -> None:
    """Rewrite each output pixel as a weighted sum of the pixels that the grid points to."""
    data, grid = node.inputs
    interpolation = _read_interpolation(node)
    if (interpolation.mode, interpolation.padding) == ("cubic", "border"):
        out.allow(
            "approximate",
            "onnxruntime clamps the pixels of cubic interpolation to the border, others the coordinate",
        )
    batch, (channels, *sizes) = require_image_shape(data, out)
    element_type = out.element_type(data)
    compute_type = element_type if interpolation.mode == "nearest" else COMPUTE_TYPES.get(element_type)
    if compute_type is None:
        raise CannotConvert(
            f"the node interpolates {element_type}, but the rounding of the result is undefined"
        )
    table = emit_pixel_table(_cast(data, compute_type, out), batch, channels, tuple(sizes), compute_type, out)
    shape = _output_shape(grid, batch, channels, len(sizes), out)
    grid = _cast(grid, "float", out)
    axes = [
        _taps(_coordinate(grid, axis, sizes, interpolation, out), size, interpolation, compute_type, out)
        for axis, size in enumerate(sizes)
    ]
    transposed = out.emit("Transpose", [weighted_sum(table, axes, out)], opset=OPSET, perm=[0, 2, 1])
    sampled = out.emit("Reshape", [transposed, shape], opset=OPSET)
    rename_output(
        sampled if compute_type == element_type else _cast_from_float(sampled, element_type, out), node, out
    )


def _read_interpolation(node: Node) -> Interpolation:
    mode = node.attribute("mode", b"linear").decode()
    padding = node.attribute("padding_mode", b"zeros").decode()
    return Interpolation(NEW_MODES.get(mode, mode), padding, bool(node.attribute("align_corners", 0)))


def _output_shape(grid: str, batch: int | None, channels: int, spatial: int, out: Rewriter) -> str:
    """Return the output shape, in which 0 copies an unknown batch size."""
    grid_shape = out.shape(grid)
    if grid_shape is not None and None not in grid_shape[1:-1]:
        return out.constant([batch or 0, channels, *grid_shape[1:-1]], "int64")
    sizes = out.emit("Shape", [grid], opset=OPSET)
    lengths = out.emit("Slice", [sizes], opset=OPSET, starts=[1], ends=[1 + spatial], axes=[0])
    return out.emit("Concat", [out.constant([0, channels], "int64"), lengths], opset=OPSET, axis=0)


def _coordinate(
    grid: str, axis: int, sizes: Sequence[int], interpolation: Interpolation, out: Rewriter
) -> str:
    """Return the coordinate of each point of the grid along an axis, in pixels: (batch, points)."""
    spatial, size = len(sizes), sizes[axis]
    # The grid lists the last axis first.
    index = out.constant(spatial - 1 - axis, "int64")
    normalized = out.emit("Gather", [grid, index], opset=OPSET, axis=spatial + 1)
    normalized = out.emit("Reshape", [normalized, out.constant([0, -1], "int64")], opset=OPSET)
    shifted = _binary("Add", normalized, 1.0, out)
    if interpolation.align_corners:
        return _binary("Mul", _binary("Div", shifted, 2.0, out), float(size - 1), out)
    return _binary("Div", _binary("Sub", _binary("Mul", shifted, float(size), out), 1.0, out), 2.0, out)


def _taps(
    coordinate: str, size: int, interpolation: Interpolation, element_type: str, out: Rewriter
) -> list[PixelTap]:
    if interpolation.mode == "nearest":
        nearest = out.emit("Round", [coordinate], opset=11)
        return [_tap(_bound(nearest, size, interpolation, out), "", size, interpolation, out)]
    coordinate = _bound(coordinate, size, interpolation, out)
    lower = out.emit("Floor", [coordinate], opset=OPSET)
    fraction = out.emit("Sub", [coordinate, lower], opset=OPSET)
    weights = _LINEAR if interpolation.mode == "linear" else _CUBIC
    taps = []
    for offset, weight in weights.items():
        pixel = _binary("Add", lower, float(offset), out) if offset else lower
        factor = weight(fraction, out)
        factor = factor if element_type == "float" else _cast_from_float(factor, element_type, out)
        taps.append(_tap(pixel, factor, size, interpolation, out))
    return taps


def _tap(pixel: str, weight: str, size: int, interpolation: Interpolation, out: Rewriter) -> PixelTap:
    """Return a tap whose pixel is clamped to the image; zero padding also marks pixels beyond the edge."""
    if interpolation.padding == "reflection":
        pixel = _reflect(pixel, size, interpolation, out)
    if interpolation.padding == "zeros":
        return edge_tap(pixel, weight, size, out)
    clamped = out.emit("Clip", [pixel], opset=6, min=0.0, max=float(size - 1))
    return PixelTap(as_int64(clamped, out), "", weight)


def _bound(coordinate: str, size: int, interpolation: Interpolation, out: Rewriter) -> str:
    if interpolation.padding == "reflection":
        return _reflect(coordinate, size, interpolation, out)
    if interpolation.padding == "border" and interpolation.mode != "cubic":
        return out.emit("Clip", [coordinate], opset=6, min=0.0, max=float(size - 1))
    return coordinate


def _reflect(coordinate: str, size: int, interpolation: Interpolation, out: Rewriter) -> str:
    """Reflect a coordinate at the edges, repeatedly if necessary."""
    low, extent = (0.0, float(size - 1)) if interpolation.align_corners else (-0.5, float(size))
    # A single aligned pixel has no extent to divide by.
    if not extent:
        return _binary("Mul", coordinate, 0.0, out)
    distance = out.emit("Abs", [_binary("Sub", coordinate, low, out)], opset=OPSET)
    reflections = out.emit("Floor", [_binary("Div", distance, extent, out)], opset=OPSET)
    remainder = out.emit("Sub", [distance, _binary("Mul", reflections, extent, out)], opset=OPSET)
    half_count = out.emit("Floor", [_binary("Div", reflections, 2.0, out)], opset=OPSET)
    is_odd = out.emit("Sub", [reflections, _binary("Mul", half_count, 2.0, out)], opset=OPSET)
    correction = out.emit(
        "Sub", [out.constant(extent, "float"), _binary("Mul", remainder, 2.0, out)], opset=OPSET
    )
    folded = out.emit("Add", [remainder, out.emit("Mul", [is_odd, correction], opset=OPSET)], opset=OPSET)
    return _binary("Add", folded, low, out)


def _binary(op_type: str, value: str, number: float, out: Rewriter) -> str:
    return out.emit(op_type, [value, out.constant(number, "float")], opset=OPSET)


def _cast(value: str, element_type: str, out: Rewriter) -> str:
    source = out.element_type(value)
    if source == element_type:
        return value
    opset = 13 if "bfloat16" in (source, element_type) else OPSET
    return out.emit("Cast", [value], opset=opset, to=BY_NAME[element_type].number)


def _cast_from_float(value: str, element_type: str, out: Rewriter) -> str:
    """Cast a float value to another type."""
    opset = 13 if element_type == "bfloat16" else OPSET
    return out.emit("Cast", [value], opset=opset, to=BY_NAME[element_type].number)


def _lower_weight(fraction: str, out: Rewriter) -> str:
    return out.emit("Sub", [out.constant(1.0, "float"), fraction], opset=OPSET)


def _cubic_weight(offset: int) -> Callable[[str, Rewriter], str]:
    """Return the weight function of the pixel at an offset from the lower pixel."""
    is_inner = offset in (0, 1)
    coefficients = (
        (CUBIC_COEFFICIENT + 2, -(CUBIC_COEFFICIENT + 3), 0.0, 1.0)
        if is_inner
        else (CUBIC_COEFFICIENT, -5 * CUBIC_COEFFICIENT, 8 * CUBIC_COEFFICIENT, -4 * CUBIC_COEFFICIENT)
    )

    def weight(fraction: str, out: Rewriter) -> str:
        signed_distance = _binary("Sub", fraction, float(offset), out) if offset else fraction
        distance = out.emit("Abs", [signed_distance], opset=OPSET)
        total = _binary("Mul", distance, coefficients[0], out)
        for coefficient in coefficients[1:-1]:
            total = out.emit("Mul", [_binary("Add", total, coefficient, out), distance], opset=OPSET)
        return _binary("Add", total, coefficients[-1], out)

    return weight


_LINEAR: dict[int, Callable[[str, Rewriter], str]] = {0: _lower_weight, 1: lambda fraction, out: fraction}

_CUBIC = {offset: _cubic_weight(offset) for offset in (-1, 0, 1, 2)}
