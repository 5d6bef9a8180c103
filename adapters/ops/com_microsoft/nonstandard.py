"""LayerNormalization and SimplifiedLayerNormalization, which onnxruntime writes to the default domain."""

from opshift.adapters import CannotConvert, Node, Rewriter, adapter
from opshift.adapters.emit.cast import cast_between, cast_output
from opshift.adapters.ops.nn.layer_normalization import expand_layer_normalization

DOUBLE = 11
"""Number of the element type. onnxruntime normalizes doubles in it, whatever `stash_type` is."""


@adapter("LayerNormalization", 1, 0, domain="com.microsoft")
def to_layer_normalization(node: Node, out: Rewriter) -> None:
    """Rewrite as LayerNormalization of ONNX; as arithmetic for doubles, which it normalizes as floats."""
    data_type, scale_type = map(out.known_element_type, node.inputs[:2])
    if data_type and scale_type and data_type != scale_type:
        reason = f"X has the element type {data_type} and Scale {scale_type}, and ONNX requires the same"
        raise CannotConvert(reason, "type.unsupported", subject=data_type, remedy="cast Scale and B")
    if "double" not in (data_type, scale_type):
        out.for_opset(17, "").emit("LayerNormalization", node.inputs, node.outputs, **node.attributes)
        return
    _refuse_statistics(node, out)
    double = node.with_(outputs=node.outputs[:1], attributes={**node.attributes, "stash_type": DOUBLE})
    expand_layer_normalization(double, out.for_opset(16, ""))


@adapter("SimplifiedLayerNormalization", 1, 0, domain="com.microsoft")
def to_rms_normalization(node: Node, out: Rewriter) -> None:
    """Rewrite as RMSNormalization."""
    _refuse_statistics(node, out)
    data, scale = node.inputs[:2]
    data_type, scale_type = map(out.known_element_type, (data, scale))
    attributes = {**node.attributes, "stash_type": DOUBLE} if data_type == "double" else node.attributes
    out = out.for_opset(23, "")
    if not data_type or not scale_type or data_type == scale_type:
        out.emit("RMSNormalization", [data, scale], node.outputs[:1], **attributes)
        return
    # The result has the type of the scale, and kernels do not round the normalized data to that of the data.
    compute = "double" if "double" in (data_type, scale_type) else "float"
    types = {data: data_type, scale: scale_type}
    operands = [cast_between(name, types[name], compute, out) for name in (data, scale)]
    result = out.emit("RMSNormalization", operands, **attributes)
    cast_output(result, compute, scale_type, node.with_(outputs=node.outputs[:1]), out)


def _refuse_statistics(node: Node, out: Rewriter) -> None:
    if any(map(out.is_used, filter(None, node.outputs[1:]))):
        reason = "a statistic is used, and the operators that express the node do not compute it"
        raise CannotConvert(reason, "output.unsupported", subject="statistics", remedy="omit the output")
