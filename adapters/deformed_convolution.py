"""DeformConv came with 19; before, pixels are looked up where they moved to and multiplied by the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from opshift.adapters.node import Node, Tensor
from opshift.adapters.pixel_tables import OPSET, Tap, edge_tap, known_dims, rows_at, table_of
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

COMPUTED = ("float", "double")


class Form(NamedTuple):
    """The sizes that decide where pixels are looked up."""

    images: int
    channels: int
    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    filters: int
    places: tuple[int, ...]
    moved: int
    """In how many groups of channels pixels move alike."""
    group: int

    @property
    def taps(self) -> int:
        """The elements of the kernel."""
        return _size(self.kernel)


@adapter("DeformConv", 19, 18)
def moved_pixels_are_looked_up(node: Node, out: Rewriter) -> None:
    """Between four pixels the value is interpolated; beyond the edge it is zero."""
    data, weight = node.inputs[:2]
    element_type = out.element_type(data)
    if element_type not in COMPUTED:
        raise CannotConvert(f"its data is {element_type}; only float and double are looked up")
    form = _form(node, out)
    images, part = form.images * form.moved, form.channels // form.moved
    table = table_of(data, images, part, form.sizes, element_type, out)
    places = [_places(node, form, axis, element_type, out) for axis in range(len(form.sizes))]
    axes = [_taps(place, size, element_type, out) for place, size in zip(places, form.sizes, strict=True)]
    rows = rows_at(table, axes, out)
    if node.input(4):
        shape = out.constant([images, -1, 1], "int64")
        rows = out.emit("Mul", [rows, out.emit("Reshape", [node.input(4), shape], opset=OPSET)], opset=OPSET)
    _convolve(node, out.emit("Transpose", [rows], opset=OPSET, perm=[0, 2, 1]), weight, form, out)


def _form(node: Node, out: Rewriter) -> Form:
    dims, weight = known_dims(node.inputs[0], out), known_dims(node.inputs[1], out)
    places = known_dims(node.inputs[2], out)
    moved, group = node.attribute("offset_group", 1), node.attribute("group", 1)
    return Form(dims[0], dims[1], dims[2:], weight[2:], weight[0], places[2:], moved, group)


def _places(node: Node, form: Form, axis: int, element_type: str, out: Rewriter) -> str:
    """Where along an axis each element of each window lies: (images and groups, elements and windows)."""
    rank, images = len(form.sizes), form.images * form.moved
    shape = out.constant([images, form.taps, rank, -1], "int64")
    split = out.emit("Reshape", [node.inputs[2], shape], opset=OPSET)
    moves = out.emit("Gather", [split, out.constant(axis, "int64")], opset=OPSET, axis=2)
    flat = out.emit("Reshape", [moves, out.constant([images, -1], "int64")], opset=OPSET)
    grid = _unmoved(node, form, axis)
    unmoved = out.tensor(Tensor(element_type, (1, len(grid)), tuple(grid)))
    return out.emit("Add", [flat, unmoved], opset=OPSET)


def _unmoved(node: Node, form: Form, axis: int) -> list[float]:
    """Where an ordinary convolution would read."""
    rank = len(form.sizes)
    stride = (node.attribute("strides") or (1,) * rank)[axis]
    dilation = (node.attribute("dilations") or (1,) * rank)[axis]
    before = (node.attribute("pads") or (0,) * (2 * rank))[axis]
    elements = [element[axis] * dilation - before for element in product(*map(range, form.kernel))]
    windows = [window[axis] * stride for window in product(*map(range, form.places))]
    return [float(element + window) for element in elements for window in windows]


def _taps(place: str, size: int, element_type: str, out: Rewriter) -> list[Tap]:
    """The pixels before and after a place."""
    one = out.constant(1.0, element_type)
    low = out.emit("Floor", [place], opset=OPSET)
    share = out.emit("Sub", [place, low], opset=OPSET)
    rest = out.emit("Sub", [one, share], opset=OPSET)
    high = out.emit("Add", [low, one], opset=OPSET)
    return [edge_tap(low, rest, size, out), edge_tap(high, share, size, out)]


def _convolve(node: Node, columns: str, weight: str, form: Form, out: Rewriter) -> None:
    """The kernel times the elements of each window, group by group."""
    terms = form.channels // form.group * form.taps
    windows = _size(form.places)
    shape = out.constant([form.images, form.group, terms, windows], "int64")
    apart = out.emit("Reshape", [columns, shape], opset=OPSET)
    kernel_shape = out.constant([form.group, form.filters // form.group, terms], "int64")
    kernel = out.emit("Reshape", [weight, kernel_shape], opset=OPSET)
    total = out.emit("MatMul", [kernel, apart], opset=OPSET)
    final = out.constant([form.images, form.filters, *form.places], "int64")
    if not node.input(3):
        out.emit("Reshape", [total, final], node.outputs, opset=OPSET)
        return
    image = out.emit("Reshape", [total, final], opset=OPSET)
    column = out.constant([-1, *[1] * len(form.places)], "int64")
    bias = out.emit("Reshape", [node.input(3), column], opset=OPSET)
    out.emit("Add", [image, bias], node.outputs, opset=OPSET)


def _size(sizes: Sequence[int]) -> int:
    found = 1
    for size in sizes:
        found *= size
    return found
