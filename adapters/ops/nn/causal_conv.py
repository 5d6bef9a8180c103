"""CausalConvWithState (introduced in opset 27): a convolution over past and new columns."""

from opshift.adapters import Node, Rewriter, UnknownShape, adapter
from opshift.adapters.emit.shapes import INT64_MAX


@adapter("CausalConvWithState", 27, 26)
def expand_causal_conv(node: Node, out: Rewriter) -> None:
    """Rewrite as Conv over past and new columns; the last columns are the next state."""
    channels, reach = _channels_and_reach(node, out)
    columns = _prepend_past(node, reach, out)
    data = _with_spare_column(node, columns, out)
    inputs = [data, node.inputs[1], *filter(None, [node.input(2)])]
    is_plain = node.attribute("activation", b"none") == b"none"
    is_last = is_plain and data == columns
    result = out.emit("Conv", inputs, node.outputs[:1] if is_last else 1, group=channels)
    if data != columns:
        bounds = [out.int64([each]) for each in (1, INT64_MAX, 2)]
        result = out.emit("Slice", [result, *bounds], node.outputs[:1] if is_plain else 1)
    if not is_plain:
        _emit_silu(result, node, out)
    if out.is_used(node.output(1)):
        # A start of -0 would select all columns, but the state is empty.
        start = out.int64([-reach if reach else INT64_MAX])
        bounds = [start, out.int64([INT64_MAX]), out.int64([2])]
        out.emit("Slice", [columns, *bounds], [node.output(1)])


def _channels_and_reach(node: Node, out: Rewriter) -> tuple[int, int]:
    """Return the number of channels, and the number of past columns that the kernel covers.

    Raises:
        UnknownShape: either is unknown.
    """
    data, weight = out.shape(node.inputs[0]), out.shape(node.inputs[1])
    channels = (weight[0] if weight else None) or (data[1] if data else None)
    if not channels or not weight or weight[2] is None:
        reason = "the number of channels and the kernel width are unknown"
        raise UnknownShape(reason, *node.inputs[:2])
    return channels, weight[2] - 1


def _prepend_past(node: Node, reach: int, out: Rewriter) -> str:
    data, past = node.inputs[0], node.input(3)
    if past:
        return out.emit("Concat", [past, data], axis=2)
    if not reach:
        return data
    zero = out.constant(0.0, out.element_type(data))
    return out.emit("Pad", [data, out.int64([0, 0, reach, 0, 0, 0]), zero], opset=13)


def _with_spare_column(node: Node, columns: str, out: Rewriter) -> str:
    """Return the columns with one before them unless there are new ones: Conv needs as many as its kernel."""
    if out.known_dimension(node.inputs[0], 2):
        return columns
    zero = out.constant(0.0, out.element_type(node.inputs[0]))
    return out.emit("Pad", [columns, out.int64([0, 0, 1, 0, 0, 0]), zero], opset=13)


def _emit_silu(value: str, node: Node, out: Rewriter) -> None:
    """Emit `x * sigmoid(x)`, computed in float."""
    element_type, outputs = out.element_type(node.inputs[0]), node.outputs[:1]
    is_float = element_type == "float"
    wide = value if is_float else out.cast(value, "float")
    product = out.emit("Mul", [wide, out.emit("Sigmoid", [wide])], outputs if is_float else 1)
    if not is_float:
        out.cast(product, element_type, outputs)
