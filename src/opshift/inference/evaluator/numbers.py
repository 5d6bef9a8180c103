"""Arithmetic on single elements: exact numbers, and symbols (sizes known only at run time).

Unknown results are `None`. Symbols are sizes, so they are at least 0. Sums and products are computed
with the symbols' integers. Other results that are at least 0, such as quotients, get a symbol named after the
computation, see `opshift.registry.shapes.sizes`.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from typing import Any

from opshift.inference.evaluator.elements import Element
from opshift.inference.symbols import is_symbol
from opshift.model.element_types import BY_NAME
from opshift.registry.shapes.sizes import (
    computed_size,
    exact_symbol_quotient,
    floor_quotient,
    symbol_from_number,
)

Operation = Callable[[Any, Any], Element]
"""Function that computes an element from two known elements; the result is `None` if it is unknown."""

SMALLEST_FLOAT = 2.0**-14
"""Smallest normal float16. Smaller nonzero results are unknown: runtimes may flush subnormal numbers to 0."""

MAX_EXACT_INTEGER = 2**53
"""Limit below which a Python float represents each integer."""

FLOAT_TYPES = ("float", "double", "float16")
"""Floating-point types whose arithmetic is evaluated; results that need rounding are unknown."""


def in_range(value: int, element_type: str) -> int | None:
    """Return an integer result in its type: unsigned types wrap around, and signed overflow gives `None`."""
    kind = BY_NAME[element_type]
    bits = 8 * struct.calcsize(f"<{kind.code}")
    if element_type.startswith("u"):
        return value % (1 << bits)
    return value if -(1 << bits - 1) <= value < 1 << bits - 1 else None


def add_sizes(first: int, second: int) -> int | None:
    """Add two sizes, at least one of them a symbol; `None` if a size is negative or the sum is too large."""
    return symbol_from_number(first + second) if min(first, second) >= 0 else None


def subtract_sizes(first: int, second: int) -> int | None:
    """Return `first` if `second` is 0, and 0 for equal symbols; else `None`: the result may be negative."""
    return first if second == 0 else 0 if first == second and is_symbol(first) is is_symbol(second) else None


def multiply_sizes(first: int, second: int) -> int | None:
    """Multiply two sizes, at least one of them a symbol; `None` for a negative or too large product."""
    if 0 in (first, second):
        return 0
    return symbol_from_number(first * second) if min(first, second) > 0 else None


def divide_sizes(first: int, second: int) -> int | None:
    """Divide two sizes; `None` if unknown. A symbolic divisor is not 0: the model would divide by 0, too."""
    if second <= 0:
        return None
    if is_symbol(second):
        return exact_symbol_quotient(first, second)
    return symbol_from_number(floor_quotient(first, second))


def remainder_of_sizes(first: int, second: int) -> int | None:
    """Return the remainder of two sizes; `None` if the divisor is not positive, or a symbol (maybe 0)."""
    return None if is_symbol(second) or second <= 0 else computed_size("Mod", first, second)


def larger_size(first: int, second: int) -> int | None:
    """Return the maximum of two sizes; a number of at most 0 is never larger, as symbols are at least 0."""
    if first == second:
        return first
    for size, other in ((first, second), (second, first)):
        if not is_symbol(other) and other <= 0:
            return size
    return computed_size("Max", *sorted((first, second)))


def equal_sizes(first: int, second: int) -> bool | None:
    """Return True if two sizes are equal in every run, False if they differ in every run, else `None`."""
    if is_symbol(first) and is_symbol(second):
        return True if first == second else None
    number = second if is_symbol(first) else first
    return False if number < 0 else None


def less_size(first: int, second: int) -> bool | None:
    """Return True if `first` is smaller than `second` in every run, False if in no run, else `None`."""
    if first == second:
        return False
    if not is_symbol(second) and second <= 0:
        return False
    return True if not is_symbol(first) and first < 0 else None


def divide_integers(first: int, second: int) -> int | None:
    """Divide integers and round toward zero; `None` for division by zero."""
    if second == 0:
        return None
    quotient = abs(first) // abs(second)
    return quotient if (first < 0) == (second < 0) else -quotient


def remainder(first: int, second: int) -> int | None:
    """Return the remainder with the sign of the divisor; `None` for division by zero."""
    return first % second if second else None


def truncated_remainder(first: int, second: int) -> int | None:
    """Return the remainder with the sign of the dividend; `None` for division by zero."""
    return int(math.copysign(1, first)) * (abs(first) % abs(second)) if second else None


def fits_float(value: float, element_type: str) -> bool:
    """Return whether a type represents a finite float exactly, and no runtime flushes the float to zero."""
    if value and abs(value) < SMALLEST_FLOAT:
        return False
    try:
        code = BY_NAME[element_type].code
        return bool(struct.unpack(f"<{code}", struct.pack(f"<{code}", value))[0] == value)
    except OverflowError:
        return False


def exact_float(operation: Callable[[Any, Any], Any], element_type: str) -> Operation:
    """Return a float operation with `None` for infinity, NaN, and results that need rounding or are tiny."""
    keeps_integers = operation is not operator.truediv

    def apply(first: float, second: float) -> float | None:
        if not (math.isfinite(first) and math.isfinite(second)):
            return None
        try:
            value = operation(first, second)
            are_integers = keeps_integers and not first % 1 and not second % 1
            is_exact = are_integers and abs(value) < MAX_EXACT_INTEGER
            if not is_exact:
                # imported here: most elements are integers, for which fractions take several times as long
                from fractions import Fraction

                is_exact = Fraction(value) == operation(Fraction(first), Fraction(second))
        except (OverflowError, ZeroDivisionError, ValueError):
            return None
        return float(value) if is_exact and fits_float(value, element_type) else None

    return apply


def choose_float(choose: Callable[[float, float], float]) -> Operation:
    """Wrap `min` or `max` for floats: the result is `None` for NaN, and for zeros of different signs."""

    def apply(first: float, second: float) -> float | None:
        if math.isnan(first) or math.isnan(second) or (first == second and repr(first) != repr(second)):
            return None
        return choose(first, second)

    return apply


def integer_operation(operation: Callable[[int, int], int | None], sizes: Operation, kind: str) -> Operation:
    """Return an operation on the integer type `kind`: `sizes` if an operand is a symbol, else `operation`."""

    def apply(first: int, second: int) -> int | None:
        if is_symbol(first) or is_symbol(second):
            result: Any = sizes(first, second)
            return result if is_symbol(result) or result is None else in_range(result, kind)
        value = operation(first, second)
        return None if value is None else in_range(value, kind)

    return apply


def comparison(operation: Callable[[Any, Any], bool], sizes: Operation) -> Operation:
    """Return a comparison of two elements: `sizes` if an operand is a symbol, else `operation`."""

    def apply(first: Any, second: Any) -> Element:
        if is_symbol(first) or is_symbol(second):
            return sizes(first, second)
        return operation(first, second)

    return apply


def negated(operation: Operation) -> Operation:
    """Return the negation of a comparison; an unknown result (`None`) stays unknown."""

    def apply(first: Any, second: Any) -> Element:
        found = operation(first, second)
        return None if found is None else not found

    return apply


def swapped(operation: Operation) -> Operation:
    """Return an operation with its operands exchanged."""
    return lambda first, second: operation(second, first)


EQUAL = comparison(operator.eq, equal_sizes)
LESS = comparison(operator.lt, less_size)
LESS_OR_EQUAL = comparison(operator.le, negated(swapped(less_size)))
