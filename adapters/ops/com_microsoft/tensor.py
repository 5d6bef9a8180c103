"""ExpandDims, Pad, Range and Rfft of com.microsoft."""

from opshift.adapters import CannotConvert, Node, Rewriter, adapter
from opshift.adapters.emit.quantization import as_scalar
from opshift.adapters.emit.shapes import reshape


@adapter("ExpandDims", 1, 0, domain="com.microsoft")
def expand_expand_dims(node: Node, out: Rewriter) -> None:
    """Rewrite as Unsqueeze."""
    out = out.for_opset(13, "")
    constant = out.constant_value(node.inputs[1])
    axes = out.int64(constant.values) if constant else reshape(out.cast(node.inputs[1], "int64"), (-1,), out)
    out.emit("Unsqueeze", [node.inputs[0], axes], node.outputs)


@adapter("Pad", 1, 0, domain="com.microsoft")
def expand_pad(node: Node, out: Rewriter) -> None:
    """Rewrite as Pad, whose numbers are a vector and whose value is a scalar."""
    out = out.for_opset(13, "")
    data, pads, value = (node.input(position) for position in range(3))
    constant = out.constant_value(pads)
    if constant:
        pads = out.int64(constant.values)
    elif out.known_rank(pads) != 1:
        pads = reshape(pads, (-1,), out)
    values = [as_scalar(value, out)] if value else []
    out.emit("Pad", [data, pads, *values], node.outputs, **node.attributes)


@adapter("Range", 1, 0, domain="com.microsoft")
def expand_range(node: Node, out: Rewriter) -> None:
    """Rewrite as Range of scalars, with a step of 1 by default."""
    out = out.for_opset(11, "")
    delta = node.input(2)
    if not delta:
        element_type = out.element_type(node.inputs[0])
        delta = out.constant(1 if "int" in element_type else 1.0, element_type)
    out.emit("Range", [as_scalar(each, out) for each in (*node.inputs[:2], delta)], node.outputs)


@adapter("Rfft", 1, 0, domain="com.microsoft")
def expand_rfft(node: Node, out: Rewriter) -> None:
    """Rewrite as DFT of the last dimension."""
    for name, default, supported in (("signal_ndim", 1, 1), ("onesided", 1, 1), ("normalized", 0, 0)):
        if node.attribute(name, default) != supported:
            reason = f"{name} is {node.attribute(name)}, and kernels support only {supported}"
            raise CannotConvert(reason, "attribute.unsupported", subject=name)
    out = out.for_opset(20, "")
    signals = out.emit("Unsqueeze", [node.inputs[0], out.int64([-1])])
    out.emit("DFT", [signals], node.outputs, onesided=1)
