"""Output sizes along spatial dimensions that a window slides over."""

from __future__ import annotations

from typing import NamedTuple

from opshift.registry.shapes.dims import plus
from opshift.registry.shapes.node_reading import integer_attribute, integers_attribute, string_attribute
from opshift.registry.shapes.rule_table import Shape, ShapeContext


class Window(NamedTuple):
    """A node's window along one spatial dimension; unknown or invalid values are `None`."""

    kernel: int | None
    """The extent of the kernel, including dilation."""
    stride: int | None
    pads: int | None
    """The sum of the padding at both ends."""
    after: int | None
    """The padding at the end."""


def read_windows(node: ShapeContext, kernel: Shape | None) -> list[Window] | None:
    """Return one window per spatial dimension; the attribute `kernel_shape` overrides the weights' shape."""
    sizes = integers_attribute(node, "kernel_shape") or kernel
    if sizes is None:
        return None
    rank = len(sizes)
    strides = _list_attribute(node, "strides", rank, 1)
    dilations = _list_attribute(node, "dilations", rank, 1)
    pads = _list_attribute(node, "pads", 2 * rank, 0)
    return [
        Window(
            _dilated(size, dilations[position]),
            strides[position],
            plus(pads[position], pads[rank + position]),
            pads[rank + position],
        )
        for position, size in enumerate(sizes)
    ]


def window_count(node: ShapeContext, size: int | None, window: Window) -> int | None:
    """Return the number of positions of the window.

    With `ceil_mode`, a last window that would start in the padding makes the result unknown, because
    definitions differ on whether it counts.
    """
    if size is None or window.stride is None or window.stride < 1:
        return None
    padding = string_attribute(node, "auto_pad") or "NOTSET"
    if padding in ("SAME_UPPER", "SAME_LOWER"):
        return -(-size // window.stride)
    pads = 0 if padding == "VALID" else window.pads
    if window.kernel is None or pads is None or padding not in ("VALID", "NOTSET"):
        return None
    span = size + pads - window.kernel
    floor_count, ceil_count = span // window.stride + 1, -(-span // window.stride) + 1
    if floor_count == ceil_count or not integer_attribute(node, "ceil_mode", 0):
        return floor_count
    after = 0 if padding == "VALID" else window.after
    begins_in_data = after is not None and (ceil_count - 1) * window.stride < size + pads - after
    return ceil_count if begins_in_data else None


def transposed_size(node: ShapeContext, size: int | None, window: Window, extra: int | None) -> int | None:
    """Return the size over which the window has `size` positions, plus `extra`."""
    padding = string_attribute(node, "auto_pad") or "NOTSET"
    pads = 0 if padding == "VALID" else window.pads
    if padding not in ("VALID", "NOTSET") or size is None or window.stride is None or pads is None:
        return None
    return plus((size - 1) * window.stride, window.kernel, extra, -pads)


def _list_attribute(node: ShapeContext, name: str, count: int, default: int) -> Shape:
    if node.attribute(name) is None:
        return (default,) * count
    values = integers_attribute(node, name)
    return values if values is not None and len(values) == count else (None,) * count


def _dilated(size: int | None, dilation: int | None) -> int | None:
    return None if size is None or dilation is None else (size - 1) * dilation + 1
