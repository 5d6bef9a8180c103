"""GridSample came with 16, for images of two dimensions until 20; before, pixels are looked up in a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from opshift.adapters.finishing import finish
from opshift.adapters.node import Node
from opshift.adapters.pixel_tables import (
    COMPUTED_IN,
    OPSET,
    Tap,
    edge_tap,
    image_dims,
    rows_at,
    table_of,
    whole,
)
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME

OLD_NAMES = {"linear": b"bilinear", "cubic": b"bicubic", "nearest": b"nearest"}
NEW_NAMES = {"bilinear": "linear", "bicubic": "cubic"}
KEYS = -0.75
"""The coefficient of the cubic."""


class Rule(NamedTuple):
    """How places are read and what lies beyond the edge."""

    mode: str
    padding: str
    aligned: bool


@adapter("GridSample", 20, 16)
def images_have_two_dimensions(node: Node, out: Rewriter) -> None:
    """The modes had other names; images of three dimensions are looked up."""
    if out.rank(node.inputs[0]) != 4:
        sample(node, out)
        return
    mode = node.attribute("mode", b"linear").decode()
    out.become(node, attributes={**node.attributes, "mode": OLD_NAMES.get(mode, mode.encode())})


@adapter("GridSample", 16, 15)
def sample(node: Node, out: Rewriter) -> None:
    """Every pixel of the output is a weighted sum of pixels that the grid points to."""
    data, grid = node.inputs
    rule = _rule(node)
    if (rule.mode, rule.padding) == ("cubic", "border"):
        out.concede(
            "approximate", "onnxruntime moves pixels of a cubic to the border, others the place itself"
        )
    batch, (channels, *sizes) = image_dims(data, out)
    element_type = out.element_type(data)
    wide = element_type if rule.mode == "nearest" else COMPUTED_IN.get(element_type)
    if wide is None:
        raise CannotConvert(f"it interpolates {element_type}, and how that is rounded is not defined")
    table = table_of(_cast(data, wide, out), batch, channels, tuple(sizes), wide, out)
    shape = _shape(grid, batch, channels, len(sizes), out)
    grid = _cast(grid, "float", out)
    axes = [
        _taps(_place(grid, axis, sizes, rule, out), size, rule, wide, out) for axis, size in enumerate(sizes)
    ]
    turned = out.emit("Transpose", [rows_at(table, axes, out)], opset=OPSET, perm=[0, 2, 1])
    found = out.emit("Reshape", [turned, shape], opset=OPSET)
    finish(found if wide == element_type else _narrowed(found, element_type, out), node, out)


def _rule(node: Node) -> Rule:
    mode = node.attribute("mode", b"linear").decode()
    padding = node.attribute("padding_mode", b"zeros").decode()
    return Rule(NEW_NAMES.get(mode, mode), padding, bool(node.attribute("align_corners", 0)))


def _shape(grid: str, batch: int | None, channels: int, spatial: int, out: Rewriter) -> str:
    """The shape of the output, of which 0 stands for the batch."""
    places = out.shape(grid)
    if places is not None and None not in places[1:-1]:
        return out.constant([batch or 0, channels, *places[1:-1]], "int64")
    sizes = out.emit("Shape", [grid], opset=OPSET)
    lengths = out.emit("Slice", [sizes], opset=OPSET, starts=[1], ends=[1 + spatial], axes=[0])
    return out.emit("Concat", [out.constant([0, channels], "int64"), lengths], opset=OPSET, axis=0)


def _place(grid: str, axis: int, sizes: Sequence[int], rule: Rule, out: Rewriter) -> str:
    """Where along an axis each point of the grid lies, in pixels: (batch, places)."""
    spatial, size = len(sizes), sizes[axis]
    index = out.constant(spatial - 1 - axis, "int64")
    stated = out.emit("Gather", [grid, index], opset=OPSET, axis=spatial + 1)
    stated = out.emit("Reshape", [stated, out.constant([0, -1], "int64")], opset=OPSET)
    moved = _with("Add", stated, 1.0, out)
    if rule.aligned:
        return _with("Mul", _with("Div", moved, 2.0, out), float(size - 1), out)
    return _with("Div", _with("Sub", _with("Mul", moved, float(size), out), 1.0, out), 2.0, out)


def _taps(place: str, size: int, rule: Rule, element_type: str, out: Rewriter) -> list[Tap]:
    if rule.mode == "nearest":
        nearest = out.emit("Round", [place], opset=11)
        return [_tap(_bounded(nearest, size, rule, out), "", size, rule, out)]
    place = _bounded(place, size, rule, out)
    low = out.emit("Floor", [place], opset=OPSET)
    share = out.emit("Sub", [place, low], opset=OPSET)
    weights = _LINEAR if rule.mode == "linear" else _CUBIC
    found = []
    for offset, weight in weights.items():
        pixel = _with("Add", low, float(offset), out) if offset else low
        named = weight(share, out)
        named = named if element_type == "float" else _narrowed(named, element_type, out)
        found.append(_tap(pixel, named, size, rule, out))
    return found


def _tap(pixel: str, weight: str, size: int, rule: Rule, out: Rewriter) -> Tap:
    """A pixel brought onto the image; with zeros beyond the edge, it is told whether it was there."""
    if rule.padding == "reflection":
        pixel = _reflected(pixel, size, rule, out)
    if rule.padding == "zeros":
        return edge_tap(pixel, weight, size, out)
    inner = out.emit("Clip", [pixel], opset=6, min=0.0, max=float(size - 1))
    return Tap(whole(inner, out), "", weight)


def _bounded(place: str, size: int, rule: Rule, out: Rewriter) -> str:
    if rule.padding == "reflection":
        return _reflected(place, size, rule, out)
    if rule.padding == "border" and rule.mode != "cubic":
        return out.emit("Clip", [place], opset=6, min=0.0, max=float(size - 1))
    return place


def _reflected(place: str, size: int, rule: Rule, out: Rewriter) -> str:
    """Mirrored at the edges, as often as it takes."""
    low, extent = (0.0, float(size - 1)) if rule.aligned else (-0.5, float(size))
    if not extent:
        return _with("Mul", place, 0.0, out)
    distance = out.emit("Abs", [_with("Sub", place, low, out)], opset=OPSET)
    times = out.emit("Floor", [_with("Div", distance, extent, out)], opset=OPSET)
    rest = out.emit("Sub", [distance, _with("Mul", times, extent, out)], opset=OPSET)
    halves = out.emit("Floor", [_with("Div", times, 2.0, out)], opset=OPSET)
    odd = out.emit("Sub", [times, _with("Mul", halves, 2.0, out)], opset=OPSET)
    back = out.emit("Sub", [out.constant(extent, "float"), _with("Mul", rest, 2.0, out)], opset=OPSET)
    turned = out.emit("Add", [rest, out.emit("Mul", [odd, back], opset=OPSET)], opset=OPSET)
    return _with("Add", turned, low, out)


def _with(op_type: str, value: str, number: float, out: Rewriter) -> str:
    return out.emit(op_type, [value, out.constant(number, "float")], opset=OPSET)


def _cast(value: str, element_type: str, out: Rewriter) -> str:
    source = out.element_type(value)
    if source == element_type:
        return value
    opset = 13 if "bfloat16" in (source, element_type) else OPSET
    return out.emit("Cast", [value], opset=opset, to=BY_NAME[element_type].number)


def _narrowed(value: str, element_type: str, out: Rewriter) -> str:
    """A value in float in another type."""
    opset = 13 if element_type == "bfloat16" else OPSET
    return out.emit("Cast", [value], opset=opset, to=BY_NAME[element_type].number)


def _rest(share: str, out: Rewriter) -> str:
    return out.emit("Sub", [out.constant(1.0, "float"), share], opset=OPSET)


def _keys(offset: int) -> Callable[[str, Rewriter], str]:
    """The weight of the pixel at an offset from the one before the place."""
    inner = offset in (0, 1)
    coefficients = (KEYS + 2, -(KEYS + 3), 0.0, 1.0) if inner else (KEYS, -5 * KEYS, 8 * KEYS, -4 * KEYS)

    def weight(share: str, out: Rewriter) -> str:
        away = _with("Sub", share, float(offset), out) if offset else share
        distance = out.emit("Abs", [away], opset=OPSET)
        total = _with("Mul", distance, coefficients[0], out)
        for each in coefficients[1:-1]:
            total = out.emit("Mul", [_with("Add", total, each, out), distance], opset=OPSET)
        return _with("Add", total, coefficients[-1], out)

    return weight


_LINEAR: dict[int, Callable[[str, Rewriter], str]] = {0: _rest, 1: lambda share, out: share}
_CUBIC = {offset: _keys(offset) for offset in (-1, 0, 1, 2)}
