"""QuantizeLinear and DequantizeLinear as the arithmetic that defines them."""

from __future__ import annotations

from typing import NamedTuple

from opshift.adapters.finishing import finish
from opshift.adapters.node import Node, Tensor
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.registry.element_types import BY_NAME, BY_NUMBER

RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "uint16": (0, 65535)}
FIRST_OPSET = {
    "float8e4m3fn": 19, "float8e4m3fnuz": 19, "float8e5m2": 19, "float8e5m2fnuz": 19, "int4": 21, "uint4": 21,
    "float4e2m1": 23, "float8e8m0": 24, "int2": 25, "uint2": 25, "float6e2m3": 28, "float6e3m2": 28,
}  # fmt: skip
"""The opset that brought each narrow type; no older model can hold a value of it."""
ROUND, CLIP, PLAIN = 11, 6, 7
"""The opsets that the nodes are written for."""


class Scheme(NamedTuple):
    """What quantizes or dequantizes: the names of its inputs and how they lie along `x`."""

    data: str
    scale: str
    zero: str
    axis: int
    block: int


def scheme_of(node: Node) -> Scheme:
    """The inputs and attributes that every version has, or that stand for how it was."""
    data, scale = node.inputs[:2]
    return Scheme(data, scale, node.input(2), node.attribute("axis", 1), node.attribute("block_size", 0))


def quantized_type(scheme: Scheme, out: Rewriter) -> str:
    """The type of quantized data, which the zero point shares.

    Raises:
        CannotConvert: the type of neither is known.
    """
    known = out.known_element_type(scheme.data) or out.known_element_type(scheme.zero)
    return known or out.element_type(scheme.data)


def require_type(element_type: str, name: str, out: Rewriter) -> None:
    """Refuse a type that models of the target's opset do not have."""
    if FIRST_OPSET.get(element_type, 1) > out.opset:
        raise CannotConvert(
            f"{name!r} is tensor({element_type}), which came with opset {FIRST_OPSET[element_type]}",
            remedy="quantize to a type that the target has, such as int8",
        )


def cast(name: str, source: str, target: str, out: Rewriter) -> str:
    """The value in another type; one of no known type, `""`, is cast whatever it is."""
    if not name or source == target:
        return name
    opset = out.opset if {source, target} & set(FIRST_OPSET) or "bfloat16" in (source, target) else CLIP
    return out.emit("Cast", [name], opset=opset, to=BY_NAME[target].number)


def quantize(node: Node, scheme: Scheme, precision: str, result: str, out: Rewriter) -> None:
    """Divide, round half to even, add the zero point, saturate."""
    compute = "float" if precision in ("float16", "bfloat16", "int32") else precision
    data, scale = (
        cast(cast(name, out.known_element_type(name) or "", precision, out), precision, compute, out)
        for name in (scheme.data, scheme.scale)
    )
    found = out.emit("Div", [data, spread(scale, scheme, out)], opset=PLAIN)
    is_float = result not in RANGES
    if not is_float:
        found = out.emit("Round", [found], opset=ROUND)
    if scheme.zero and not is_zero(scheme.zero, out):
        zero = spread(cast(scheme.zero, result, compute, out), scheme, out)
        found = out.emit("Add", [found, zero], opset=PLAIN)
    number = BY_NAME[result].number
    if is_float:
        saturate = node.attribute("saturate", 1)
        out.emit("Cast", [found], node.outputs, opset=out.opset, to=number, saturate=saturate)
        return
    low, high = RANGES[result]
    found = out.emit("Clip", [found], opset=CLIP, min=float(low), max=float(high))
    out.emit("Cast", [found], node.outputs, opset=CLIP, to=number)


def dequantize(node: Node, scheme: Scheme, result: str, out: Rewriter) -> None:
    """Take off the zero point and multiply by the scale."""
    source = quantized_type(scheme, out)
    compute = "float" if result in ("float16", "bfloat16") else result
    scale = spread(cast(scheme.scale, out.element_type(scheme.scale), compute, out), scheme, out)
    found = scheme.data
    if scheme.zero and not is_zero(scheme.zero, out):
        exact = "int32" if source == "int32" else compute
        zero = spread(cast(scheme.zero, source, exact, out), scheme, out)
        found, source = out.emit("Sub", [cast(found, source, exact, out), zero], opset=PLAIN), exact
    found = cast(found, source, compute, out)
    finish(cast(out.emit("Mul", [found, scale], opset=PLAIN), compute, result, out), node, out)


def is_zero(name: str, out: Rewriter) -> bool:
    """Whether a zero point is known to be zero."""
    known = out.constant_value(name)
    return known is not None and not any(known.values)


def is_single(scheme: Scheme, out: Rewriter) -> bool:
    """Whether one scale serves all of `x`."""
    shape = out.shape(scheme.scale)
    if shape is None:
        out.rank(scheme.scale)
    return not scheme.block and shape in ((), (1,))


def scalar(name: str, out: Rewriter) -> str:
    """The only element, without a dimension."""
    if not name or out.shape(name) == ():
        return name
    known = out.constant_value(name)
    if known is not None:
        return out.tensor(Tensor(known.element_type, (), known.values))
    return out.emit("Reshape", [name, out.constant([], "int64")], opset=PLAIN)


def spread(name: str, scheme: Scheme, out: Rewriter) -> str:
    """Scales or zero points as they broadcast with `x`: along its axis, or once for each of a block."""
    if not name:
        return name
    if scheme.block:
        return _repeated(name, scheme, out)
    if is_single(scheme, out):
        return name if out.known_rank(scheme.data) else scalar(name, out)
    rank = out.rank(scheme.data)
    trailing = rank - 1 - scheme.axis % rank
    if not trailing:
        return name
    shape = out.constant([-1, *[1] * trailing], "int64")
    return out.emit("Reshape", [name, shape], opset=PLAIN)


def _repeated(name: str, scheme: Scheme, out: Rewriter) -> str:
    rank = out.rank(scheme.data)
    shape = out.shape(scheme.data)
    axis = scheme.axis % rank
    size = shape[axis] if shape else None
    if size is None:
        raise CannotConvert(
            f"how many elements share a scale in the last block of {scheme.data!r} is not known",
            remedy=f"state its shape: add a value_info for {scheme.data!r}",
        )
    places = [place // scheme.block for place in range(size)]
    return out.emit("Gather", [name, out.constant(places, "int64")], opset=PLAIN, axis=axis)


def named_type(number: int) -> str | None:
    """The element type that an attribute names, `None` for 0."""
    return BY_NUMBER[number].name if number in BY_NUMBER else None
