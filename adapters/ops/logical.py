"""Operators on bits, and comparisons.

BitShift (introduced in opset 11, extended in 28) and BitwiseNot (18) become arithmetic in older opsets, and
BitwiseAnd, BitwiseOr and BitwiseXor (18) become lookups in a table. Less and Greater compare integers since
opset 9, Equal compares floats since opset 11.
"""

import operator
from collections.abc import Callable
from typing import NamedTuple

from opshift.adapters import Node, Rewriter, adapter, require_supported_types
from opshift.adapters.emit.expression import IEEE_FLOAT_TYPES, Expression, cast
from opshift.model.element_types import INTEGER_BITS

BITWISE_FUNCTIONS: dict[str, Callable[[int, int], int]] = {
    "BitwiseAnd": operator.and_,
    "BitwiseOr": operator.or_,
    "BitwiseXor": operator.xor,
}

DIGIT_BITS = 4
"""Number of bits of each operand in a table lookup; a table has 2 ** (2 * DIGIT_BITS) entries."""


@adapter("BitShift", 28, 11)
def replace_undefined_shift(node: Node, out: Rewriter) -> None:
    """Keep shifts of unsigned integers by constant counts below the width; replace others by arithmetic.

    Version 11 does not define other counts, and does not support signed integers.
    """
    width = INTEGER_BITS[out.element_type(node.inputs[0])]
    counts = out.constant_value(node.inputs[1])
    is_defined = counts is not None and all(0 <= count < width for count in counts.values)
    if is_defined and _is_unsigned(out.element_type(node.inputs[0])):
        out.replace(node)
        return
    replace_shift_by_arithmetic(node, out)


@adapter("BitShift", 11, 10)
def replace_shift_by_arithmetic(node: Node, out: Rewriter) -> None:
    """Replace a shift by n by a multiplication with, or a division by, 2 ** n."""
    element_type = out.element_type(node.inputs[0])
    wide = "uint64" if _is_unsigned(element_type) else "int64"
    value = cast(node.inputs[0], wide, out)
    count = _clamped_count(node.inputs[1], element_type, out)
    if node.attribute("direction") == b"LEFT":
        value = out.emit("Mul", [value, _look_up_power(_left_factors(element_type), count, wide, out)])
    else:
        for powers in _right_divisors(INTEGER_BITS[element_type]):
            value = _floor_divide(value, _look_up_power(powers, count, wide, out), wide, out)
    cast(value, element_type, out, node.outputs)


def _is_unsigned(element_type: str) -> bool:
    return element_type.startswith("u")


def _clamped_count(counts: str, element_type: str, out: Rewriter) -> str:
    """Emit the counts as indices into a table of powers; negative and large counts become the width."""
    # The cast to unsigned makes a negative count larger than any width.
    width = INTEGER_BITS[element_type]
    unsigned = counts if _is_unsigned(element_type) else cast(counts, f"u{element_type}", out)
    clipped = out.emit("Clip", [cast(unsigned, "float", out)], opset=6, min=0.0, max=float(width))
    return cast(clipped, "int64", out)


def _look_up_power(powers: list[int], count: str, wide: str, out: Rewriter) -> str:
    return out.emit("Gather", [out.constant(powers, wide), count], axis=0)


def _left_factors(element_type: str) -> list[int]:
    """Return the factor of each count; the last one, 0, is for counts that shift out all bits."""
    width = INTEGER_BITS[element_type]
    powers = [1 << count for count in range(width)]
    if element_type == "int64":
        powers[-1] = -powers[-1]  # 2 ** 63 wraps around to -2 ** 63 in int64
    return [*powers, 0]


def _right_divisors(width: int) -> list[list[int]]:
    """Return the divisors by shift count; for 64 bits, two lists to divide by in turn: 2 ** 64 overflows."""
    first = [1 << min(count, 32) for count in range(width + 1)]
    second = [1 << max(count - 32, 0) for count in range(width + 1)]
    return [first, second] if width > 32 else [first]


def _floor_divide(value: str, power: str, wide: str, out: Rewriter) -> str:
    """Emit a division that rounds down: Div truncates towards zero, so subtract the remainder first."""
    if wide == "int64":
        value = out.emit("Sub", [value, out.emit("Mod", [value, power], opset=10)])
    return out.emit("Div", [value, power])


@adapter(tuple(BITWISE_FUNCTIONS), 18, 17)
def replace_bitwise_by_lookup(node: Node, out: Rewriter) -> None:
    """Split the integers into digits of four bits, and look up the result of each pair in a table."""
    element_type = out.element_type(node.inputs[0])
    columns = [_unsigned_column(name, element_type, out) for name in node.inputs]
    width = INTEGER_BITS[element_type]
    ranks = [out.known_rank(name) for name in node.inputs]
    # Avoid a negative axis: with it, onnxruntime's ReduceSum keeps the dimension of empty data.
    axis = -1 if None in ranks else max(rank or 0 for rank in ranks)
    total = ""
    # Sum up at most 32 bits at a time, because ReduceSum of onnxruntime adds integers as doubles.
    for start in range(0, width, 32):
        positions = range(start, min(start + 32, width), DIGIT_BITS)
        part = _look_up(columns, positions, BITWISE_FUNCTIONS[node.op_type], axis, out)
        scaled = out.emit("Mul", [part, out.constant(1 << start, "uint64")])
        total = out.emit("Add", [total, scaled]) if total else scaled
    cast(total, element_type, out, node.outputs)


def _unsigned_column(name: str, element_type: str, out: Rewriter) -> str:
    """Emit the integers as uint64 with the same bits, with a new last dimension for the digits."""
    unsigned = name if _is_unsigned(element_type) else cast(name, f"u{element_type}", out)
    return out.emit("Unsqueeze", [cast(unsigned, "uint64", out), out.int64([-1])])


def _look_up(
    columns: list[str], positions: range, logic: Callable[[int, int], int], axis: int, out: Rewriter
) -> str:
    """Emit the bits of the result at `positions`, shifted so that the lowest position is bit 0."""
    base = 1 << DIGIT_BITS
    powers = Expression("", "uint64", out).constant([1 << position for position in positions])
    first, second = ((Expression(column, "uint64", out) / powers).apply("Mod", base) for column in columns)
    pair = (first * base + second).name
    results = [logic(left, right) for left in range(base) for right in range(base)]
    digits = out.emit("Gather", [out.int64(results), cast(pair, "int64", out)], axis=0)
    weights = [1 << (position - positions.start) for position in positions]
    parts = out.emit("Mul", [digits, out.int64(weights)])
    return cast(out.emit("ReduceSum", [parts, out.int64([axis])], keepdims=0), "uint64", out)


@adapter("BitwiseNot", 18, 17)
def replace_not_by_subtraction(node: Node, out: Rewriter) -> None:
    """Replace BitwiseNot of x by -1 - x, which is equal in two's complement."""
    value = node.inputs[0]
    inverse = out.emit("Sub", [out.int64(-1), cast(value, "int64", out)])
    cast(inverse, out.element_type(value), out, node.outputs)


class IntegerHalves(NamedTuple):
    """64-bit integer as `upper * 2**32 + lower`: double represents both exactly; `lower` may be negative."""

    upper: str
    lower: str


@adapter("Equal", 11, 7)
def replace_equal_by_less_and_greater(node: Node, out: Rewriter) -> None:
    """Replace Equal of floats by "neither less nor greater, and not NaN"; compare uint64 as int64."""
    element_type = out.element_type(node.inputs[0])
    if element_type in IEEE_FLOAT_TYPES:
        less, greater = (out.emit(op_type, node.inputs) for op_type in ("Less", "Greater"))
        neither = out.emit("Not", [out.emit("Or", [less, greater])])
        first, second = (_is_number(name, element_type, out) for name in node.inputs)
        out.emit("And", [neither, out.emit("And", [first, second])], node.outputs)
    elif element_type == "uint64":
        signed = [out.cast(name, "int64") for name in node.inputs]
        out.replace(node, inputs=signed)
    else:
        require_supported_types(node, out)
        out.replace(node)


def _is_number(name: str, element_type: str, out: Rewriter) -> str:
    """Emit whether a value is not NaN: every number is less than 1 or greater than 0, NaN is neither."""
    less = out.emit("Less", [name, out.constant(1.0, element_type)])
    return out.emit("Or", [less, out.emit("Greater", [name, out.constant(0.0, element_type)])])


@adapter(("Less", "Greater"), 9, 7)
def compare_integers_by_halves(node: Node, out: Rewriter) -> None:
    """Compare 64-bit integers by their upper halves, and if these are equal by their lower halves.

    For nonnegative int64 numbers, compare the difference, which does not overflow, with 0.
    """
    element_type = out.element_type(node.inputs[0])
    if element_type not in ("int64", "uint64"):
        require_supported_types(node, out)
        out.replace(node)
        return
    if element_type == "int64" and all(map(out.is_nonnegative, node.inputs)):
        difference = cast(out.emit("Sub", node.inputs), "float", out)
        out.emit(node.op_type, [difference, out.constant(0.0, "float")], node.outputs)
        return
    first, second = (_split_integer(name, element_type, out) for name in node.inputs)
    upper = _compare_as_double(node.op_type, first.upper, second.upper, out)
    lower = _compare_as_double(node.op_type, first.lower, second.lower, out)
    same = out.emit("Equal", [first.upper, second.upper])
    out.emit("Or", [upper, out.emit("And", [same, lower])], node.outputs)


def _split_integer(name: str, element_type: str, out: Rewriter) -> IntegerHalves:
    value = name if element_type == "int64" else cast(name, "int64", out)
    base = out.int64(1 << 32)
    upper = out.emit("Div", [value, base])
    lower = out.emit("Sub", [value, out.emit("Mul", [upper, base])])
    if element_type == "uint64":
        # The cast subtracts 2 ** 64 from numbers of 2 ** 63 or more: add 2 ** 64 to negative numbers.
        is_wrapped = _compare_as_double("Less", value, out.int64(0), out)
        upper = out.emit("Add", [upper, out.emit("Mul", [cast(is_wrapped, "int64", out), base])])
    return IntegerHalves(upper, lower)


def _compare_as_double(op_type: str, first: str, second: str, out: Rewriter) -> str:
    return out.emit(op_type, [cast(name, "double", out) for name in (first, second)])
