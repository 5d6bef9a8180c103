"""Emit the arithmetic that defines QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

from typing import NamedTuple

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor
from opshift.adapters.core.rewriter import rename_output
from opshift.adapters.emit.shapes import reshape
from opshift.model.element_types import BY_NAME, BY_NUMBER

INTEGER_RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "uint16": (0, 65535)}
"""Smallest and largest value of each integer type that results saturate to."""

FIRST_OPSET = {
    "float8e4m3fn": 19, "float8e4m3fnuz": 19, "float8e5m2": 19, "float8e5m2fnuz": 19, "int4": 21, "uint4": 21,
    "float4e2m1": 23, "float8e8m0": 24, "int2": 25, "uint2": 25, "float6e2m3": 28, "float6e3m2": 28,
}  # fmt: skip
"""Opset that introduced each narrow type; a model of an older opset cannot contain it."""

ROUND_OPSET, CLIP_OPSET, ARITHMETIC_OPSET = 11, 6, 7
"""Opsets of the emitted nodes: Round exists since 11; `min` and `max` of Clip are attributes from 6 to 10;
arithmetic broadcasts since 7."""


class QuantizationScheme(NamedTuple):
    """Inputs of QuantizeLinear or DequantizeLinear, and the granularity of scale and zero point.

    `zero` is `""` if there is no zero point, and `block` is 0 unless quantization is blocked.
    """

    data: str
    scale: str
    zero_point: str
    axis: int
    block_size: int


def scheme_of(node: Node) -> QuantizationScheme:
    """Return the scheme of a node of any version; defaults reproduce the versions without the attribute."""
    data, scale = node.inputs[:2]
    return QuantizationScheme(
        data, scale, node.input(2), node.attribute("axis", 1), node.attribute("block_size", 0)
    )


def quantized_type(scheme: QuantizationScheme, out: Rewriter) -> str:
    """Return the element type of the quantized data, which is also the type of the zero point.

    Raises:
        CannotConvert: both are unknown.
    """
    known = out.known_element_type(scheme.data) or out.known_element_type(scheme.zero_point)
    return known or out.element_type(scheme.data)


def require_available_type(element_type: str, name: str, out: Rewriter) -> None:
    """Refuse an element type that does not exist in the target opset.

    Raises:
        CannotConvert: a later opset introduced the type.
    """
    if FIRST_OPSET.get(element_type, 1) > out.opset:
        raise CannotConvert(
            f"{name!r} is tensor({element_type}), which opset {FIRST_OPSET[element_type]} introduced",
            remedy="quantize to a type that the target opset supports, such as int8",
        )


def cast_if_needed(name: str, source: str, target: str, out: Rewriter) -> str:
    """Emit a cast unless the types are equal; an unknown source type is `""` and always cast."""
    if not name or source == target:
        return name
    # Casts of newer types are written for the target opset, because Cast-6 does not support these types.
    opset = out.opset if {source, target} & set(FIRST_OPSET) or "bfloat16" in (source, target) else CLIP_OPSET
    return out.cast(name, target, opset=opset)


def emit_quantize(node: Node, scheme: QuantizationScheme, precision: str, result: str, out: Rewriter) -> None:
    """Emit QuantizeLinear as arithmetic: divide, round half to even, add the zero point, saturate.

    Args:
        node: the QuantizeLinear node.
        scheme: its inputs.
        precision: the element type to divide in.
        result: the element type of the output.
        out: the rewriter.
    """
    compute = "float" if precision in ("float16", "bfloat16", "int32") else precision
    # The first cast rounds to the declared precision, the second one selects a type that Div supports.
    data, scale = (
        cast_if_needed(
            cast_if_needed(name, out.known_element_type(name) or "", precision, out), precision, compute, out
        )
        for name in (scheme.data, scheme.scale)
    )
    value = out.emit("Div", [data, broadcast_to_data(scale, scheme, out)], opset=ARITHMETIC_OPSET)
    is_float = result not in INTEGER_RANGES
    if not is_float:
        value = out.emit("Round", [value], opset=ROUND_OPSET)
    if scheme.zero_point and not is_constant_zero(scheme.zero_point, out):
        zero = broadcast_to_data(cast_if_needed(scheme.zero_point, result, compute, out), scheme, out)
        value = out.emit("Add", [value, zero], opset=ARITHMETIC_OPSET)
    number = BY_NAME[result].number
    if is_float:
        saturate = node.attribute("saturate", 1)
        out.emit("Cast", [value], node.outputs, opset=out.opset, to=number, saturate=saturate)
        return
    low, high = INTEGER_RANGES[result]
    value = out.emit("Clip", [value], opset=CLIP_OPSET, min=float(low), max=float(high))
    out.emit("Cast", [value], node.outputs, opset=CLIP_OPSET, to=number)


def broadcast_to_data(name: str, scheme: QuantizationScheme, out: Rewriter) -> str:
    """Reshape or repeat scales or zero points so that they broadcast with the data; `""` stays `""`."""
    if not name:
        return name
    if scheme.block_size:
        return _repeat_blocks(name, scheme, out)
    if is_per_tensor(scheme, out):
        return name if out.known_rank(scheme.data) else as_scalar(name, out)
    rank = out.rank(scheme.data)
    trailing = rank - 1 - scheme.axis % rank
    if not trailing:
        return name
    shape = out.int64([-1, *[1] * trailing])
    return out.emit("Reshape", [name, shape], opset=ARITHMETIC_OPSET)


def _repeat_blocks(name: str, scheme: QuantizationScheme, out: Rewriter) -> str:
    rank = out.rank(scheme.data)
    axis = scheme.axis % rank
    size = out.known_dimension(scheme.data, axis)
    if size is None:
        raise CannotConvert(
            f"the number of elements in the last block of {scheme.data!r} is unknown",
            remedy=f"declare its shape: add a value_info for {scheme.data!r}",
        )
    # The last block may be shorter than the others, hence the exact dimension.
    blocks = [position // scheme.block_size for position in range(size)]
    return out.emit("Gather", [name, out.int64(blocks)], opset=ARITHMETIC_OPSET, axis=axis)


def is_per_tensor(scheme: QuantizationScheme, out: Rewriter) -> bool:
    """Return whether quantization is per tensor: one scale for all elements.

    Raises:
        CannotConvert: the rank of the scale is unknown.
    """
    shape = out.shape(scheme.scale)
    if shape is None:
        out.rank(scheme.scale)  # raises if the rank is unknown too
    return not scheme.block_size and shape in ((), (1,))


def as_scalar(name: str, out: Rewriter) -> str:
    """Return a value with one element as a scalar; `""` stays `""`."""
    if not name or out.shape(name) == ():
        return name
    constant = out.constant_value(name)
    if constant is not None:
        return out.tensor(Tensor(constant.element_type, (), constant.values))
    return reshape(name, (), out, opset=ARITHMETIC_OPSET)


def is_constant_zero(name: str, out: Rewriter) -> bool:
    """Return whether a zero point is a constant zero."""
    constant = out.constant_value(name)
    return constant is not None and not any(constant.values)


def emit_dequantize(node: Node, scheme: QuantizationScheme, result: str, out: Rewriter) -> None:
    """Emit DequantizeLinear as arithmetic: subtract the zero point and multiply by the scale."""
    source = quantized_type(scheme, out)
    compute = "float" if result in ("float16", "bfloat16") else result
    scale = broadcast_to_data(
        cast_if_needed(scheme.scale, out.element_type(scheme.scale), compute, out), scheme, out
    )
    value = scheme.data
    if scheme.zero_point and not is_constant_zero(scheme.zero_point, out):
        # int32 is subtracted as int32: float represents integers only up to 2**24.
        exact = "int32" if source == "int32" else compute
        zero = broadcast_to_data(cast_if_needed(scheme.zero_point, source, exact, out), scheme, out)
        value, source = (
            out.emit("Sub", [cast_if_needed(value, source, exact, out), zero], opset=ARITHMETIC_OPSET),
            exact,
        )
    value = cast_if_needed(value, source, compute, out)
    rename_output(
        cast_if_needed(out.emit("Mul", [value, scale], opset=ARITHMETIC_OPSET), compute, result, out),
        node,
        out,
    )


def element_type_name(number: int) -> str | None:
    """Return the element type with a TensorProto.DataType number, or `None` for 0 and unknown numbers."""
    return BY_NUMBER[number].name if number in BY_NUMBER else None
