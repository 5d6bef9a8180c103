"""CausalConvWithState and LinearAttention of onnxruntime, as the operators of ONNX."""

from opshift.adapters import CannotConvert, Node, Rewriter, adapter

OPSET, TRANSPOSE_OPSET = 27, 13
"""First opset with the operators of ONNX, and the opset of emitted Transpose."""

ADDED_ATTRIBUTES = {"dilation": 1, "ndim": 1, "state_window": 0}
"""Attributes that ONNX lacks, and the values with which both operators compute the same."""

SWAPPED = (0, 2, 1)
"""Order of dimensions that moves the channels to the end, and back."""


@adapter(("CausalConvWithState", "LinearAttention"), 1, 0, domain="com.microsoft")
def convert_to_standard_operator(node: Node, out: Rewriter) -> None:
    """Rewrite as the operator of the same name in ONNX, which has the channels first and lacks attributes."""
    for name, value in ADDED_ATTRIBUTES.items():
        if node.attribute(name, value) != value:
            reason = f"{name} is {node.attribute(name)}, but {node.op_type} of ONNX requires {value}"
            raise CannotConvert(reason, "attribute.unsupported", subject=name)
    attributes = node.without("channels_last", *ADDED_ATTRIBUTES)
    out = out.for_opset(OPSET, "")
    if not node.attribute("channels_last", 0):
        out.emit(node.op_type, node.inputs, node.outputs, **attributes)
        return
    inputs = list(node.inputs)
    for position in (0, 3):
        if node.input(position):
            inputs[position] = _swap(inputs[position], 1, out)
    results = out.emit_all(node.op_type, inputs, len(node.outputs), **attributes)
    for result, name in zip(results, node.outputs, strict=True):
        if out.is_used(name) or name == node.outputs[0]:
            _swap(result, [name], out)


def _swap(value: str, outputs: int | list[str], out: Rewriter) -> str:
    return out.emit("Transpose", [value], outputs, opset=TRANSPOSE_OPSET, perm=SWAPPED)
