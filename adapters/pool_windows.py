"""Where the windows of a pooling node lie: its attributes as numbers for each spatial dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter


class Window(NamedTuple):
    """Along one dimension: how long it is, and how the window moves over it."""

    size: int | None
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int
    rounds_up: bool
    same: bytes
    """`SAME_UPPER` or `SAME_LOWER`, where the padding follows from the size; else empty."""

    @property
    def reach(self) -> int:
        """From the first element of a window to beyond its last."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def may_start_beyond(self) -> bool:
        """Whether, rounding up, a last window might begin after the data and its leading padding."""
        return self.rounds_up and not self.same and self.after + self.stride > self.reach


class Placed(NamedTuple):
    """A window whose every position is known."""

    window: Window
    size: int
    length: int
    before: int
    after: int
    """The padding that windows really touch, which need not be what the node states."""

    @property
    def skips(self) -> bool:
        """Whether SAME windows end before the data does."""
        window = self.window
        return bool(window.same) and (self.length - 1) * window.stride + window.reach < self.size


def windows_of(node: Node, out: Rewriter) -> list[Window]:
    """One for each spatial dimension."""
    kernel = node.attribute("kernel_shape")
    rank = len(kernel)
    ones, auto = (1,) * rank, node.attribute("auto_pad", b"NOTSET")
    pads = node.attribute("pads") or (0,) * (2 * rank)
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
    """All positions of the windows.

    Raises:
        CannotConvert: the size of a dimension is not known.
    """
    windows = windows_of(node, out)
    if any(each.same and each.kernel > 1 and each.dilation > 1 for each in windows):
        out.concede(
            "approximate",
            f"onnxruntime pads dilated windows of {windows[0].same.decode()} as if they were not dilated",
        )
    placed = [_place(each, node) for each in windows]
    if any(each.skips for each in placed):
        out.concede("approximate", "onnxruntime centres SAME windows that do not reach the end of the data")
    return placed


def _place(window: Window, node: Node) -> Placed:
    size = window.size
    if size is None:
        name = node.inputs[0]
        raise CannotConvert(
            f"where its windows lie depends on the spatial size of {name!r}, which is not known",
            remedy=f"state it: add a value_info for {name!r}",
        )
    if window.same:
        count = -(-size // window.stride)
        total = max((count - 1) * window.stride + window.reach - size, 0)
        smaller = total // 2
        before = smaller if window.same == b"SAME_UPPER" else total - smaller
        return Placed(window, size, count, before, total - before)
    free = size + window.before + window.after - window.reach
    count = (-(-free // window.stride) if window.rounds_up else free // window.stride) + 1
    if window.rounds_up and (count - 1) * window.stride >= size + window.before:
        count -= 1
    if count < 1:
        reason = f"a window of {window.reach} elements is longer than the data of {size} and their padding"
        raise CannotConvert(reason, remedy="correct the node: it has no result")
    last = (count - 1) * window.stride + window.reach
    return Placed(window, size, count, window.before, max(last - size - window.before, 0))


def pads_of(placed: Sequence[Placed]) -> list[int]:
    """The `pads` attribute."""
    return [each.before for each in placed] + [each.after for each in placed]


def pads_to_round_down(windows: Sequence[Window]) -> list[int]:
    """The `pads` with which rounding down gives as many windows as rounding up, for data of any size."""
    return [each.before for each in windows] + [each.after + each.stride - 1 for each in windows]
