"""Layer, RMS and group normalization of com.microsoft, also fused with sums or with embeddings.

Models of onnxruntime contain LayerNormalization and SimplifiedLayerNormalization in the default domain, too.
"""

from collections.abc import Sequence

from opshift.adapters import CannotConvert, Node, Rewriter, adapter
from opshift.adapters.core.rewriter import rename_output
from opshift.adapters.emit.expression import cast, cast_between, cast_output, fold
from opshift.adapters.emit.shapes import dimension, dimension_tensor
from opshift.adapters.ops.nn.normalization import expand_layer_normalization

OPSET, RMS_OPSET, GROUP_OPSET = 17, 23, 21
"""Opsets that introduced LayerNormalization, RMSNormalization, and GroupNormalization with channel scales."""

EPSILON = 1e-12
"""Default of `epsilon` in EmbedLayerNormalization, SkipLayerNormalization and its simplified variant."""


@adapter("SkipLayerNormalization", 1, 0, domain="com.microsoft")
def expand_skip_layer_normalization(node: Node, out: Rewriter) -> None:
    """Rewrite as Add and LayerNormalization."""
    out = out.for_opset(OPSET, "")
    element_type = out.element_type(node.inputs[0])
    total = _sum_in_float([*node.inputs[:2], node.input(4)], node.output(3), element_type, out)
    parameters = [node.inputs[2], node.input(3)]
    _normalize("LayerNormalization", total, parameters, node.outputs[:3], element_type, node, out)


@adapter("SkipSimplifiedLayerNormalization", 1, 0, domain="com.microsoft")
def expand_skip_rms_normalization(node: Node, out: Rewriter) -> None:
    """Rewrite as Add and RMSNormalization; refuse used statistics, which differ between kernels."""
    for position, name in ((1, "mean"), (2, "inv_std_var")):
        if out.is_used(node.output(position)):
            reason = f"the output {name} is used, and its value depends on the kernel"
            raise CannotConvert(reason, "output.unsupported", subject=name, remedy="omit the output")
    out = out.for_opset(RMS_OPSET, "")
    element_type = out.element_type(node.inputs[0])
    total = _sum_in_float([*node.inputs[:2], node.input(3)], node.output(3), element_type, out)
    _normalize("RMSNormalization", total, node.inputs[2:3], node.outputs[:1], element_type, node, out)


@adapter("EmbedLayerNormalization", 1, 0, domain="com.microsoft")
def expand_embed_layer_normalization(node: Node, out: Rewriter) -> None:
    """Rewrite as Gather of each table, Add and LayerNormalization; `mask_index` is a ReduceSum."""
    out = out.for_opset(OPSET, "")
    words, segments, word_rows, position_rows, segment_rows, scale, offset, mask, positions = (
        node.input(position) for position in range(9)
    )
    element_type = out.element_type(word_rows)
    if positions:
        position_rows = out.emit("Gather", [position_rows, positions])
    else:
        length = dimension_tensor(dimension(words, 1, out), out)
        position_rows = out.emit("Slice", [position_rows, out.int64([0]), length, out.int64([0])])
    rows = [out.emit("Gather", [word_rows, words]), position_rows]
    if segments:
        rows.append(out.emit("Gather", [segment_rows, segments]))
    total = _sum_in_float(rows, node.output(2), element_type, out)
    _normalize("LayerNormalization", total, [scale, offset], node.outputs[:1], element_type, node, out)
    if out.is_used(node.output(1)):
        # Count the ones in each row of the mask, as kernels do.
        is_one = mask and out.emit("Equal", [mask, out.constant(1, "int32")])
        counted = cast(is_one, "int32", out) if is_one else out.emit("Sub", [words, words])
        out.emit("ReduceSum", [counted, out.int64([1])], [node.output(1)], keepdims=0)


def _sum_in_float(names: Sequence[str], result: str, element_type: str, out: Rewriter) -> str:
    """Return the float32 sum of the values that are not `""`; also emit output `result` if it is used.

    Kernels normalize the sum without rounding it to `element_type`: in a row of similar numbers, the
    difference from the mean may be smaller than the rounding error.
    """
    names = [cast_between(name, element_type, "float", out) for name in names if name]
    if element_type == "float":
        return _sum(names, result, out)
    total = _sum(names, "", out)
    if out.is_used(result):
        cast(total, element_type, out, [result])
    return total


def _sum(names: Sequence[str], result: str, out: Rewriter) -> str:
    """Return the sum of the values that are not `""`, with the name `result` if the model uses `result`."""
    *first, last = [name for name in names if name]
    return out.emit("Add", [fold("Add", first, out), last], [result] if out.is_used(result) else 1, opset=14)


def _normalize(
    op_type: str,
    data: str,
    parameters: Sequence[str],
    outputs: Sequence[str],
    element_type: str,
    node: Node,
    out: Rewriter,
) -> None:
    """Normalize float32 data with `parameters` of `element_type`; cast the first output to this type."""
    used = [name if out.is_used(name) or not position else "" for position, name in enumerate(outputs)]
    while not used[-1]:
        used.pop()
    operands = [data, *(cast_between(name, element_type, "float", out) for name in parameters if name)]
    results = used if element_type == "float" else [out.fresh("normalized"), *used[1:]]
    out.emit(op_type, operands, results, axis=-1, epsilon=node.attribute("epsilon", EPSILON))
    if element_type != "float":
        cast(results[0], element_type, out, used[:1])


@adapter("GroupNorm", 1, 0, domain="com.microsoft")
def expand_group_norm(node: Node, out: Rewriter) -> None:
    """Rewrite as GroupNormalization with channels first, and Sigmoid and Mul for the activation."""
    _group_norm(node.inputs[0], node, out.for_opset(GROUP_OPSET, ""))


@adapter("SkipGroupNorm", 1, 0, domain="com.microsoft")
def expand_skip_group_norm(node: Node, out: Rewriter) -> None:
    """Rewrite as Add and GroupNormalization."""
    out = out.for_opset(GROUP_OPSET, "")
    skip, bias = node.inputs[3], node.input(4)
    axes = (1, 2) if node.attribute("channels_last", 1) else (2, 3)
    if out.rank(skip) == 2:
        skip = out.emit("Unsqueeze", [skip, out.int64(axes)])
    if bias and axes == (2, 3):
        bias = out.emit("Unsqueeze", [bias, out.int64((1, 2))])
    _group_norm(_sum([node.inputs[0], skip, bias], node.output(1), out), node, out)


def _group_norm(data: str, node: Node, out: Rewriter) -> None:
    """Emit the group normalization of 4-D `data` and the activation as the first output of the node."""
    scale, offset = node.inputs[1:3]
    channels_last, activation = node.attribute("channels_last", 1), node.attribute("activation", 0)
    if activation not in (0, 1):
        reason = f"activation is {activation}, expected 0 or 1"
        raise CannotConvert(reason, "attribute.unsupported", subject="activation")
    element_type, parameter_type = (out.element_type(name) for name in (node.inputs[0], scale))
    # If data and parameters differ in type, compute in float.
    compute_type = element_type if element_type == parameter_type else "float"
    if channels_last:
        data = out.emit("Transpose", [data], perm=(0, 3, 1, 2))
    data = cast_between(data, element_type, compute_type, out)
    parameters = [cast_between(name, parameter_type, compute_type, out) for name in (scale, offset)]
    settings = {"epsilon": node.attribute("epsilon", 1e-5), "num_groups": node.attribute("groups")}
    result = out.emit("GroupNormalization", [data, *parameters], **settings)
    if activation:
        result = out.emit("Mul", [result, out.emit("Sigmoid", [result])])
    result = cast_between(result, compute_type, element_type, out)
    if channels_last:
        out.emit("Transpose", [result], node.outputs[:1], perm=(0, 2, 3, 1))
    else:
        rename_output(result, node, out)


DOUBLE = 11
"""TensorProto number of double. onnxruntime normalizes double data in double, whatever `stash_type` is."""


@adapter("LayerNormalization", 1, 0, domain="com.microsoft")
def to_layer_normalization(node: Node, out: Rewriter) -> None:
    """Rewrite as LayerNormalization of ONNX; for doubles as arithmetic, because ONNX computes in float."""
    data_type, scale_type = map(out.known_element_type, node.inputs[:2])
    if data_type and scale_type and data_type != scale_type:
        reason = f"X is {data_type} and Scale is {scale_type}, but ONNX requires equal types"
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
    # The result has the type of the scale; kernels do not round the normalized data to the type of the data.
    compute = "double" if "double" in (data_type, scale_type) else "float"
    types = {data: data_type, scale: scale_type}
    operands = [cast_between(name, types[name], compute, out) for name in (data, scale)]
    result = out.emit("RMSNormalization", operands, **attributes)
    cast_output(result, compute, scale_type, node.with_(outputs=node.outputs[:1]), out)


def _refuse_statistics(node: Node, out: Rewriter) -> None:
    if any(map(out.is_used, filter(None, node.outputs[1:]))):
        reason = (
            "an output with statistics is used, but the operators that replace the node do not compute it"
        )
        raise CannotConvert(reason, "output.unsupported", subject="statistics", remedy="omit the output")
