"""MatMulInteger, ConvInteger, QLinearMatMul and QLinearConv before opset 10, computed exactly in float."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from opshift.adapters import CannotConvert, Node, Rewriter, adapter
from opshift.adapters.core.rewriter import rename_output
from opshift.adapters.emit.cast import cast
from opshift.adapters.emit.quantization import ARITHMETIC_OPSET, CLIP_OPSET, INTEGER_RANGES, ROUND_OPSET

MAX_EXACT_INTEGER = 2**24
"""Float represents every integer up to this one."""

MAX_DIFFERENCE = 255
"""Largest difference of an 8-bit integer and its zero point."""

DIGIT_BASE = 16
"""Base of the digits that the second factor is split into if a sum could exceed the exact integers."""

Product = Callable[[str, str], str]
"""Emits the product of two values."""


@adapter("MatMulInteger", 10, 9)
def expand_matmul_integer(node: Node, out: Rewriter) -> None:
    """Multiply the differences from the zero points by MatMul."""
    first = _subtract_zero_point(node.inputs[0], _as_column(node.input(2), out), out)
    second = _subtract_zero_point(node.inputs[1], node.input(3), out)
    total = _exact_product(
        first, second, _matmul_terms(node.inputs[0], node.inputs[1], out), _matmul(out), out
    )
    rename_output(total, node, out)


def _subtract_zero_point(name: str, zero_point: str, out: Rewriter) -> str:
    value = cast(name, "float", out)
    if not zero_point:
        return value
    return out.emit("Sub", [value, cast(zero_point, "float", out)], opset=ARITHMETIC_OPSET)


def _as_column(name: str, out: Rewriter) -> str:
    """Unsqueeze scales or zero points per row of the first factor to a column."""
    if not name or out.shape(name) in ((), (1,)):
        return name
    # A scale or zero point of rank 2 is a column already.
    return out.emit("Unsqueeze", [name], opset=CLIP_OPSET, axes=[1]) if out.rank(name) == 1 else name


def _exact_product(first: str, second: str, terms: int, product: Product, out: Rewriter) -> str:
    """Return the exact product of two values as int32, computed in parts whose sums float represents."""
    if terms * MAX_DIFFERENCE * MAX_DIFFERENCE <= MAX_EXACT_INTEGER:
        return out.cast(product(first, second), "int32", opset=CLIP_OPSET)
    if terms * MAX_DIFFERENCE * DIGIT_BASE > MAX_EXACT_INTEGER:
        raise CannotConvert(
            f"each element is a sum of {terms} products, which float may not represent exactly"
        )
    base = out.constant(float(DIGIT_BASE), "float")
    # The factor is `high * base + low`: both parts give sums that stay exact.
    high = out.emit("Floor", [out.emit("Div", [second, base], opset=ARITHMETIC_OPSET)], opset=CLIP_OPSET)
    low = out.emit(
        "Sub", [second, out.emit("Mul", [high, base], opset=ARITHMETIC_OPSET)], opset=ARITHMETIC_OPSET
    )
    upper, lower = (out.cast(product(first, part), "int32", opset=CLIP_OPSET) for part in (high, low))
    raised = out.emit("Mul", [upper, out.constant(DIGIT_BASE, "int32")], opset=ARITHMETIC_OPSET)
    return out.emit("Add", [raised, lower], opset=ARITHMETIC_OPSET)


def _matmul_terms(first: str, second: str, out: Rewriter) -> int:
    """Return the number of products that are summed for each element."""
    count = out.known_dimension(first, -1)
    if count is None:
        count = out.known_dimension(second, 0 if out.known_rank(second) == 1 else -2)
    return _require_known(count, first)


def _require_known(dim: int | None, name: str) -> int:
    if dim is None:
        raise CannotConvert(
            "the number of summed products is unknown, so their sum in float may be inexact",
            remedy=f"add a value_info for {name!r} with its shape",
        )
    return dim


def _matmul(out: Rewriter) -> Product:
    return lambda first, second: out.emit("MatMul", [first, second], opset=1)


@adapter("ConvInteger", 10, 9)
def expand_conv_integer(node: Node, out: Rewriter) -> None:
    """Convolve the differences from the zero points by Conv."""
    data, weight = node.inputs[:2]
    first = _subtract_zero_point(data, node.input(2), out)
    second = _subtract_zero_point(weight, _per_channel(node.input(3), weight, out), out)
    rename_output(_exact_product(first, second, _conv_terms(weight, out), _conv(node, out), out), node, out)


def _per_channel(name: str, weight: str, out: Rewriter) -> str:
    """Reshape values per output channel to broadcast with the kernel."""
    if not name or out.shape(name) in ((), (1,)):
        return name
    shape = out.int64([-1, *[1] * (out.rank(weight) - 1)])
    return out.emit("Reshape", [name, shape], opset=ARITHMETIC_OPSET)


def _conv_terms(weight: str, out: Rewriter) -> int:
    shape = out.shape(weight)
    return prod(_require_known(dim, weight) for dim in (shape[1:] if shape else (None,)))


def _conv(node: Node, out: Rewriter) -> Product:
    return lambda first, second: out.emit("Conv", [first, second], opset=1, **node.attributes)


@adapter("QLinearMatMul", 21, 10)
def cast_scales_to_float(node: Node, out: Rewriter) -> None:
    """Cast scales to float; refuse 8-bit floats, which older versions do not support."""
    for position in (0, 3):
        element_type = out.element_type(node.inputs[position])
        if element_type not in INTEGER_RANGES:
            raise CannotConvert(
                f"{node.inputs[position]!r} is tensor({element_type}), unsupported by QLinearMatMul-10"
            )
    inputs = list(node.inputs)
    for position in (1, 4, 6):
        if out.element_type(inputs[position]) != "float":
            inputs[position] = cast(inputs[position], "float", out)
    out.replace(node, inputs=inputs)


@adapter("QLinearMatMul", 10, 9)
def expand_qlinear_matmul(node: Node, out: Rewriter) -> None:
    """Multiply as integers, then scale and round."""
    first, first_scale, first_zero, second, second_scale, second_zero, scale, zero = node.inputs
    left = _subtract_zero_point(first, _as_column(first_zero, out), out)
    right = _subtract_zero_point(second, second_zero, out)
    total = _exact_product(left, right, _matmul_terms(first, second, out), _matmul(out), out)
    factor = out.emit("Mul", [_as_column(first_scale, out), second_scale], opset=ARITHMETIC_OPSET)
    _requantize(total, out.emit("Div", [factor, scale], opset=ARITHMETIC_OPSET), zero, node, out)


def _requantize(total: str, factor: str, zero: str, node: Node, out: Rewriter) -> None:
    """Scale, round half to even, add the zero point and saturate."""
    result_type = out.element_type(zero)
    scaled = out.emit("Mul", [cast(total, "float", out), factor], opset=ARITHMETIC_OPSET)
    rounded = out.emit("Round", [scaled], opset=ROUND_OPSET)
    shifted = out.emit("Add", [rounded, cast(zero, "float", out)], opset=ARITHMETIC_OPSET)
    low, high = INTEGER_RANGES[result_type]
    bounded = out.emit("Clip", [shifted], opset=CLIP_OPSET, min=float(low), max=float(high))
    out.cast(bounded, result_type, node.outputs, opset=CLIP_OPSET)


@adapter("QLinearConv", 10, 9)
def expand_qlinear_conv(node: Node, out: Rewriter) -> None:
    """Convolve as integers, then scale and round."""
    data, data_scale, data_zero, weight, weight_scale, weight_zero, scale, zero = node.inputs[:8]
    first = _subtract_zero_point(data, data_zero, out)
    second = _subtract_zero_point(weight, _per_channel(weight_zero, weight, out), out)
    total = _exact_product(first, second, _conv_terms(weight, out), _conv(node, out), out)
    trailing = [1] * (out.rank(weight) - 2)
    shape = out.int64([-1, *trailing])
    if node.input(8):
        bias = out.emit("Reshape", [node.inputs[8], shape], opset=ARITHMETIC_OPSET)
        total = out.emit("Add", [total, bias], opset=ARITHMETIC_OPSET)
    factor = out.emit("Mul", [data_scale, weight_scale], opset=ARITHMETIC_OPSET)
    factor = out.emit("Div", [factor, scale], opset=ARITHMETIC_OPSET)
    if out.shape(weight_scale) not in ((), (1,)):
        factor = out.emit("Reshape", [factor, shape], opset=ARITHMETIC_OPSET)
    _requantize(total, factor, zero, node, out)
