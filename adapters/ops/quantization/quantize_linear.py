"""QuantizeLinear and DequantizeLinear: `axis` since opset 13, blocks since 21, `precision` since 23."""

from __future__ import annotations

from math import prod

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor, adapter
from opshift.adapters.core.rewriter import Attributes, rename_output
from opshift.adapters.emit.quantization import (
    FIRST_OPSET,
    QuantizationScheme,
    as_scalar,
    cast_if_needed,
    element_type_name,
    emit_dequantize,
    emit_quantize,
    is_per_tensor,
    quantized_type,
    require_available_type,
    scheme_of,
)
from opshift.model.tensors import PACKED_BITS


@adapter("QuantizeLinear", 13, 19)
def cast_data_to_float(node: Node, out: Rewriter) -> None:
    """Cast integer data to float: since opset 19 the data must have the type of the scale."""
    data = node.inputs[0]
    if out.known_element_type(data) != "float":
        data = out.cast(data, "float")
    out.replace(node, inputs=[data, *node.inputs[1:]])


@adapter("QuantizeLinear", 28, 25)
@adapter("QuantizeLinear", 25, 24)
@adapter("QuantizeLinear", 24, 23)
@adapter("QuantizeLinear", 23, 21)
@adapter("QuantizeLinear", 21, 19)
@adapter("QuantizeLinear", 19, 13)
@adapter("QuantizeLinear", 13, 10)
@adapter("QuantizeLinear", 10, 9)
def downgrade_quantize_linear(node: Node, out: Rewriter) -> None:
    """Cast the inputs to supported types, or emit the arithmetic if the older version has no equivalent."""
    scheme, result, precision = scheme_of(node), _result(node, out), _precision(node, out)
    require_available_type(result, node.outputs[0], out)
    require_available_type(out.element_type(scheme.scale), scheme.scale, out)
    if not _has_granularity(scheme, out) or not _supports(result, "y", out):
        emit_quantize(node, scheme, precision, result, out)
        return
    compute_type = precision if _supports(precision, "y_scale", out) and precision != "int32" else "float"
    data, scale = scheme.data, scheme.scale
    if out.opset < 23 or not _supports(out.element_type(scale), "y_scale", out):
        data, scale = (
            cast_if_needed(name, out.known_element_type(name) or "", compute_type, out)
            for name in (data, scale)
        )
    # Without a zero point the result is uint8 unless `output_dtype`, since opset 21, names another type.
    explicit = out.opset >= 21 or result == "uint8"
    zero_point = scheme.zero_point or ("" if explicit else _zero_point(scheme, result, out))
    inputs = _as_scalars([data, scale, *([zero_point] if zero_point else [])], out)
    out.replace(node, inputs=inputs, attributes=_common_attributes(node, out))


def _result(node: Node, out: Rewriter) -> str:
    """Return the output type: the type of the zero point, else `output_dtype`, else uint8."""
    if node.input(2):
        return out.element_type(node.input(2))
    return element_type_name(node.attribute("output_dtype", 0)) or "uint8"


def _precision(node: Node, out: Rewriter) -> str:
    """Return the type to divide in: `precision`, else the type of the scale."""
    return element_type_name(node.attribute("precision", 0)) or out.element_type(node.inputs[1])


def _has_granularity(scheme: QuantizationScheme, out: Rewriter) -> bool:
    """Return whether the older version supports the granularity of the scale: per tensor, axis or block."""
    if out.target is None:
        return False
    if out.opset < 13:
        return is_per_tensor(scheme, out)
    return not scheme.block_size or out.opset >= 21


def _supports(element_type: str, parameter: str, out: Rewriter) -> bool:
    """Return whether a parameter of the older version supports an element type."""
    assert out.target is not None
    found = out.target.input_named(parameter) or out.target.output_named(parameter)
    return found is not None and f"tensor({element_type})" in out.target.types_of(found[1])


def _zero_point(scheme: QuantizationScheme, result: str, out: Rewriter) -> str:
    """Emit a zero point of zeros, which determines the output type.

    Raises:
        CannotConvert: the shape of the scale, which the zero point shares, is unknown.
    """
    dims = out.known_shape(scheme.scale)
    if dims is None:
        raise CannotConvert(
            f"output_dtype {result} needs a zero point here, but the shape of {scheme.scale!r} is unknown",
            remedy=f"add a zero point, or a value_info for {scheme.scale!r}",
        )
    count = prod(dims)
    if result in FIRST_OPSET:
        return cast_if_needed(out.tensor(Tensor("float", dims, (0.0,) * count)), "float", result, out)
    return out.tensor(Tensor(result, dims, (0,) * count))


def _as_scalars(inputs: list[str], out: Rewriter) -> list[str]:
    """Turn scale and zero point into scalars below opset 13, which supports only scalars."""
    return [inputs[0], *(as_scalar(name, out) for name in inputs[1:])] if out.opset < 13 else inputs


def _common_attributes(node: Node, out: Rewriter) -> Attributes:
    """Return the attributes that the older version has."""
    assert out.target is not None
    return {name: value for name, value in node.attributes.items() if name in out.target.attributes}


@adapter("DequantizeLinear", 28, 25)
@adapter("DequantizeLinear", 25, 24)
@adapter("DequantizeLinear", 24, 23)
@adapter("DequantizeLinear", 23, 21)
@adapter("DequantizeLinear", 21, 19)
@adapter("DequantizeLinear", 19, 13)
@adapter("DequantizeLinear", 13, 10)
@adapter("DequantizeLinear", 10, 9)
def downgrade_dequantize_linear(node: Node, out: Rewriter) -> None:
    """Cast the scale to a supported type, or emit the arithmetic if the older version has no equivalent."""
    scheme = _widen_constants(scheme_of(node), out)
    source, scale_type = quantized_type(scheme, out), out.element_type(scheme.scale)
    result = element_type_name(node.attribute("output_dtype", 0)) or scale_type
    require_available_type(source, scheme.data, out)
    require_available_type(scale_type, scheme.scale, out)
    if not _has_granularity(scheme, out) or not (
        _supports(source, "x", out) and _supports(result, "x_scale", out)
    ):
        emit_dequantize(node, scheme, result, out)
        return
    keeps_type = out.opset >= 23 or scale_type == result
    scale = scheme.scale if keeps_type else cast_if_needed(scheme.scale, scale_type, "float", out)
    inputs = _as_scalars([scheme.data, scale, *([scheme.zero_point] if scheme.zero_point else [])], out)
    if keeps_type or result == "float":
        out.replace(node, inputs=inputs, attributes=_common_attributes(node, out))
        return
    wide = out.fresh("dequantized")
    out.replace(node, inputs=inputs, outputs=[wide], attributes=_common_attributes(node, out))
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
