"""What a Resize or Upsample node of any version says: how it samples, and how much along each axis."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.resampling import HALF, ONE, ZERO, Axis, Filter
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.vectors import OPSET, Vector, Vectors, rounded
from opshift.registry.element_types import BY_NAME

STRETCH = "stretch"
FROM_LENGTHS = ("align_corners", "tf_crop_and_resize", "pytorch_half_pixel")
"""Coordinates that follow from the length of the output, not from the scale alone."""
MIDDLES = (
    ("half_pixel", "round_prefer_floor"),
    ("half_pixel", "round_prefer_ceil"),
    ("pytorch_half_pixel", "round_prefer_floor"),
    ("pytorch_half_pixel", "round_prefer_ceil"),
    ("tf_half_pixel_for_nn", "floor"),
)
"""Coordinates and roundings that put every part of a pixel, cut into a whole number, on that pixel."""
POLICY = "keep_aspect_ratio_policy"


class Request(NamedTuple):
    """The node's inputs by their meaning, `""` for those that it does not have."""

    data: str
    region: str
    scales: str
    sizes: str
    axes: tuple[int, ...]
    rank: int
    policy: str


def text(node: Node, name: str, default: str) -> str:
    """A string attribute."""
    stated = node.attribute(name)
    return stated.decode() if isinstance(stated, bytes) else default


def request_of(node: Node, out: Rewriter) -> Request:
    """The inputs, and the axes that they are about."""
    rank = out.rank(node.inputs[0])
    axes = tuple(each % rank for each in node.attribute("axes") or range(rank))
    policy = text(node, POLICY, STRETCH)
    if out.source.since_version < 11:
        return Request(node.inputs[0], "", node.input(1), "", axes, rank, policy)
    sizes = node.input(3)
    scales = "" if sizes else node.input(2)
    return Request(node.inputs[0], node.input(1), scales, sizes, axes, rank, policy)


def filter_of(node: Node, out: Rewriter) -> Filter:
    """How the node samples; before 11 no attribute told."""
    mode = text(node, "mode", "nearest")
    if out.source.since_version < 11:
        return Filter(mode, "asymmetric", "by_direction")
    antialias = mode != "nearest" and bool(node.attribute("antialias", 0))
    return Filter(
        mode,
        text(node, "coordinate_transformation_mode", "half_pixel"),
        text(node, "nearest_mode", "round_prefer_floor"),
        node.attribute("cubic_coeff_a", -0.75),
        (mode == "cubic" or antialias) and bool(node.attribute("exclude_outside", 0)),
        antialias,
    )


def axes_of(node: Node, request: Request, out: Rewriter, vectors: Vectors) -> dict[int, Axis]:
    """The axes that are resized, as numbers where they are known and else as values computed."""
    sizes = {axis: _size(request.data, axis, out) for axis in request.axes}
    if not request.sizes:
        return _within(_by_scales(node, request, sizes, out, vectors), node, request, out)
    wanted = _wanted(node, request, out)
    if request.policy == STRETCH:
        found = {
            axis: Axis(size, wanted[axis], vectors.divide(wanted[axis], size)) for axis, size in sizes.items()
        }
    else:
        found = _by_policy(node, sizes, wanted, out, vectors)
    return _within(found, node, request, out)


def _by_scales(
    node: Node, request: Request, sizes: Mapping[int, Vector], out: Rewriter, vectors: Vectors
) -> dict[int, Axis]:
    """Each length is what the model states of the output, or the scaled size rounded down."""
    scales = _elements(request.scales, len(request.axes), out)
    found = {}
    for axis, scale in zip(request.axes, scales, strict=True):
        length = _stated(node, axis, out)
        if length is None:
            length = vectors.floor(vectors.multiply(sizes[axis], scale))
        found[axis] = Axis(sizes[axis], length, scale)
    return found


def _wanted(node: Node, request: Request, out: Rewriter) -> dict[int, Vector]:
    """The sizes asked for; if they are computed, what the model states of an output stretched to them."""
    if out.constant_value(request.sizes) is None and request.policy == STRETCH:
        stated = {axis: length for axis in request.axes if (length := _stated(node, axis, out)) is not None}
        if len(stated) == len(request.axes):
            return stated
    return dict(zip(request.axes, _elements(request.sizes, len(request.axes), out), strict=True))


def _by_policy(
    node: Node, sizes: Mapping[int, Vector], wanted: Mapping[int, Vector], out: Rewriter, vectors: Vectors
) -> dict[int, Axis]:
    """The least or the greatest of the scales that the sizes ask for is that of all axes."""
    ratios = [vectors.divide(wanted[axis], size) for axis, size in sizes.items()]
    pick = vectors.smaller if text(node, POLICY, STRETCH) == "not_larger" else vectors.larger
    scale = ratios[0]
    for ratio in ratios[1:]:
        scale = pick(scale, ratio)
    found = {}
    for axis, size in sizes.items():
        length = _stated(node, axis, out)
        if length is None:
            length = vectors.floor(vectors.add(vectors.multiply(scale, size), HALF))
        found[axis] = Axis(size, length, scale)
    return found


def _stated(node: Node, axis: int, out: Rewriter) -> Vector | None:
    """The size of an output dimension, as the model states it."""
    shape = out.shape(node.output(0))
    return _number(shape[axis]) if shape else None


def _within(found: dict[int, Axis], node: Node, request: Request, out: Rewriter) -> dict[int, Axis]:
    """With the part of the input that each axis shows, if it is not all of it."""
    if text(node, "coordinate_transformation_mode", "") != "tf_crop_and_resize":
        return found
    if not request.region:
        raise CannotConvert("roi is left out, which tf_crop_and_resize reads", remedy="state roi")
    count = len(request.axes)
    bounds = _elements(request.region, 2 * count, out)
    return {
        axis: each._replace(start=bounds[place], end=bounds[place + count])
        for place, (axis, each) in enumerate(found.items())
    }


def _elements(name: str, count: int, out: Rewriter) -> list[Vector]:
    """Each element of an input, in float."""
    known = out.constant_value(name)
    if known is not None:
        if len(known.values) != count:
            raise CannotConvert(f"{name!r} has {len(known.values)} elements; {count} are needed")
        return [(rounded(each),) for each in known.values]
    if out.element_type(name) != "float":
        name = out.emit("Cast", [name], opset=OPSET, to=BY_NAME["float"].number)
    return [
        out.emit("Gather", [name, out.constant([place], "int64")], opset=OPSET, axis=0)
        for place in range(count)
    ]


def _size(data: str, axis: int, out: Rewriter) -> Vector:
    shape = out.shape(data)
    known = _number(shape[axis]) if shape else None
    if known is not None:
        return known
    shape_name = out.emit("Shape", [data], opset=OPSET)
    dim = out.emit("Gather", [shape_name, out.constant([axis], "int64")], opset=OPSET, axis=0)
    return out.emit("Cast", [dim], opset=OPSET, to=BY_NAME["float"].number)


def _number(dim: int | None) -> Vector | None:
    return None if dim is None else (float(dim),)


def is_known(node: Node, request: Request, out: Rewriter) -> bool:
    """Whether `axes_of` finds numbers only, so that nothing has to be computed."""
    shapes = [out.shape(request.data), out.shape(node.output(0))]
    sizes, lengths = ([shape[axis] if shape else None for axis in request.axes] for shape in shapes)
    stated = request.policy == STRETCH and bool(request.sizes) and None not in lengths
    given = stated or out.constant_value(request.sizes or request.scales) is not None
    crops = text(node, "coordinate_transformation_mode", "") == "tf_crop_and_resize"
    return given and None not in sizes and (not crops or out.constant_value(request.region) is not None)


def repeats_pixels(how: Filter, request: Request, out: Rewriter) -> bool:
    """Whether pixels are enlarged as before 11, whatever their number: each begins where it lies, scaled."""
    scales = out.constant_value(request.scales)
    if how.mode != "nearest" or scales is None or min(scales.values, default=0) < 1:
        return False
    if (how.coordinates, how.rounding) == ("asymmetric", "floor"):
        return True
    return (how.coordinates, how.rounding) in MIDDLES and all(map(float.is_integer, scales.values))


def is_untouched(axis: Axis, how: Filter) -> bool:
    """Whether an axis stays as it is: its scale is one, or it has one pixel before and after."""
    if axis.length != axis.size or isinstance(axis.size, str):
        return False
    if axis.size == ONE:
        return True
    if how.coordinates == "tf_crop_and_resize":
        return (axis.start, axis.end) == (ZERO, ONE)
    return axis.scale == ONE


def doubt(axes: Mapping[int, Axis], how: Filter, request: Request) -> str:
    """What onnxruntime and the definition disagree on for these axes; empty if nothing."""
    changed = [axis for axis in axes.values() if not is_untouched(axis, how)]
    free = bool(request.scales) or request.policy != STRETCH
    kept = [axis for axis in changed if _may_keep_its_size(axis, how, free)]
    if kept and (len(kept) == len(changed) or how.antialias or how.coordinates.startswith("tf_")):
        return (
            "onnxruntime leaves a dimension that keeps its size as it is, where the definition moves pixels"
        )
    if not request.scales or how.coordinates not in FROM_LENGTHS:
        return ""
    fractions = [axis for axis in changed if not _is_whole(axis)]
    if how.coordinates == "pytorch_half_pixel":
        fractions = [axis for axis in fractions if axis.length == ONE or isinstance(axis.length, str)]
    if fractions:
        return (
            f"onnxruntime rounds a size of a fraction down before it applies {how.coordinates}, others do not"
        )
    return ""


def _may_keep_its_size(axis: Axis, how: Filter, free: bool) -> bool:
    """Whether the size may stay though pixels move; `free`: the scale is not the ratio of the sizes."""
    if isinstance(axis.length, tuple) and isinstance(axis.size, tuple):
        return axis.length == axis.size
    if how.antialias or how.coordinates.startswith("tf_"):
        return True
    return free and (isinstance(axis.scale, str) or 1 < axis.scale[0] < 2)


def _is_whole(axis: Axis) -> bool:
    if isinstance(axis.scale, str):
        return False
    if axis.scale[0].is_integer():
        return True
    if isinstance(axis.size, str):
        return False
    exact = axis.size[0] * axis.scale[0]
    return abs(exact - round(exact)) < 1e-5 * exact


def scales_for(axes: Mapping[int, Axis], rank: int) -> Sequence[float] | None:
    """Scales that give the same output sizes when rounded down, in single and in double precision."""
    found = [1.0] * rank
    for axis, each in axes.items():
        if isinstance(each.size, str) or isinstance(each.length, str) or isinstance(each.scale, str):
            return None
        exact = each.size[0] * each.scale[0]
        if not math.floor(exact) == math.floor(rounded(exact)) == each.length[0]:
            return None
        found[axis] = each.scale[0]
    return found
