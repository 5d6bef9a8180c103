"""Pooling: `ceil_mode`, `dilations` and padding of windows, and the type of the exponent of LpPool.

If an axis is reshaped to a matrix with `dilation` elements in each row, a dilated window is a contiguous part
of a column, and is pooled without dilation.
"""

import math
from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor, UnknownShape, adapter, expression
from opshift.adapters.core.rewriter import rename_output
from opshift.adapters.emit.expression import Expression
from opshift.adapters.emit.shapes import Dimension, computed_dimension, reshape

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

LpPool computes the root of a sum of powers as Pow with the rounded exponent 1 / p. The error of Pow grows
with the logarithm of the sum. Runtimes may ignore NaN in MaxPool.
"""


class PoolWindow(NamedTuple):
    """Attributes of a pooling node, and the data size, along one spatial dimension."""

    size: int | None
    """Data size; `None` if unknown."""
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int
    """`before` and `after` are the declared padding at both ends."""
    rounds_up: bool
    """Whether `ceil_mode` is set."""
    same_mode: bytes
    """`SAME_UPPER` or `SAME_LOWER` if the padding depends on the data size; otherwise empty."""

    @property
    def extent(self) -> int:
        """Return the length of a window, dilation included."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def may_start_past_data(self) -> bool:
        """Return whether `ceil_mode` can add a window that covers only trailing padding."""
        return self.rounds_up and not self.same_mode and self.after + self.stride > self.extent


class Placed(NamedTuple):
    """Windows along one spatial dimension of known size: their number, and the padding that they cover."""

    window: PoolWindow
    size: int
    """Data size."""
    window_count: int
    """Number of windows."""
    before: int
    after: int
    """`before` and `after` are the padding that windows cover, which may differ from the declared padding."""

    @property
    def skips(self) -> bool:
        """Return whether the last window of `SAME_UPPER` or `SAME_LOWER` ends before the data ends."""
        window = self.window
        return bool(window.same_mode) and (self.window_count - 1) * window.stride + window.extent < self.size


def read_windows(node: Node, out: Rewriter) -> list[PoolWindow]:
    """Return the window of each spatial dimension, read from the attributes of a pooling node."""
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
    """Return the windows of each spatial dimension, with the number and padding of windows computed.

    Raises:
        CannotConvert: a size is unknown, a window is longer than data and padding, or onnxruntime deviates
            from the definition and the caller does not allow `approximate`.
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
    # Omit a window that starts after the leading padding and the data.
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
    """Return the attribute `pads`: the leading padding of all axes, then the trailing padding of all axes."""
    return [window.before for window in placed] + [window.after for window in placed]


def pads_to_round_down(windows: Sequence[PoolWindow]) -> list[int]:
    """Return `pads` for which `ceil_mode` 0 has the same windows as `ceil_mode` 1, for any data size."""
    return [window.before for window in windows] + [window.after + window.stride - 1 for window in windows]


OPSET = 8
"""Opset of the nodes that replace a pooling operator."""


@adapter("LpPool", 18, 11, error=ERRORS["LpPool"])
@adapter("AveragePool", 10, 7, error=ERRORS["AveragePool"])
@adapter("MaxPool", 10, 8, error=ERRORS["MaxPool"])
def expand_dilated_windows(node: Node, out: Rewriter) -> None:
    """Pool dilated windows as columns of a matrix; replace `ceil_mode` by padding."""
    if not _is_dilated(node):
        _drop_ceil_mode(node, out)
        return
    if out.is_used(node.output(1)):
        reason = "output Indices is used, but dilated windows are rewritten without it"
        raise CannotConvert(reason, "output.unsupported")
    _pool_by_axis(node, place_windows(node, out), out)


@adapter(("LpPool", "GlobalLpPool"), 1, 2)
def convert_p_to_int(node: Node, out: Rewriter) -> None:
    """Convert `p` to an integer; refuse fractions, and an LpPool without `kernel_shape`."""
    if node.op_type == "LpPool" and "kernel_shape" not in node.attributes:
        reason = "kernel_shape is missing, but LpPool-2 requires it"
        raise CannotConvert(reason, "attribute.missing", remedy="set kernel_shape")
    exponent = float(node.attribute("p", 2.0))
    if not exponent.is_integer():
        raise CannotConvert(f"p is {exponent}; since version 2 it must be an integer", "value.unsupported")
    out.replace(node, attributes={**node.without("p"), "p": int(exponent)})


@adapter("AveragePool", 22, 19, error=ERRORS["AveragePool"])
@adapter("MaxPool", 22, 12, error=ERRORS["MaxPool"])
@adapter("LpPool", 22, 18, error=ERRORS["LpPool"])
def exclude_padding_windows(node: Node, out: Rewriter) -> None:
    """Replace `ceil_mode` by padding if a window may cover only padding: version 22 omits such windows."""
    rounds_up = node.attribute("ceil_mode", 0)
    if rounds_up and any(each.may_start_past_data for each in read_windows(node, out)):
        _replace_ceil_mode(node, out)
    else:
        out.replace(node)


@adapter("AveragePool", 19, 11, error=ERRORS["AveragePool"])
def expand_dilated_average(node: Node, out: Rewriter) -> None:
    """Pool dilated windows as columns of a matrix."""
    if not _is_dilated(node):
        out.replace(node, attributes=node.without("dilations"))
        return
    _pool_by_axis(node, place_windows(node, out), out)


@adapter("MaxPool", 8, 1)
def drop_indices(node: Node, out: Rewriter) -> None:
    """Drop `storage_order`, which only affects Indices; refuse Indices in use."""
    if out.is_used(node.output(1)):
        raise CannotConvert("output Indices is used, but MaxPool-1 does not have it", "output.unsupported")
    out.replace(node, outputs=node.outputs[:1], attributes=node.without("storage_order"))


@adapter("AveragePool", 7, 1, error=ERRORS["AveragePool"])
def pad_before_average(node: Node, out: Rewriter) -> None:
    """Emit an explicit Pad if `count_include_pad` is set."""
    attributes = node.without("count_include_pad")
    if not node.attribute("count_include_pad", 0):
        out.replace(node, attributes=attributes)
        return
    windows = read_windows(node, out)
    if not any(each.before or each.after or each.same_mode for each in windows):
        out.replace(node, attributes=attributes)
        return
    placed: Sequence[Placed | PoolWindow] = place_windows(node, out) if windows[0].same_mode else windows
    data = _emit_pad(node.inputs[0], pads_attribute(placed), out)
    attributes = node.without("count_include_pad", "pads", "auto_pad")
    out.replace(node, inputs=[data], attributes=attributes)


def _emit_pad(data: str, pads: Sequence[int], out: Rewriter) -> str:
    rank = len(pads) // 2
    return out.emit("Pad", [data], opset=2, pads=[0, 0, *pads[:rank], 0, 0, *pads[rank:]])


@adapter(("LpPool", "GlobalLpPool"), 2, 1)
def convert_p_to_float(node: Node, out: Rewriter) -> None:
    """Convert `p` to a float."""
    out.replace(node, attributes={**node.without("p"), "p": float(node.attribute("p", 2))})


def _replace_ceil_mode(node: Node, out: Rewriter) -> None:
    """Replace `ceil_mode` by `pads` that the windows cover; if that is not possible, pool axis by axis."""
    placed = place_windows(node, out)
    counts_padding = node.op_type == "AveragePool" and bool(node.attribute("count_include_pad", 0))
    adds_padding = any(each.after > each.window.after and not each.window.same_mode for each in placed)
    is_too_long = any(max(each.before, each.after) >= each.window.kernel for each in placed)
    # Added padding must not enter an average, and runtimes refuse padding that is as long as the kernel.
    if (counts_padding and adds_padding) or (is_too_long and not out.is_used(node.output(1))):
        _pool_by_axis(node, placed, out)
        return
    attributes = node.without("ceil_mode", "pads", "auto_pad")
    if not _is_dilated(node):
        attributes.pop("dilations", None)
    out.replace(node, attributes={**attributes, "pads": pads_attribute(placed)})


def _is_dilated(node: Node) -> bool:
    return any(dilation != 1 for dilation in node.attribute("dilations") or ())


def _averaged_elements(placed: Placed, start: int, with_padding: bool) -> int:
    window = placed.window
    first = start * window.stride - placed.before
    low, high = 0, placed.size
    if with_padding:
        after = placed.after if window.same_mode else window.after
        low, high = -placed.before, placed.size + after
    elements = (first + tap * window.dilation for tap in range(window.kernel))
    return sum(low <= element < high for element in elements)


def _drop_ceil_mode(node: Node, out: Rewriter) -> None:
    attributes = node.without("ceil_mode", "dilations")
    if not node.attribute("ceil_mode", 0):
        out.replace(node, attributes=attributes)
        return
    windows = read_windows(node, out)
    if _can_round_down(node, windows):
        attributes.pop("auto_pad", None)
        out.replace(node, attributes={**attributes, "pads": pads_to_round_down(windows)})
    else:
        _replace_ceil_mode(node, out)


def _can_round_down(node: Node, windows: Sequence[PoolWindow]) -> bool:
    """Return whether larger padding can replace `ceil_mode` for data of unknown size.

    The added padding must not enter an average, and no window may consist of padding alone.
    """
    if all(window.size is not None for window in windows) or any(window.same_mode for window in windows):
        return False
    if node.op_type == "AveragePool" and node.attribute("count_include_pad", 0):
        return all(window.stride == 1 for window in windows)
    return not any(window.may_start_past_data or window.before >= window.kernel for window in windows)


def _pool_by_axis(node: Node, placed: Sequence[Placed], out: Rewriter) -> None:
    """Pool along one axis after the other, which gives the same result as multidimensional windows."""
    out = out.for_opset(OPSET)
    data, sizes = node.inputs[0], [each.size for each in placed]
    channels, element_type = out.known_dimension(data, 1), out.known_element_type(data)
    # The padding is -inf, so the type must be floating-point; float represents all 8-bit integers.
    narrow_type = element_type if element_type in ("int8", "uint8") else None
    if narrow_type:
        data = out.cast(data, "float")
    for axis, each in enumerate(placed):
        is_trivial = each.window.kernel == each.window.stride == 1 and not (each.before or each.after)
        # An LpPool with windows of one element still computes absolute values.
        if is_trivial and node.op_type != "LpPool":
            continue
        # Use -1 for batch * channels only if channels are unknown: Reshape infers no -1 for an empty batch.
        batch, images = (-1, 1) if channels is None else (0, channels)
        inner = (batch, images * prod(sizes[:axis])), prod(sizes[axis + 1 :])
        data = _pool_along(node, data, each, *inner, out)
        sizes[axis] = each.window_count
    outer: Sequence[Dimension] = (0, channels or 0)
    if channels is None:
        outer = [computed_dimension(node.inputs[0], axis, out) for axis in (0, 1)]
    pooled = reshape(data, (*outer, *sizes), out, 1 if narrow_type else node.outputs[:1])
    if narrow_type:
        out.cast(pooled, narrow_type, node.outputs[:1])


def _pool_along(
    node: Node, data: str, placed: Placed, outer: tuple[int, int], trailing: int, out: Rewriter
) -> str:
    """Pool the windows along one axis, and return a tensor of rank 4.

    Dimensions: batch, flattened dimensions before the axis, windows, flattened dimensions after the axis.
    """
    kernel, stride, dilation = placed.window.kernel, placed.window.stride, placed.window.dilation
    data = reshape(data, (*outer, placed.size, trailing), out)
    # Each row of the matrix has `dilation` elements, so a window is a part of a column.
    last = (placed.window_count - 1) * stride
    rows = last // dilation + kernel
    after = rows * dilation - placed.before - placed.size
    if after < 0:
        kept = placed.size + after
        data, after = out.emit("Slice", [data], opset=1, axes=[2], starts=[0], ends=[kept]), 0
    if placed.before or after:
        pads, value = (
            [0, 0, placed.before, 0, 0, 0, after, 0],
            -math.inf if node.op_type == "MaxPool" else 0.0,
        )
        data = out.emit("Pad", [data], opset=2, pads=pads, value=value)
    matrix = reshape(data, (*outer, rows, dilation * trailing), out)
    exponent = node.attribute("p", 2) if node.op_type == "LpPool" else None
    pooled = out.emit(node.op_type, [matrix], kernel_shape=[kernel, 1], strides=[1, 1], p=exponent)
    pooled = reshape(pooled, (*outer, (last // dilation + 1) * dilation, trailing), out)
    if last + 1 < (last // dilation + 1) * dilation:
        pooled = out.emit("Slice", [pooled], opset=1, axes=[2], starts=[0], ends=[last + 1])
    if stride > 1:
        # Windows of one element with the stride keep only every `stride`-th result.
        selector = "MaxPool" if node.op_type == "MaxPool" else "AveragePool"
        pooled = out.emit(selector, [pooled], kernel_shape=[1, 1], strides=[stride, 1])
    return _correct_average(node, pooled, placed, out) if node.op_type == "AveragePool" else pooled


def _correct_average(node: Node, pooled: str, placed: Placed, out: Rewriter) -> str:
    """Divide averages over whole windows by the share of the window that the definition averages."""
    kernel, count = placed.window.kernel, out.require_elements(placed.window_count)
    with_padding = bool(node.attribute("count_include_pad", 0))
    shares = tuple(_averaged_elements(placed, start, with_padding) / kernel for start in range(count))
    if set(shares) == {1.0}:
        return pooled
    return out.emit("Div", [pooled, out.tensor(Tensor(out.element_type(node.inputs[0]), (count, 1), shares))])


LP_POOL_OPSET = 13
"""Opset of the emitted arithmetic."""

AVERAGE_OPSET = 19
"""First opset in which AveragePool has dilations, like LpPool since 18."""


@expression("LpPool", 1, 2, 11, 18, 22)
def expand_lp_pool(node: Node, out: Rewriter) -> None:
    """Rewrite as AveragePool of `|x|^p` with padding, times the kernel size, to the power of `1 / p`."""
    if node.attribute("ceil_mode", 0):
        reason = "runtimes do not agree on averages of windows that exceed the padding, as with ceil_mode 1"
        remedy = "add explicit padding, and set ceil_mode to 0"
        raise CannotConvert(reason, "operator.no-equivalent", remedy=remedy)
    element_type, exponent = out.element_type(node.inputs[0]), float(node.attribute("p", 2))
    attributes = {**node.without("ceil_mode", "p"), "count_include_pad": 1}
    arithmetic = out.for_opset(LP_POOL_OPSET)
    data = Expression(node.inputs[0], element_type, arithmetic)
    powers = data * data if exponent == 2 else abs(data)
    if exponent not in (1, 2):
        powers = powers.apply("Pow", exponent)
    average = out.emit("AveragePool", [powers.name], opset=AVERAGE_OPSET, **attributes)
    total = Expression(average, element_type, arithmetic) * prod(node.attribute("kernel_shape"))
    if exponent == 2:
        total = total.apply("Sqrt")
    elif exponent != 1:
        total = total.apply("Pow", 1 / exponent)
    rename_output(total.name, node, out)
