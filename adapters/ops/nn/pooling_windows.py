"""Pooling: attributes of a node as numbers for each spatial dimension, and the positions of windows."""

from collections.abc import Sequence
from typing import NamedTuple

from opshift.adapters import CannotConvert, Node, Rewriter, UnknownShape

ERRORS = {
    "MaxPool": "0, compared with the definition",
    "AveragePool": (
        "at most 2 (n + 2) units in the last place of the mean magnitude, for windows of n elements"
    ),
    "LpPool": (
        "at most 2 (n + 2) units in the last place, for windows of n elements with a sum of powers that is a "
        "normal number, and 100 more (750 in double) if p exceeds 2"
    ),
}
"""Bounds of the errors, compared with the definition, for up to three spatial dimensions.

The root of a sum of powers is a power with the rounded exponent 1 / p. Its error grows with the logarithm of
the sum. Runtimes may ignore NaN in MaxPool.
"""


class PoolWindow(NamedTuple):
    """Data size, kernel and padding along one spatial dimension."""

    size: int | None
    """Data size; `None` if unknown."""
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int
    rounds_up: bool
    same_mode: bytes
    """`SAME_UPPER` or `SAME_LOWER` if the padding depends on the data size; otherwise empty."""

    @property
    def extent(self) -> int:
        """Return the length of a window, dilation included."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def may_start_past_data(self) -> bool:
        """Return whether, rounding up, a last window might start after the data and its leading padding."""
        return self.rounds_up and not self.same_mode and self.after + self.stride > self.extent


class Placed(NamedTuple):
    """A window with all positions known."""

    window: PoolWindow
    size: int
    """Data size."""
    window_count: int
    """Number of windows."""
    before: int
    after: int
    """Padding that windows touch, which may differ from the declared padding."""

    @property
    def skips(self) -> bool:
        """Return whether SAME windows end before the data does."""
        window = self.window
        return bool(window.same_mode) and (self.window_count - 1) * window.stride + window.extent < self.size


def read_windows(node: Node, out: Rewriter) -> list[PoolWindow]:
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
        PoolWindow(size, extent, stride, dilation, before, after, rounds_up, same)
        for size, extent, stride, dilation, before, after in columns
    ]


def place_windows(node: Node, out: Rewriter) -> list[Placed]:
    """Return the windows with all positions known.

    Raises:
        CannotConvert: the size of a dimension is unknown, or a runtime differs from the definition.
    """
    windows = read_windows(node, out)
    if any(each.same_mode and each.kernel > 1 and each.dilation > 1 for each in windows):
        out.allow(
            "approximate",
            f"onnxruntime pads dilated windows of {windows[0].same_mode.decode()} "
            "like windows without dilation",
        )
    placed = [_place_window(each, node) for each in windows]
    if node.op_type != "MaxPool":
        for each in placed:
            out.require_elements(each.window_count, each.window.kernel)
    if any(each.skips for each in placed):
        out.allow("approximate", "onnxruntime centres SAME windows that do not reach the end of the data")
    return placed


def _place_window(window: PoolWindow, node: Node) -> Placed:
    size, name = window.size, node.inputs[0]
    if size is None:
        raise UnknownShape(f"the windows depend on the spatial size of {name!r}, which is unknown", name)
    if window.same_mode:
        count = -(-size // window.stride)
        padding = max((count - 1) * window.stride + window.extent - size, 0)
        smaller = padding // 2
        before = smaller if window.same_mode == b"SAME_UPPER" else padding - smaller
        return Placed(window, size, count, before, padding - before)
    slack = size + window.before + window.after - window.extent
    count = (-(-slack // window.stride) if window.rounds_up else slack // window.stride) + 1
    # A window that starts after the data and its leading padding is omitted.
    if window.rounds_up and (count - 1) * window.stride >= size + window.before:
        count -= 1
    if count < 1:
        reason = (
            f"a window of {window.extent} elements is longer than the {size} elements of data plus padding"
        )
        raise CannotConvert(reason, "node.invalid", remedy="correct the node, which cannot produce a result")
    end = (count - 1) * window.stride + window.extent
    return Placed(window, size, count, window.before, max(end - size - window.before, 0))


def pads_attribute(placed: Sequence[Placed | PoolWindow]) -> list[int]:
    """Return the `pads` attribute."""
    return [window.before for window in placed] + [window.after for window in placed]


def pads_to_round_down(windows: Sequence[PoolWindow]) -> list[int]:
    """Return the `pads` with which rounding down yields the windows of rounding up, for data of any size."""
    return [window.before for window in windows] + [window.after + window.stride - 1 for window in windows]
