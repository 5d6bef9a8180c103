"""Pow with integers or mixed types (new in opset 12), Mod (10), float Mod with `fmod` 0 (28), Round (11)."""

import math

from opshift.adapters import CannotConvert, Node, Rewriter, adapter, require_supported_types
from opshift.adapters.core.rewriter import rename_output
from opshift.adapters.emit.expression import (
    ARITHMETIC_TYPES,
    FLOAT_TYPES,
    Expression,
    cast,
    cast_between,
    cast_output,
)

DIVISION_EXPONENTS = {"float16": (0,), "float": tuple(range(252, -1, -28))}
"""Exponents of the powers of 2 by which the steps of a long division multiply the divisor, by element type.

Quotients are below 2^41 for float16 and 2^278 for float, so the first digit has at most 41 and 26 bits. The
product of a digit and a divisor has at most 53 bits, so double represents it exactly.
"""

BEYOND_ALL_DIVIDENDS = 2.0**300
"""A power of 2 larger than every float, which replaces an infinite divisor."""

MAX_FACTORS = 16
"""Largest exponent for which an integer power is expanded into Mul nodes, to limit the number of nodes."""


@adapter("Pow", 12, 7, error="at most 2^-52 of the power")
def compute_power_in_double(node: Node, out: Rewriter) -> None:
    """Compute integers to small constant powers as products, and other integer and mixed types in double.

    Products overflow like Pow. A Pow whose inputs share a float type is kept unchanged.
    """
    base_type, exponent_type = (out.element_type(name) for name in node.inputs)
    if base_type == exponent_type and base_type not in ("int32", "int64"):
        require_supported_types(node, out)
        out.replace(node)
        return
    factors = _small_integer_exponent(node, out) if base_type in ("int32", "int64") else None
    if factors is not None:
        _emit_product(node, factors, out)
        return
    if base_type == "int64":
        out.allow(
            "approximate", "a power of a 64-bit integer is computed in double, which rounds above 2**53"
        )
    widened = [out.cast(name, "double") for name in node.inputs]
    result = out.fresh("pow")
    out.replace(node, inputs=widened, outputs=[result])
    out.cast(result, base_type, node.outputs)


def _small_integer_exponent(node: Node, out: Rewriter) -> int | None:
    """Return a constant integer exponent from 1 to `MAX_FACTORS` that keeps the base's shape, else `None`."""
    exponent = out.constant_value(node.inputs[1])
    if exponent is None or exponent.dims not in ((), (1,)) or not 1 <= exponent.scalar <= MAX_FACTORS:
        return None
    rank = out.known_rank(node.inputs[0])
    # If the base is a scalar, a 1-D exponent of one element makes the rank of the result 1.
    keeps_shape = exponent.dims == () or (rank is not None and rank > 0)
    return int(exponent.scalar) if keeps_shape and float(exponent.scalar).is_integer() else None


def _emit_product(node: Node, factors: int, out: Rewriter) -> None:
    product = node.inputs[0]
    for _ in range(factors - 1):
        product = out.emit("Mul", [product, node.inputs[0]])
    rename_output(product, node, out)


@adapter("Mod", 28, 13)
def correct_sign_of_float_mod(node: Node, out: Rewriter) -> None:
    """Rewrite Mod of floats with `fmod` 0 as `fmod` 1 and a correction of the sign.

    Before version 28, floats require `fmod` 1, whose result has the sign of the dividend. Where this sign
    differs from the sign of the divisor, the divisor is added once. A 0 gets the sign of the divisor.
    """
    divisor = node.inputs[1]
    element_type = out.element_type(divisor)
    if element_type not in FLOAT_TYPES or node.attribute("fmod", 0):
        out.replace(node)
        return
    zero = out.constant(0.0, element_type)
    remainder = out.fresh("rest")
    out.replace(node, outputs=[remainder], attributes={"fmod": 1})
    signs_differ = out.emit("Xor", [out.emit("Less", [remainder, zero]), out.emit("Less", [divisor, zero])])
    corrected = out.emit("Where", [signs_differ, out.emit("Add", [remainder, divisor]), remainder])
    # In onnxruntime, the kernel of Where keeps -0.0 only in the third input.
    is_nonzero = cast(remainder, "bool", out)
    out.emit("Where", [is_nonzero, corrected, out.emit("Div", [zero, divisor])], node.outputs)


@adapter("Mod", 10, 9)
def expand_mod(node: Node, out: Rewriter) -> None:
    """Rewrite as `x - Div(x, y) * y`; with `fmod` 0, give the result the sign of the divisor.

    Div truncates quotients of integers towards zero. Floats are divided by an exact long division.
    """
    element_type = out.element_type(node.inputs[0])
    if element_type in FLOAT_TYPES:
        _emit_float_remainder(node, element_type, out)
        return
    compute_type = ARITHMETIC_TYPES.get(element_type, element_type)
    dividend, divisor = (cast_between(name, element_type, compute_type, out) for name in node.inputs)
    quotient = out.emit("Div", [dividend, divisor])
    remainder = out.emit("Sub", [dividend, out.emit("Mul", [quotient, divisor])])
    if compute_type.startswith("int") and not node.attribute("fmod", 0):
        remainder = _match_divisor_sign(divisor, remainder, compute_type, out)
    cast_output(remainder, compute_type, element_type, node, out)


def _emit_float_remainder(node: Node, element_type: str, out: Rewriter) -> None:
    """Emit a long division of float16 or float in double, which is exact; refuse other types."""
    if element_type not in DIVISION_EXPONENTS:
        reason = f"the remainder of {element_type} needs more precision than double"
        remedy = "cast the inputs to float, or convert to opset 10 or later"
        raise CannotConvert(reason, "value.inexact", remedy=remedy)
    dividend, divisor = (Expression(cast(name, "double", out), "double", out) for name in node.inputs)
    magnitude = abs(divisor)
    # A number larger than all dividends replaces an infinite divisor; infinity to the power 0 is 1.
    is_finite = magnitude.apply("Less", math.inf).cast("double")
    finite = magnitude.apply("Pow", is_finite) + (1 - is_finite) * BEYOND_ALL_DIVIDENDS
    remainder = dividend
    for exponent in DIVISION_EXPONENTS[element_type]:
        multiple = finite * 2.0**exponent if exponent else finite
        quotient = (remainder / multiple).cast("int64").cast("double")
        remainder = remainder - quotient * multiple
    # For floats, ONNX allows `fmod` 0 only since opset 28, but runtimes compute such older nodes, too.
    if node.attribute("fmod", 0):
        zero = dividend * 0
    else:
        remainder = _add_divisor_of_other_sign(remainder, divisor)
        zero = 0 / divisor
    is_nonzero = cast(remainder.name, "bool", out)
    remainder = Expression(out.emit("Where", [is_nonzero, remainder.name, zero.name]), "double", out)
    is_defined = abs(dividend).apply("Less", math.inf).apply("And", magnitude.apply("Greater", 0.0))
    # 0 / 0 is NaN, which is the remainder if the dividend is infinite or the divisor is 0.
    one_or_nan = is_defined.cast("double") / is_defined.cast("double")
    cast((remainder * one_or_nan).name, element_type, out, node.outputs)


def _add_divisor_of_other_sign(remainder: Expression, divisor: Expression) -> Expression:
    """Add the divisor once where the remainder has the opposite sign; both are double."""
    is_below = remainder.apply("Less", 0.0).apply("And", divisor.apply("Greater", 0.0))
    is_above = remainder.apply("Greater", 0.0).apply("And", divisor.apply("Less", 0.0))
    factor = is_below.apply("Or", is_above).cast("double")
    # A power with exponent 0 is 1, whereas the product of 0 and an infinite divisor would be NaN.
    return remainder + (divisor.apply("Pow", factor) - (1 - factor))


def _match_divisor_sign(divisor: str, remainder: str, element_type: str, out: Rewriter) -> str:
    """Add the divisor once where the remainder has the opposite sign."""
    # Before version 9, Less accepts only floats. A cast to float keeps the sign of every integer.
    zero = out.constant(0.0, "float")
    signs = [out.emit("Less", [cast(name, "float", out), zero], opset=7) for name in (remainder, divisor)]
    is_zero = out.emit("Not", [cast(remainder, "bool", out)])
    is_correct = out.emit("Or", [out.emit("Not", [out.emit("Xor", signs)]), is_zero])
    correction = cast(out.emit("Not", [is_correct]), element_type, out)
    return out.emit("Add", [remainder, out.emit("Mul", [correction, divisor])])


@adapter("Round", 11, 10)
def expand_round(node: Node, out: Rewriter) -> None:
    """Rewrite as Ceil, minus 1 if Ceil adds more than a half, or adds a half and results in an odd number.

    Unlike `Floor(x) + 1`, this keeps the sign of a negative number that becomes -0.0.
    """
    element_type = out.element_type(node.inputs[0])
    compute_type = "double" if element_type == "double" else "float"
    value = Expression(cast_between(node.inputs[0], element_type, compute_type, out), compute_type, out)
    ceil = value.apply("Ceil")
    added = ceil - value
    even_part = (ceil * 0.5).apply("Floor") * 2.0
    is_odd = (ceil - even_part).apply("Greater", 0.5)
    # For an infinite value, `added` and the parity are NaN: results of Greater are false, so subtract 0.
    is_at_least_half = added.apply("Less", 0.5).apply("Not")
    rounds_down = added.apply("Greater", 0.5).apply("Or", is_at_least_half.apply("And", is_odd))
    outputs = node.outputs if compute_type == element_type else 1
    result = out.emit("Sub", [ceil.name, cast(rounds_down.name, compute_type, out)], outputs)
    if compute_type != element_type:
        cast(result, element_type, out, node.outputs)
