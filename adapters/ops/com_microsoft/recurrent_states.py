"""CausalConvWithState and LinearAttention of onnxruntime, as the operators of ONNX."""

from opshift.adapters import CannotConvert, Node, Rewriter, adapter

OPSET = 27
"""First opset with the operators of ONNX."""

ADDED_ATTRIBUTES = {"channels_last": 0, "dilation": 1, "ndim": 1, "state_window": 0}
"""Attributes that ONNX lacks, and the values with which both operators compute the same."""


@adapter(("CausalConvWithState", "LinearAttention"), 1, 0, domain="com.microsoft")
def convert_to_standard_operator(node: Node, out: Rewriter) -> None:
    """Rewrite as the operator of the same name in ONNX, which lacks some attributes."""
    for name, value in ADDED_ATTRIBUTES.items():
        if node.attribute(name, value) != value:
            reason = f"{name} is {node.attribute(name)}, but {node.op_type} of ONNX requires {value}"
            raise CannotConvert(reason, "attribute.unsupported", subject=name)
    attributes = node.without(*ADDED_ATTRIBUTES)
    out.emit(node.op_type, node.inputs, node.outputs, domain="", opset=OPSET, **attributes)
