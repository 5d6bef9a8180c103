"""QuantizeLinear and DequantizeLinear: `axis` since opset 13, blocks since 21, `precision` since 23.

DynamicQuantizeLinear (introduced in opset 11) becomes arithmetic on the minimum and maximum of the data.
"""

from opshift.adapters import Node, Rewriter, Tensor, UnknownShape, adapter
from opshift.adapters.core.rewriter import rename_output
from opshift.adapters.emit.quantization import (
    FIRST_OPSET,
    QuantizationScheme,
    as_scalar,
    cast_if_needed,
    emit_dequantize,
    emit_quantize,
    is_per_tensor,
    quantized_type,
    require_available_type,
    scheme_of,
)
from opshift.model.element_types import NAME_BY_NUMBER
from opshift.model.tensors import PACKED_BITS


@adapter("QuantizeLinear", 13, 19)
def cast_data_to_float(node: Node, out: Rewriter) -> None:
    """Cast integer data to float: since opset 19 the data must have the type of the scale."""
    data = node.inputs[0]
    if out.known_element_type(data) != "float":
        data = out.cast(data, "float")
    out.replace(node, inputs=[data, *node.inputs[1:]])


@adapter("QuantizeLinear", 28, 25, 24, 23, 21, 19, 13, 10, 9)
def downgrade_quantize_linear(node: Node, out: Rewriter) -> None:
    """Cast the inputs to supported types, or emit the arithmetic if the older version has no equivalent."""
    scheme, zero_point = scheme_of(node), node.input(2)
    scale_type = out.element_type(scheme.scale)
    # Without a zero point, the result is uint8, unless `output_dtype` (since opset 21) names another type.
    result = out.element_type(zero_point) if zero_point else _type_attribute(node, "output_dtype") or "uint8"
    # The scale may have a narrower type than the data: divide in float then, as onnx.reference does.
    has_one_type = out.known_element_type(scheme.data) in (scale_type, None)
    precision = _type_attribute(node, "precision") or (scale_type if has_one_type else "float")
    require_available_type(result, node.outputs[0], out)
    require_available_type(scale_type, scheme.scale, out)
    if not _has_granularity(scheme, out) or not _supports(result, "y", out):
        emit_quantize(node, scheme, precision, result, out)
        return
    compute_type = precision if _supports(precision, "y_scale", out) and precision != "int32" else "float"
    inputs = [scheme.data, scheme.scale]
    if out.opset < 23 or not _supports(scale_type, "y_scale", out):
        inputs = [cast_if_needed(name, out.known_element_type(name), compute_type, out) for name in inputs]
    if not zero_point and out.opset < 21 and result != "uint8":
        zero_point = _zero_point(scheme, result, out)
    _replace([*inputs, zero_point], node, out)


def _type_attribute(node: Node, name: str) -> str | None:
    """Return the element type with the number in an attribute; `None` for 0, the default."""
    return NAME_BY_NUMBER.get(node.attribute(name, 0))


def _replace(inputs: list[str], node: Node, out: Rewriter, outputs: list[str] | None = None) -> None:
    """Emit the older version with the attributes that it has; scale and zero point are scalars below 13."""
    assert out.target is not None
    inputs = [name for name in inputs if name]
    if out.opset < 13:
        inputs[1:] = [as_scalar(name, out) for name in inputs[1:]]
    attributes = {name: value for name, value in node.attributes.items() if name in out.target.attributes}
    out.replace(node, inputs=inputs, outputs=outputs, attributes=attributes)


def _has_granularity(scheme: QuantizationScheme, out: Rewriter) -> bool:
    """Return whether a target version exists and supports the scale: per tensor, per axis or blocked."""
    if out.target is None:
        return False
    if out.opset < 13:
        return is_per_tensor(scheme, out)
    return not scheme.block_size or out.opset >= 21


def _supports(element_type: str, parameter: str, out: Rewriter) -> bool:
    """Return whether a parameter of the target version, such as `y_scale`, supports an element type."""
    assert out.target is not None
    found = out.target.input_named(parameter) or out.target.output_named(parameter)
    return found is not None and f"tensor({element_type})" in out.target.types_of(found[1])


def _zero_point(scheme: QuantizationScheme, result: str, out: Rewriter) -> str:
    """Emit a zero point of zeros, whose type determines the output type.

    Raises:
        UnknownShape: the shape of the scale, which the zero point shares, is unknown.
    """
    dims = out.known_shape(scheme.scale)
    if dims is None:
        reason = (
            f"output_dtype {result} needs a zero point here, but the shape of {scheme.scale!r} is unknown"
        )
        raise UnknownShape(reason, scheme.scale, otherwise="add a zero point")
    count = out.require_elements(*dims)
    if result in FIRST_OPSET:
        return cast_if_needed(out.tensor(Tensor("float", dims, (0.0,) * count)), "float", result, out)
    return out.tensor(Tensor(result, dims, (0,) * count))


@adapter("DequantizeLinear", 28, 25, 24, 23, 21, 19, 13, 10, 9)
def downgrade_dequantize_linear(node: Node, out: Rewriter) -> None:
    """Cast the scale to a supported type, or emit the arithmetic if the older version has no equivalent."""
    scheme = _widen_constants(scheme_of(node), out)
    source, scale_type = quantized_type(scheme, out), out.element_type(scheme.scale)
    result = _type_attribute(node, "output_dtype") or scale_type
    require_available_type(source, scheme.data, out)
    require_available_type(scale_type, scheme.scale, out)
    supports_types = _has_granularity(scheme, out) and _supports(source, "x", out)
    if not supports_types or not _supports(result, "x_scale", out):
        emit_dequantize(node, scheme, result, out)
        return
    keeps_type = out.opset >= 23 or scale_type == result
    scale = scheme.scale if keeps_type else cast_if_needed(scheme.scale, scale_type, "float", out)
    inputs = [scheme.data, scale, scheme.zero_point]
    if keeps_type or result == "float":
        _replace(inputs, node, out)
        return
    wide = out.fresh("dequantized")
    _replace(inputs, node, out, [wide])
    rename_output(cast_if_needed(wide, "float", result, out), node, out)


def _widen_constants(scheme: QuantizationScheme, out: Rewriter) -> QuantizationScheme:
    """Widen constant 4-bit and 2-bit inputs to 8 bits if the target opset lacks their element type."""
    source = quantized_type(scheme, out)
    if source not in PACKED_BITS or FIRST_OPSET[source] <= out.opset:
        return scheme
    data, zero = out.constant_value(scheme.data), out.constant_value(scheme.zero_point)
    if data is None or (scheme.zero_point and zero is None):
        return scheme
    wide = source[:-1] + "8"
    names = [out.tensor(each._replace(element_type=wide)) if each else "" for each in (data, zero)]
    return scheme._replace(data=names[0], zero_point=names[1])


OPSET = 10
"""Opset of the nodes emitted for DynamicQuantizeLinear, except Round, which opset 11 introduced."""


@adapter("DynamicQuantizeLinear", 11, 10)
def replace_dynamic_quantize_linear(node: Node, out: Rewriter) -> None:
    """Emit nodes that compute scale and zero point, and QuantizeLinear.

    The scale is the range of the data, extended to include 0, divided by 255; if all elements are 0, the
    scale is 1, as in runtimes.
    """
    out = out.for_opset(OPSET)
    data = node.inputs[0]
    origin, levels = out.constant(0.0, "float"), out.constant(255.0, "float")
    low = out.emit("ReduceMin", [data], keepdims=0)
    high = out.emit("ReduceMax", [data], keepdims=0)
    low = out.emit("Min", [low, origin])
    high = out.emit("Max", [high, origin])
    step = out.emit("Div", [out.emit("Sub", [high, low]), levels])
    # Add 1 to a scale of 0, by which the data would otherwise be divided.
    is_nonzero = out.cast(step, "bool")
    is_zero = out.emit("Not", [is_nonzero])
    correction = out.cast(is_zero, "float")
    scale, zero_point = (node.output(position) or out.fresh("scale") for position in (1, 2))
    out.emit("Add", [step, correction], [scale])
    offset = out.emit("Sub", [origin, out.emit("Div", [low, scale])])
    offset = out.emit("Clip", [offset], min=0.0, max=255.0)
    offset = out.emit("Round", [offset], opset=11)
    out.cast(offset, "uint8", [zero_point])
    out.emit("QuantizeLinear", [data, scale, zero_point], node.outputs[:1])
