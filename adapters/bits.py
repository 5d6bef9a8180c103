"""BitShift, the Bitwise operators and BitCast: bits are arithmetic on powers of two before they came."""

from __future__ import annotations

import operator
from collections.abc import Callable

from opshift.adapters.casts import cast
from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NUMBER

WIDTHS = {f"{sign}int{width}": width for sign in ("", "u") for width in (8, 16, 32, 64)}
LOGIC: dict[str, Callable[[int, int], int]] = {
    "BitwiseAnd": operator.and_,
    "BitwiseOr": operator.or_,
    "BitwiseXor": operator.xor,
}
DIGIT = 4
"""How many bits are looked up at a time."""


@adapter("BitShift", 28, 11)
def counts_stay_within_the_width(node: Node, out: Rewriter) -> None:
    """Nothing was said of counts outside the type's width, and signed integers could not be shifted."""
    width = WIDTHS[out.element_type(node.inputs[0])]
    counts = out.constant_value(node.inputs[1])
    inside = counts is not None and all(0 <= count < width for count in counts.values)
    if inside and _is_unsigned(out.element_type(node.inputs[0])):
        out.become(node)
        return
    shifts_multiply_and_divide(node, out)


@adapter("BitShift", 11, 10)
def shifts_multiply_and_divide(node: Node, out: Rewriter) -> None:
    """A shift by n is a product with, or a quotient by, the n-th power of two."""
    element_type = out.element_type(node.inputs[0])
    wide = "uint64" if _is_unsigned(element_type) else "int64"
    value = cast(node.inputs[0], wide, out)
    count = _count(node.inputs[1], element_type, out)
    if node.attribute("direction") == b"LEFT":
        value = out.emit("Mul", [value, _power(_powers_to_the_left(element_type), count, wide, out)])
    else:
        for powers in _powers_to_the_right(WIDTHS[element_type]):
            value = _quotient(value, _power(powers, count, wide, out), wide, out)
    cast(value, element_type, out, node.outputs)


def _count(counts: str, element_type: str, out: Rewriter) -> str:
    """The counts as indices, where the width stands for all that are negative or larger."""
    width = WIDTHS[element_type]
    unsigned = counts if _is_unsigned(element_type) else cast(counts, f"u{element_type}", out)
    clipped = out.emit("Clip", [cast(unsigned, "float", out)], opset=6, min=0.0, max=float(width))
    return cast(clipped, "int64", out)


def _powers_to_the_left(element_type: str) -> list[int]:
    """What to multiply by: beyond the width all bits are gone."""
    width = WIDTHS[element_type]
    powers = [1 << count for count in range(width)]
    if element_type == "int64":
        powers[-1] = -powers[-1]
    return [*powers, 0]


def _powers_to_the_right(width: int) -> list[list[int]]:
    """What to divide by, one after the other: 64 bits take two steps to keep the powers in range."""
    first = [1 << min(count, 32) for count in range(width + 1)]
    second = [1 << max(count - 32, 0) for count in range(width + 1)]
    return [first, second] if width > 32 else [first]


def _power(powers: list[int], count: str, wide: str, out: Rewriter) -> str:
    return out.emit("Gather", [out.constant(powers, wide), count], axis=0)


def _quotient(value: str, power: str, wide: str, out: Rewriter) -> str:
    """Rounded down: Div cuts towards zero, so what is left over goes first."""
    if wide == "int64":
        value = out.emit("Sub", [value, out.emit("Mod", [value, power], opset=10)])
    return out.emit("Div", [value, power])


@adapter(tuple(LOGIC), 18, 17)
def digits_are_looked_up(node: Node, out: Rewriter) -> None:
    """The integers are taken apart into digits of four bits, for which a table has the results."""
    element_type = out.element_type(node.inputs[0])
    columns = [_column(name, element_type, out) for name in node.inputs]
    width = WIDTHS[element_type]
    total = ""
    # No more than 32 bits are summed up at a time: onnxruntime adds integers as floats.
    for start in range(0, width, 32):
        part = _combined(columns, range(start, min(start + 32, width), DIGIT), LOGIC[node.op_type], out)
        scaled = out.emit("Mul", [part, out.constant(1 << start, "uint64")])
        total = out.emit("Add", [total, scaled]) if total else scaled
    cast(total, element_type, out, node.outputs)


def _column(name: str, element_type: str, out: Rewriter) -> str:
    """The numbers by their bits, without a sign, and with a last dimension for digits."""
    unsigned = name if _is_unsigned(element_type) else cast(name, f"u{element_type}", out)
    return out.emit("Unsqueeze", [cast(unsigned, "uint64", out), out.constant([-1], "int64")])


def _combined(columns: list[str], places: range, logic: Callable[[int, int], int], out: Rewriter) -> str:
    """The result in some places, counted from the first of them."""
    base = 1 << DIGIT
    powers = out.constant([1 << place for place in places], "uint64")
    first, second = (
        out.emit("Mod", [out.emit("Div", [column, powers]), out.constant(base, "uint64")])
        for column in columns
    )
    pair = out.emit("Add", [out.emit("Mul", [first, out.constant(base, "uint64")]), second])
    results = [logic(one, other) for one in range(base) for other in range(base)]
    digits = out.emit("Gather", [out.constant(results, "int64"), cast(pair, "int64", out)], axis=0)
    weights = [1 << (place - places.start) for place in places]
    parts = out.emit("Mul", [digits, out.constant(weights, "int64")])
    return cast(out.emit("ReduceSum", [parts, out.constant([-1], "int64")], keepdims=0), "uint64", out)


@adapter("BitwiseNot", 18, 17)
def inverse_is_a_difference(node: Node, out: Rewriter) -> None:
    """All bits inverted, a number x becomes -1 - x."""
    value = node.inputs[0]
    inverse = out.emit("Sub", [out.constant(-1, "int64"), cast(value, "int64", out)])
    cast(inverse, out.element_type(value), out, node.outputs)


@adapter("BitCast", 26, 25)
def integers_wrap_round(node: Node, out: Rewriter) -> None:
    """Between integers of one width a Cast keeps the bits; of floats nothing else reads them."""
    source = out.element_type(node.inputs[0])
    target = BY_NUMBER[node.attribute("to")].name
    widths = {**WIDTHS, "bool": 8}
    if source == target:
        out.emit("Identity", node.inputs, node.outputs)
    elif target in WIDTHS and widths.get(source) == WIDTHS[target]:
        cast(node.inputs[0], target, out, node.outputs)
    else:
        raise CannotConvert(
            f"it takes the bits of {source} for {target}, which no operator of opset 25 does",
            remedy="use Cast if the value was meant, or do it outside the model",
        )


def _is_unsigned(element_type: str) -> bool:
    return element_type.startswith("u")
