"""Attributes, inputs and resized axes of a Resize or Upsample node of any version."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from opshift.adapters.core.rewriter import Rewriter
from opshift.adapters.ops.tensor.resize.samples import HALF, ONE, ZERO, ResizeAxis, Sampling
from opshift.adapters.ops.tensor.resize.vectors import OPSET, Vector, Vectors, round_to_float32
from opshift.model.errors import CannotConvert
from opshift.model.node import Node

STRETCH = "stretch"

LENGTH_DEPENDENT_COORDINATES = ("align_corners", "tf_crop_and_resize", "pytorch_half_pixel")
"""Coordinate modes that depend on the length of the output, in addition to the scale."""

REPEATING_MODES = (
    ("half_pixel", "round_prefer_floor"),
    ("half_pixel", "round_prefer_ceil"),
    ("pytorch_half_pixel", "round_prefer_floor"),
    ("pytorch_half_pixel", "round_prefer_ceil"),
    ("tf_half_pixel_for_nn", "floor"),
)
"""Coordinate and rounding modes that, with integer scales, repeat each pixel like version 10 does."""

POLICY = "keep_aspect_ratio_policy"


class ResizeRequest(NamedTuple):
    """Inputs of a node, `""` if absent, and the axes that they apply to."""

    data: str
    roi: str
    scales: str
    sizes: str
    axes: tuple[int, ...]
    rank: int
    policy: str


def text_attribute(node: Node, name: str, default: str) -> str:
    """Return a string attribute."""
    value = node.attribute(name)
    return value.decode() if isinstance(value, bytes) else default


def read_request(node: Node, out: Rewriter) -> ResizeRequest:
    """Return the inputs of a node by their meaning, and the axes that they apply to."""
    rank = out.rank(node.inputs[0])
    axes = tuple(axis % rank for axis in node.attribute("axes") or range(rank))
    policy = text_attribute(node, POLICY, STRETCH)
    if out.source.since_version < 11:
        return ResizeRequest(node.inputs[0], "", node.input(1), "", axes, rank, policy)
    sizes = node.input(3)
    scales = "" if sizes else node.input(2)
    return ResizeRequest(node.inputs[0], node.input(1), scales, sizes, axes, rank, policy)


def read_sampling(node: Node, out: Rewriter) -> Sampling:
    """Return how a node samples; before version 11 only its mode is an attribute."""
    mode = text_attribute(node, "mode", "nearest")
    if out.source.since_version < 11:
        return Sampling(mode, "asymmetric", "by_direction")
    antialias = mode != "nearest" and bool(node.attribute("antialias", 0))
    return Sampling(
        mode,
        text_attribute(node, "coordinate_transformation_mode", "half_pixel"),
        text_attribute(node, "nearest_mode", "round_prefer_floor"),
        node.attribute("cubic_coeff_a", -0.75),
        (mode == "cubic" or antialias) and bool(node.attribute("exclude_outside", 0)),
        antialias,
    )


def read_axes(node: Node, request: ResizeRequest, out: Rewriter, vectors: Vectors) -> dict[int, ResizeAxis]:
    """Return the resized axes, as numbers where known and otherwise as computed values."""
    sizes = {axis: _size(request.data, axis, out) for axis in request.axes}
    if not request.sizes:
        return _with_region(_axes_from_scales(node, request, sizes, out, vectors), node, request, out)
    targets = _target_sizes(node, request, out)
    if request.policy == STRETCH:
        axes = {
            axis: ResizeAxis(size, targets[axis], vectors.divide(targets[axis], size))
            for axis, size in sizes.items()
        }
    else:
        axes = _axes_from_policy(node, sizes, targets, out, vectors)
    return _with_region(axes, node, request, out)


def _size(data: str, axis: int, out: Rewriter) -> Vector:
    shape = out.shape(data)
    known = _number(shape[axis]) if shape else None
    if known is not None:
        return known
    shape_name = out.emit("Shape", [data], opset=OPSET)
    dim = out.emit("Gather", [shape_name, out.int64([axis])], opset=OPSET, axis=0)
    return out.cast(dim, "float", opset=OPSET)


def _number(dim: int | None) -> Vector | None:
    return None if dim is None else (float(dim),)


def _with_region(
    axes: dict[int, ResizeAxis], node: Node, request: ResizeRequest, out: Rewriter
) -> dict[int, ResizeAxis]:
    """Add the part of the input that `tf_crop_and_resize` shows on each axis."""
    if text_attribute(node, "coordinate_transformation_mode", "") != "tf_crop_and_resize":
        return axes
    if not request.roi:
        raise CannotConvert("roi is missing, but tf_crop_and_resize requires it", remedy="add input roi")
    count = len(request.axes)
    bounds = _elements(request.roi, 2 * count, out)
    return {
        axis: resized._replace(start=bounds[index], end=bounds[index + count])
        for index, (axis, resized) in enumerate(axes.items())
    }


def _elements(name: str, count: int, out: Rewriter) -> list[Vector]:
    """Return each element of an input as a float vector of length 1."""
    known = out.constant_value(name)
    if known is not None:
        if len(known.values) != count:
            raise CannotConvert(f"{name!r} has {len(known.values)} elements, expected {count}")
        return [(round_to_float32(value),) for value in known.values]
    if out.element_type(name) != "float":
        name = out.cast(name, "float", opset=OPSET)
    return [out.emit("Gather", [name, out.int64([index])], opset=OPSET, axis=0) for index in range(count)]


def _axes_from_scales(
    node: Node, request: ResizeRequest, sizes: Mapping[int, Vector], out: Rewriter, vectors: Vectors
) -> dict[int, ResizeAxis]:
    """Compute each length from its scale: the declared output size, or the scaled size rounded down."""
    scales = _elements(request.scales, len(request.axes), out)
    axes = {}
    for axis, scale in zip(request.axes, scales, strict=True):
        length = _declared_length(node, axis, out)
        if length is None:
            length = vectors.floor(vectors.multiply(sizes[axis], scale))
        axes[axis] = ResizeAxis(sizes[axis], length, scale)
    return axes


def _declared_length(node: Node, axis: int, out: Rewriter) -> Vector | None:
    """Return the size of an output dimension that the model declares or implies."""
    shape = out.shape(node.output(0))
    return _number(shape[axis]) if shape else None


def _target_sizes(node: Node, request: ResizeRequest, out: Rewriter) -> dict[int, Vector]:
    """Return the requested sizes; if they are computed, prefer the declared output sizes."""
    # Other policies need the sizes to compute a scale, which the output size does not determine.
    if out.constant_value(request.sizes) is None and request.policy == STRETCH:
        declared = {
            axis: length for axis in request.axes if (length := _declared_length(node, axis, out)) is not None
        }
        if len(declared) == len(request.axes):
            return declared
    return dict(zip(request.axes, _elements(request.sizes, len(request.axes), out), strict=True))


def _axes_from_policy(
    node: Node, sizes: Mapping[int, Vector], targets: Mapping[int, Vector], out: Rewriter, vectors: Vectors
) -> dict[int, ResizeAxis]:
    """Apply the smallest or largest of the requested scales to all axes, depending on the policy."""
    ratios = [vectors.divide(targets[axis], size) for axis, size in sizes.items()]
    pick = vectors.minimum if text_attribute(node, POLICY, STRETCH) == "not_larger" else vectors.maximum
    scale = ratios[0]
    for ratio in ratios[1:]:
        scale = pick(scale, ratio)
    axes = {}
    for axis, size in sizes.items():
        length = _declared_length(node, axis, out)
        if length is None:
            length = vectors.floor(vectors.add(vectors.multiply(scale, size), HALF))
        axes[axis] = ResizeAxis(size, length, scale)
    return axes


def has_constant_axes(node: Node, request: ResizeRequest, out: Rewriter) -> bool:
    """Return whether `read_axes` finds numbers only and emits no nodes."""
    shapes = [out.shape(request.data), out.shape(node.output(0))]
    sizes, lengths = ([shape[axis] if shape else None for axis in request.axes] for shape in shapes)
    has_lengths = request.policy == STRETCH and bool(request.sizes) and None not in lengths
    is_constant = has_lengths or out.constant_value(request.sizes or request.scales) is not None
    crops = text_attribute(node, "coordinate_transformation_mode", "") == "tf_crop_and_resize"
    return is_constant and None not in sizes and (not crops or out.constant_value(request.roi) is not None)


def repeats_pixels(sampling: Sampling, request: ResizeRequest, out: Rewriter) -> bool:
    """Return whether a node enlarges like version 10, for data of any size.

    Version 10 repeats pixels: each starts at its scaled position.
    """
    scales = out.constant_value(request.scales)
    if sampling.mode != "nearest" or scales is None or min(scales.values, default=0) < 1:
        return False
    if (sampling.coordinates, sampling.rounding) == ("asymmetric", "floor"):
        return True
    return (sampling.coordinates, sampling.rounding) in REPEATING_MODES and all(
        map(float.is_integer, scales.values)
    )


def is_unchanged(axis: ResizeAxis, sampling: Sampling) -> bool:
    """Return whether an axis is unchanged: its scale is one, or it has one pixel before and after."""
    if axis.length != axis.size or isinstance(axis.size, str):
        return False
    if axis.size == ONE:
        return True
    if sampling.coordinates == "tf_crop_and_resize":
        return (axis.start, axis.end) == (ZERO, ONE)
    return axis.scale == ONE


def runtime_difference(axes: Mapping[int, ResizeAxis], sampling: Sampling, request: ResizeRequest) -> str:
    """Return the difference between onnxruntime and the definition for these axes; empty if they agree."""
    changed = [axis for axis in axes.values() if not is_unchanged(axis, sampling)]
    is_free = bool(request.scales) or request.policy != STRETCH
    kept = [axis for axis in changed if _may_keep_its_size(axis, sampling, is_free)]
    if kept and (len(kept) == len(changed) or sampling.antialias or sampling.coordinates.startswith("tf_")):
        return "onnxruntime copies a dimension that keeps its size, but the definition shifts its pixels"
    if not request.scales or sampling.coordinates not in LENGTH_DEPENDENT_COORDINATES:
        return ""
    fractions = [axis for axis in changed if not _has_integer_length(axis)]
    if sampling.coordinates == "pytorch_half_pixel":
        fractions = [axis for axis in fractions if axis.length == ONE or isinstance(axis.length, str)]
    if fractions:
        return f"onnxruntime rounds fractional sizes down before {sampling.coordinates}, others do not"
    return ""


def _may_keep_its_size(axis: ResizeAxis, sampling: Sampling, is_free: bool) -> bool:
    """Return whether an axis may keep its size although its pixels move.

    With `is_free`, the scale may differ from the ratio of the sizes.
    """
    if isinstance(axis.length, tuple) and isinstance(axis.size, tuple):
        return axis.length == axis.size
    if sampling.antialias or sampling.coordinates.startswith("tf_"):
        return True
    return is_free and (isinstance(axis.scale, str) or 1 < axis.scale[0] < 2)


def _has_integer_length(axis: ResizeAxis) -> bool:
    """Return whether the scaled size is an integer, up to the rounding of the scale."""
    if isinstance(axis.scale, str):
        return False
    if axis.scale[0].is_integer():
        return True
    if isinstance(axis.size, str):
        return False
    exact = axis.size[0] * axis.scale[0]
    return abs(exact - round(exact)) < 1e-5 * exact


def equivalent_scales(axes: Mapping[int, ResizeAxis], rank: int) -> Sequence[float] | None:
    """Return scales that round down to the same output sizes, or `None` if there are no such scales.

    Runtimes compute in single or double precision, so both have to agree.
    """
    scales = [1.0] * rank
    for axis, resized in axes.items():
        if isinstance(resized.size, str) or isinstance(resized.length, str) or isinstance(resized.scale, str):
            return None
        exact = resized.size[0] * resized.scale[0]
        if not math.floor(exact) == math.floor(round_to_float32(exact)) == resized.length[0]:
            return None
        scales[axis] = resized.scale[0]
    return scales
