"""Convolutions of data with the channels last."""

from collections.abc import Sequence

from opshift.adapters import Node, Rewriter, adapter
from opshift.adapters.core.rewriter import Attributes


def channels_first(data: str, rank: int, out: Rewriter) -> str:
    """Move the channels from the last dimension to the second one."""
    return out.emit("Transpose", [data], perm=(0, rank - 1, *range(1, rank - 1)))


def channels_last_order(rank: int) -> tuple[int, ...]:
    """Return the permutation that moves the channels to the last dimension."""
    return (0, *range(2, rank), 1)


@adapter("NhwcConv", 1, 0, domain="com.microsoft")
def expand_nhwc_conv(node: Node, out: Rewriter) -> None:
    """Rewrite as Conv between two Transpose."""
    out = out.for_opset(11, "")
    _convolve("Conv", node.inputs, node.attributes, node, out)


@adapter("NhwcFusedConv", 1, 0, domain="com.microsoft")
def expand_nhwc_fused_conv(node: Node, out: Rewriter) -> None:
    """Rewrite as FusedConv between Transpose."""
    inputs, residual = list(node.inputs), node.input(3)
    if residual:
        inputs[3] = channels_first(residual, _rank(node, out), out.for_opset(11, ""))
    _convolve("FusedConv", inputs, node.attributes, node, out.for_opset(1))


@adapter("QLinearConv", 1, 0, domain="com.microsoft")
def expand_quantized_conv(node: Node, out: Rewriter) -> None:
    """Rewrite as QLinearConv of ONNX, between two Transpose if the channels are last."""
    out, attributes = out.for_opset(10, ""), node.without("channels_last")
    if node.attribute("channels_last", 0):
        _convolve("QLinearConv", node.inputs, attributes, node, out)
    else:
        out.emit("QLinearConv", node.inputs, node.outputs, **attributes)


def _convolve(op_type: str, inputs: Sequence[str], attributes: Attributes, node: Node, out: Rewriter) -> None:
    """Emit an operator with the channels in the second dimension for a node with the channels last."""
    rank, standard = _rank(node, out), out.for_opset(11, "")
    data = channels_first(inputs[0], rank, standard)
    result = out.emit(op_type, [data, *inputs[1:]], **attributes)
    standard.emit("Transpose", [result], node.outputs, perm=channels_last_order(rank))


def _rank(node: Node, out: Rewriter) -> int:
    sizes = node.attribute("kernel_shape", None)
    return out.rank(node.inputs[0]) if sizes is None else len(sizes) + 2
