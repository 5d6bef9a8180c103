"""QuantizeLinear and DequantizeLinear: an axis, more types, blocks and a precision came one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opshift.adapters.finishing import finish
from opshift.adapters.node import Node, Tensor
from opshift.adapters.packed_integers import BITS
from opshift.adapters.quantized import (
    FIRST_OPSET,
    Scheme,
    cast,
    dequantize,
    is_single,
    named_type,
    quantize,
    quantized_type,
    require_type,
    scalar,
    scheme_of,
)
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME


@adapter("QuantizeLinear", 13, 19)
def integers_are_divided_as_floats(node: Node, out: Rewriter) -> None:
    """The data have the scale's type from 19 on; before, integers were cast to it to be divided."""
    data = node.inputs[0]
    if out.known_element_type(data) != "float":
        data = out.emit("Cast", [data], to=BY_NAME["float"].number)
    out.become(node, inputs=[data, *node.inputs[1:]])


@adapter("QuantizeLinear", 28, 25)
@adapter("QuantizeLinear", 25, 24)
@adapter("QuantizeLinear", 24, 23)
@adapter("QuantizeLinear", 23, 21)
@adapter("QuantizeLinear", 21, 19)
@adapter("QuantizeLinear", 19, 13)
@adapter("QuantizeLinear", 13, 10)
@adapter("QuantizeLinear", 10, 9)
def less_can_be_quantized(node: Node, out: Rewriter) -> None:
    """Inputs are cast to what the older version takes; what it cannot do at all becomes arithmetic."""
    scheme, result, precision = scheme_of(node), _result(node, out), _precision(node, out)
    require_type(result, node.outputs[0], out)
    require_type(out.element_type(scheme.scale), scheme.scale, out)
    if not _has_form(scheme, out) or not _takes(result, "y", out):
        quantize(node, scheme, precision, result, out)
        return
    wanted = precision if _takes(precision, "y_scale", out) and precision != "int32" else "float"
    data, scale = scheme.data, scheme.scale
    if out.opset < 23 or not _takes(out.element_type(scale), "y_scale", out):
        data, scale = (cast(name, out.known_element_type(name) or "", wanted, out) for name in (data, scale))
    named = out.opset >= 21 or result == "uint8"
    zero = scheme.zero or ("" if named else _zeros(scheme, result, out))
    inputs = _fitting([data, scale, *([zero] if zero else [])], out)
    out.become(node, inputs=inputs, attributes=_kept(node, out))


@adapter("DequantizeLinear", 28, 25)
@adapter("DequantizeLinear", 25, 24)
@adapter("DequantizeLinear", 24, 23)
@adapter("DequantizeLinear", 23, 21)
@adapter("DequantizeLinear", 21, 19)
@adapter("DequantizeLinear", 19, 13)
@adapter("DequantizeLinear", 13, 10)
@adapter("DequantizeLinear", 10, 9)
def less_can_be_dequantized(node: Node, out: Rewriter) -> None:
    """The scale is cast to what the older version takes; what it cannot do at all becomes arithmetic."""
    scheme = _held_wider(scheme_of(node), out)
    source, kind = quantized_type(scheme, out), out.element_type(scheme.scale)
    result = named_type(node.attribute("output_dtype", 0)) or kind
    require_type(source, scheme.data, out)
    require_type(kind, scheme.scale, out)
    if not _has_form(scheme, out) or not (_takes(source, "x", out) and _takes(result, "x_scale", out)):
        dequantize(node, scheme, result, out)
        return
    same = out.opset >= 23 or kind == result
    scale = scheme.scale if same else cast(scheme.scale, kind, "float", out)
    inputs = _fitting([scheme.data, scale, *([scheme.zero] if scheme.zero else [])], out)
    if same or result == "float":
        out.become(node, inputs=inputs, attributes=_kept(node, out))
        return
    wide = out.fresh("dequantized")
    out.become(node, inputs=inputs, outputs=[wide], attributes=_kept(node, out))
    finish(cast(wide, "float", result, out), node, out)


def _held_wider(scheme: Scheme, out: Rewriter) -> Scheme:
    """Constants of a few bits, which the target does not have, hold the same numbers in eight."""
    source = quantized_type(scheme, out)
    if source not in BITS or FIRST_OPSET[source] <= out.opset:
        return scheme
    data, zero = out.constant_value(scheme.data), out.constant_value(scheme.zero)
    if data is None or (scheme.zero and zero is None):
        return scheme
    wide = source[:-1] + "8"
    names = [out.tensor(each._replace(element_type=wide)) if each else "" for each in (data, zero)]
    return scheme._replace(data=names[0], zero=names[1])


def _result(node: Node, out: Rewriter) -> str:
    """The type to quantize to: that of the zero point, or the one that is named, or uint8."""
    if node.input(2):
        return out.element_type(node.input(2))
    return named_type(node.attribute("output_dtype", 0)) or "uint8"


def _precision(node: Node, out: Rewriter) -> str:
    """The type to divide in: the one that is named, or that of the scale."""
    return named_type(node.attribute("precision", 0)) or out.element_type(node.inputs[1])


def _has_form(scheme: Scheme, out: Rewriter) -> bool:
    """Whether the older version has blocks, or an axis, if the node needs them."""
    if out.target is None:
        return False
    if out.opset < 13:
        return is_single(scheme, out)
    return not scheme.block or out.opset >= 21


def _takes(element_type: str, parameter: str, out: Rewriter) -> bool:
    """Whether a parameter of the older version may have a type."""
    assert out.target is not None
    found = out.target.input_named(parameter) or out.target.output_named(parameter)
    return found is not None and f"tensor({element_type})" in out.target.types_of(found[1])


def _zeros(scheme: Scheme, result: str, out: Rewriter) -> str:
    """A zero point that only tells the type."""
    shape = out.shape(scheme.scale)
    if shape is None or None in shape:
        raise CannotConvert(
            f"output_dtype is {result} without a zero point, and the shape that one needs is not known",
            remedy=f"add a zero point, or a value_info for {scheme.scale!r}",
        )
    dims = tuple(dim for dim in shape if dim is not None)
    count = 1
    for dim in dims:
        count *= dim
    if result in FIRST_OPSET:
        return cast(out.tensor(Tensor("float", dims, (0.0,) * count)), "float", result, out)
    return out.tensor(Tensor(result, dims, (0,) * count))


def _fitting(inputs: list[str], out: Rewriter) -> list[str]:
    """Before 13 scale and zero point have no dimension."""
    return [inputs[0], *(scalar(name, out) for name in inputs[1:])] if out.opset < 13 else inputs


def _kept(node: Node, out: Rewriter) -> Mapping[str, Any]:
    """The attributes that the older version has."""
    assert out.target is not None
    return {name: value for name, value in node.attributes.items() if name in out.target.attributes}
