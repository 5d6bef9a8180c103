"""Pooling: attributes of a node as numbers for each spatial dimension, and the positions of windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from opshift.adapters.core.rewriter import Rewriter
from opshift.model.errors import CannotConvert
from opshift.model.node import Node


class Window(NamedTuple):
    """Data size, kernel and padding along one spatial dimension."""

    size: int | None
    """Data size; `None` if unknown."""
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int
    rounds_up: bool
    same: bytes
    """`SAME_UPPER` or `SAME_LOWER` if the padding depends on the data size; otherwise empty."""

    @property
    def reach(self) -> int:
        """Return the length of a window, dilation included."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def may_start_beyond(self) -> bool:
        """Return whether, rounding up, a last window might start after the data and its leading padding."""
        return self.rounds_up and not self.same and self.after + self.stride > self.reach


class Placed(NamedTuple):
    """A window with all positions known."""

    window: Window
    size: int
    """Data size."""
    length: int
    """Number of windows."""
    before: int
    after: int
    """Padding that windows touch, which may differ from the declared padding."""

    @property
    def skips(self) -> bool:
        """Return whether SAME windows end before the data does."""
        window = self.window
        return bool(window.same) and (self.length - 1) * window.stride + window.reach < self.size


def windows_of(node: Node, out: Rewriter) -> list[Window]:
    """Return one window per spatial dimension."""
    kernel = node.attribute("kernel_shape")
    rank = len(kernel)
    ones, auto = (1,) * rank, node.attribute("auto_pad", b"NOTSET")
    pads = node.attribute("pads") or (0,) * (2 * rank)
    # `pads` has no effect unless `auto_pad` is NOTSET.
    if auto not in (b"NOTSET", b""):
        pads = (0,) * (2 * rank)
    strides, dilations = node.attribute("strides") or ones, node.attribute("dilations") or ones
    shape = out.shape(node.inputs[0]) or (None,) * (rank + 2)
    rounds_up = bool(node.attribute("ceil_mode", 0))
    same = auto if auto.startswith(b"SAME") else b""
    columns = zip(shape[2:], kernel, strides, dilations, pads[:rank], pads[rank:], strict=True)
    return [
        Window(size, extent, stride, dilation, before, after, rounds_up, same)
        for size, extent, stride, dilation, before, after in columns
    ]


def placed_windows(node: Node, out: Rewriter) -> list[Placed]:
    """Return the windows with all positions known.

    Raises:
        CannotConvert: the size of a dimension is unknown, or a runtime differs from the definition.
    """
    windows = windows_of(node, out)
    if any(each.same and each.kernel > 1 and each.dilation > 1 for each in windows):
        out.concede(
            "approximate",
            f"onnxruntime pads dilated windows of {windows[0].same.decode()} like windows without dilation",
        )
    placed = [_place_window(each, node) for each in windows]
    if any(each.skips for each in placed):
        out.concede("approximate", "onnxruntime centres SAME windows that do not reach the end of the data")
    return placed


def _place_window(window: Window, node: Node) -> Placed:
    size = window.size
    if size is None:
        name = node.inputs[0]
        raise CannotConvert(
            f"the windows depend on the spatial size of {name!r}, which is unknown",
            remedy=f"add a value_info with the shape of {name!r}",
        )
    if window.same:
        count = -(-size // window.stride)
        padding = max((count - 1) * window.stride + window.reach - size, 0)
        smaller = padding // 2
        before = smaller if window.same == b"SAME_UPPER" else padding - smaller
        return Placed(window, size, count, before, padding - before)
    slack = size + window.before + window.after - window.reach
    count = (-(-slack // window.stride) if window.rounds_up else slack // window.stride) + 1
    # A window that starts after the data and its leading padding is omitted.
    if window.rounds_up and (count - 1) * window.stride >= size + window.before:
        count -= 1
    if count < 1:
        reason = (
            f"a window of {window.reach} elements is longer than the {size} elements of data plus padding"
        )
        raise CannotConvert(reason, remedy="correct the node, which cannot produce a result")
    end = (count - 1) * window.stride + window.reach
    return Placed(window, size, count, window.before, max(end - size - window.before, 0))


def pads_of(placed: Sequence[Placed]) -> list[int]:
    """Return the `pads` attribute."""
    return [window.before for window in placed] + [window.after for window in placed]


def pads_to_round_down(windows: Sequence[Window]) -> list[int]:
    """Return the `pads` with which rounding down yields the windows of rounding up, for data of any size."""
    return [window.before for window in windows] + [window.after + window.stride - 1 for window in windows]
