"""Resize and Upsample, down: how the size is given, and where output pixels lie on the input."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.resampled import rebuild, same_samples
from opshift.adapters.resampling import Filter
from opshift.adapters.resized_axes import (
    STRETCH,
    Request,
    axes_of,
    doubt,
    filter_of,
    is_known,
    repeats_pixels,
    request_of,
    scales_for,
    text,
)
from opshift.adapters.resizing import NO_REGION
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.adapters.vectors import OPSET, Vectors

COORDINATES = "coordinate_transformation_mode"
ADDED_BY_18 = ("antialias", "axes", "keep_aspect_ratio_policy")


@adapter("Resize", 19, 18)
def symmetric_half_pixels_are_plain(node: Node, out: Rewriter) -> None:
    """`half_pixel_symmetric` is `half_pixel` where the scales give whole sizes; else it is computed."""
    if text(node, COORDINATES, "half_pixel") != "half_pixel_symmetric":
        out.become(node)
        return
    how, request, vectors = filter_of(node, out), request_of(node, out), Vectors(out)
    if is_known(node, request, out):
        axes = axes_of(node, request, out, vectors)
        if same_samples(axes, how, axes, how._replace(coordinates="half_pixel"), vectors):
            out.become(node, attributes={**node.attributes, COORDINATES: b"half_pixel"})
            return
    rebuild(node, out)


@adapter("Resize", 18, 13)
def every_dimension_is_listed(node: Node, out: Rewriter) -> None:
    """Before 18 scales, sizes and regions are those of all dimensions, and no filter is stretched."""
    how, request, vectors = filter_of(node, out), request_of(node, out), Vectors(out)
    free = request.policy == STRETCH or not request.sizes
    if free and not how.antialias:
        region, scales, sizes = _in_full(node, request, out)
        inputs = _trimmed([request.data, region, scales, sizes])
        out.become(node, inputs=inputs, attributes=node.without(*ADDED_BY_18))
        return
    if is_known(node, request, out):
        axes = axes_of(node, request, out, vectors)
        full = None if doubt(axes, how, request) else scales_for(axes, request.rank)
        if full and same_samples(axes, how, axes, how._replace(antialias=False), vectors):
            region, _, _ = _in_full(node, request, out)
            inputs = [request.data, region, out.constant(full, "float")]
            means_nothing = ("exclude_outside",) if how.mode == "linear" else ()
            out.become(node, inputs=inputs, attributes=node.without(*ADDED_BY_18, *means_nothing))
            return
    rebuild(node, out)


@adapter("Resize", 13, 11)
def what_is_left_out_is_empty(node: Node, out: Rewriter) -> None:
    """Version 11 wants a region and scales, empty if they are not used."""
    empty = out.tensor(NO_REGION)
    region, scales, sizes = (node.input(place) for place in (1, 2, 3))
    inputs = [node.inputs[0], region or empty, scales or empty, *([sizes] if sizes else [])]
    out.become(node, inputs=inputs)


@adapter("Resize", 11, 10)
def coordinates_are_understood(node: Node, out: Rewriter) -> None:
    """Version 10 is run as `asymmetric`, rounding down to enlarge and up to shrink."""
    how, request, vectors = filter_of(node, out), request_of(node, out), Vectors(out)
    attributes = {"mode": how.mode.encode()}
    is_linear = how.mode == "linear" and how.coordinates == "asymmetric" and bool(request.scales)
    if is_linear or repeats_pixels(how, request, out):
        out.become(node, inputs=[request.data, request.scales], attributes=attributes)
        return
    if how.mode != "cubic" and is_known(node, request, out):
        axes = axes_of(node, request, out, vectors)
        scales = scales_for(axes, request.rank)
        if scales and same_samples(axes, how, axes, Filter(how.mode, "asymmetric", "by_direction"), vectors):
            name = request.scales or out.constant(scales, "float")
            out.become(node, inputs=[request.data, name], attributes=attributes)
            return
    rebuild(node, out)


@adapter("Resize", 10, 9)
def only_enlarging_is_left(node: Node, out: Rewriter) -> None:
    """Upsample-9 does the same where no scale is below one."""
    scales = out.constant_value(node.inputs[1])
    if scales is not None and all(each >= 1 for each in scales.values):
        out.become(node, op_type="Upsample")
    else:
        rebuild(node, out)


@adapter("Upsample", 9, 7)
def scales_are_an_attribute(node: Node, out: Rewriter) -> None:
    """Scales that are computed leave only the arithmetic."""
    scales = out.constant_value(node.inputs[1])
    if scales is None:
        rebuild(node, out)
        return
    out.become(node, inputs=node.inputs[:1], attributes={**node.attributes, "scales": scales.values})


@adapter("Upsample", 7, 1)
def two_factors_are_left(node: Node, out: Rewriter) -> None:
    """Only height and width of four dimensions can be enlarged."""
    scales = node.attribute("scales")
    if len(scales) != 4 or scales[0] != 1 or scales[1] != 1:
        raise CannotConvert(f"scales are {list(scales)}; Upsample-1 enlarges the last two of four dimensions")
    mode = b"bilinear" if node.attribute("mode", b"nearest") == b"linear" else b"nearest"
    out.become(node, attributes={"height_scale": scales[2], "width_scale": scales[3], "mode": mode})


def _in_full(node: Node, request: Request, out: Rewriter) -> tuple[str, str, str]:
    """Region, scales and sizes with an entry for every dimension."""
    region, scales, sizes = request.region, request.scales, request.sizes
    if "axes" not in node.attributes:
        return region, scales, sizes
    count = len(request.axes)
    place = {axis: position for position, axis in enumerate(request.axes)}
    dims = range(request.rank)
    if scales:
        one = out.constant([1.0], "float")
        scales = _selected(scales, one, [place.get(axis, count) for axis in dims], out)
    if sizes:
        sizes = _selected(sizes, _shape_of(request.data, out), [place.get(a, count + a) for a in dims], out)
    if region and text(node, COORDINATES, "half_pixel") == "tf_crop_and_resize":
        whole = out.constant([0.0, 1.0], out.element_type(region))
        starts = [place.get(axis, 2 * count) for axis in dims]
        ends = [count + place.get(axis, count + 1) for axis in dims]
        region = _selected(region, whole, [*starts, *ends], out)
    return region, scales, sizes


def _selected(first: str, second: str, places: Sequence[int], out: Rewriter) -> str:
    """The elements at some places of two lists that follow each other."""
    one, other = out.constant_value(first), out.constant_value(second)
    if one is not None and other is not None:
        values = (*one.values, *other.values)
        return out.constant([values[place] for place in places], one.element_type)
    joined = out.emit("Concat", [first, second], opset=OPSET, axis=0)
    return out.emit("Gather", [joined, out.constant(places, "int64")], opset=OPSET, axis=0)


def _shape_of(data: str, out: Rewriter) -> str:
    shape = out.shape(data)
    if shape is not None and None not in shape:
        return out.constant(shape, "int64")
    return out.emit("Shape", [data], opset=OPSET)


def _trimmed(inputs: list[str]) -> list[str]:
    """Without empty names at the end."""
    while inputs and not inputs[-1]:
        inputs.pop()
    return inputs
