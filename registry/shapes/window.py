"""Sizes along the spatial dimensions that a window slides over."""

from __future__ import annotations

from typing import NamedTuple

from opshift.registry.shapes.context import Shape, ShapeContext
from opshift.registry.shapes.dims import plus
from opshift.registry.shapes.reading import integer, integers, text


class Window(NamedTuple):
    """A node's window along one spatial dimension; `None` where it does not say, or wrongly."""

    kernel: int | None
    """Its extent, dilation included."""
    stride: int | None
    pads: int | None
    """Both ends together."""
    after: int | None


def windows(node: ShapeContext, kernel: Shape | None) -> list[Window] | None:
    """One window a spatial dimension; the attribute `kernel_shape` comes before the weights' shape."""
    sizes = integers(node, "kernel_shape") or kernel
    if sizes is None:
        return None
    rank = len(sizes)
    strides = _list(node, "strides", rank, 1)
    dilations = _list(node, "dilations", rank, 1)
    pads = _list(node, "pads", 2 * rank, 0)
    return [
        Window(_dilated(size, dilations[at]), strides[at], plus(pads[at], pads[rank + at]), pads[rank + at])
        for at, size in enumerate(sizes)
    ]


def slid(node: ShapeContext, size: int | None, window: Window) -> int | None:
    """How many places the window takes; `None` if one more may begin in padding: definitions differ."""
    if size is None or window.stride is None or window.stride < 1:
        return None
    padding = text(node, "auto_pad") or "NOTSET"
    if padding in ("SAME_UPPER", "SAME_LOWER"):
        return -(-size // window.stride)
    pads = 0 if padding == "VALID" else window.pads
    if window.kernel is None or pads is None or padding not in ("VALID", "NOTSET"):
        return None
    room = size + pads - window.kernel
    low, high = room // window.stride + 1, -(-room // window.stride) + 1
    if low == high or not integer(node, "ceil_mode", 0):
        return low
    after = 0 if padding == "VALID" else window.after
    begins_in_data = after is not None and (high - 1) * window.stride < size + pads - after
    return high if begins_in_data else None


def spread(node: ShapeContext, size: int | None, window: Window, extra: int | None) -> int | None:
    """The size from which the window would leave `size` places, plus `extra`."""
    padding = text(node, "auto_pad") or "NOTSET"
    pads = 0 if padding == "VALID" else window.pads
    if padding not in ("VALID", "NOTSET") or size is None or window.stride is None or pads is None:
        return None
    return plus((size - 1) * window.stride, window.kernel, extra, -pads)


def _list(node: ShapeContext, name: str, count: int, default: int) -> Shape:
    if node.attribute(name) is None:
        return (default,) * count
    stated = integers(node, name)
    return stated if stated is not None and len(stated) == count else (None,) * count


def _dilated(size: int | None, dilation: int | None) -> int | None:
    return None if size is None or dilation is None else (size - 1) * dilation + 1
