"""Symbols (sizes known only at run time), and operations on sizes that may be symbols.

A symbol is a large integer. Sums, products, and quotients that a model requires to be exact are computed with
these integers, so that equal polynomials of sizes are equal numbers. Other operations must not use the
integer, because it stands for every possible size: 2 * (n // 2) equals n for an even integer, but not for
every size n. The result of such an operation is a symbol that is named after the computation.
"""

from math import gcd
from threading import Lock
from typing import Final, NamedTuple

from opshift.model.types import SMALLEST_SYMBOL, Symbol

LARGEST_SYMBOL = 1 << 640
"""Exclusive upper limit of symbols, so that long chains of products do not compute huge numbers."""

# The bits of a symbol for a name or computation are: a 1, _FACTOR_BITS zeros, a 1 for a name or a 0 for a
# computation, _HASH_BITS, _CHECK_BITS, and _ADDEND_BITS zeros. The zeros allow reading `factor` and `addend`
# from factor * symbol + addend. Symbols of names are larger than others, so that n - n // 2 is positive.
_FACTOR_BITS, _HASH_BITS, _CHECK_BITS, _ADDEND_BITS = 32, 62, 32, 64

MAX_COMPUTATIONS = 1 << 16
"""Maximum number of computations that a process remembers; older computations are forgotten."""

# A symbol is often part of a sum or product, so it cannot hold the computation as an attribute.
_COMPUTATIONS: Final[dict[int, tuple[object, ...]]] = {}
"""Operation and operands of results of `computed_size`, the oldest first."""

_LOCK: Final = Lock()
"""Lock while `_COMPUTATIONS` changes."""

_LEADING_BIT = _FACTOR_BITS + 1 + _HASH_BITS + _CHECK_BITS + _ADDEND_BITS


def is_symbolic(*sizes: int) -> bool:
    """Return whether one of the numbers is a symbol or was computed from symbols."""
    return any(abs(size) >= SMALLEST_SYMBOL for size in sizes)


def symbol_from_number(number: int) -> Symbol | None:
    """Return the symbol for a sum or product of sizes; `None` if the number is out of range."""
    return Symbol(number) if SMALLEST_SYMBOL <= number < LARGEST_SYMBOL else None


def symbol_named(name: str) -> Symbol:
    """Return the symbol for a name; in a process, equal names give equal symbols, also in other models."""
    return _make_symbol(name, is_name=True)


def computed_size(operation: str, *operands: object) -> Symbol:
    """Return the symbol that is named after a computation, whose result is a size.

    `operation` and `operands` must determine the result in every run.
    """
    symbol = _make_symbol("\0".join((operation, *map(str, operands))), is_name=False)
    with _LOCK:
        _COMPUTATIONS.pop(int(symbol), None)
        if len(_COMPUTATIONS) >= MAX_COMPUTATIONS:
            del _COMPUTATIONS[next(iter(_COMPUTATIONS))]
        _COMPUTATIONS[int(symbol)] = (operation, *operands)
    return symbol


def is_named(symbol: int) -> bool:
    """Return whether a symbol comes from `symbol_named`, and is not computed from other symbols."""
    return _has_structure(symbol) and bool(symbol >> _LEADING_BIT - _FACTOR_BITS - 1 & 1)


def exact_symbol_quotient(size: int, by: int) -> Symbol | None:
    """Return `size / by` if the quotient is the symbol of a name or a computation, or else `None`.

    Other quotients may be integers by coincidence, for example if `size` is the sum of two symbols.
    """
    quotient, rest = divmod(size, by)
    return Symbol(quotient) if not rest and _has_structure(quotient) else None


def floor_quotient(size: int, by: int) -> int:
    """Return `size / by`, rounded down; `by` is a positive number.

    The quotient of a symbol is exact if its factor is a multiple of `by`. Otherwise, it is a symbol plus a
    number; the symbol is the same for `size` and `size + by`.
    """
    if not is_symbolic(size):
        return size // by
    factor, symbol, addend = _parts_of(size)
    divisor = gcd(factor, by)
    factor, addend, by = factor // divisor, addend // divisor, by // divisor
    if by == 1:
        return factor * symbol + addend
    match _COMPUTATIONS.get(int(symbol)):
        # The limit of the divisor ends chains of quotients, in which the divisor would grow.
        case ("Div", int(inner), int(inner_by)) if factor == 1 and inner_by * by < SMALLEST_SYMBOL:
            # floor((floor(a / b) + c) / d) = floor((a + b * c) / (b * d))
            return floor_quotient(inner + inner_by * addend, inner_by * by)
    whole, rest = divmod(addend, by)
    return computed_size("Div", factor * symbol + rest, by) + whole


def ceil_quotient(size: int, by: int) -> int:
    """Return `size / by`, rounded up; see `floor_quotient`."""
    return floor_quotient(size + by - 1, by)


def minimum(first: int, second: int) -> int:
    """Return the minimum of two sizes; a number up to 0 is the minimum, because symbols are at least 0."""
    smaller, larger = sorted((first, second))
    if smaller <= 0 or smaller == larger or not is_symbolic(larger):
        return smaller
    return computed_size("Min", smaller, larger)


def is_limited(size: int, limit: int) -> bool:
    """Return whether a size is the minimum of the symbol `limit` and a positive number."""
    match _COMPUTATIONS.get(int(size)):
        case ("Min", int(number), int(symbol)):
            return symbol == limit and not is_symbolic(number)
    return False


def _make_symbol(name: str, *, is_name: bool) -> Symbol:
    head = 1 << _FACTOR_BITS + 1 | is_name
    number = head << _HASH_BITS | hash(name) % (1 << _HASH_BITS)
    return Symbol((number << _CHECK_BITS | _check_bits(number)) << _ADDEND_BITS)


def _has_structure(number: int) -> bool:
    """Return whether a number is the symbol of a name or computation, and is not a sum or product."""
    high, low = divmod(number, 1 << _ADDEND_BITS)
    high, check = divmod(high, 1 << _CHECK_BITS)
    return low == 0 and number >> _LEADING_BIT == 1 and check == _check_bits(high)


def _check_bits(number: int) -> int:
    # The hash of a text mixes all bits, unlike that of a number or tuple: the low bits of sums and quotients
    # of symbols then differ, except by coincidence.
    return hash(str(number)) % (1 << _CHECK_BITS)


class _Parts(NamedTuple):
    """A size as factor * symbol + addend; `symbol` may also be a sum or product of symbols."""

    factor: int
    symbol: int
    addend: int


def _parts_of(size: int) -> _Parts:
    half = 1 << _ADDEND_BITS - 1
    addend = (size + half) % (2 * half) - half
    multiple = size - addend
    factor = multiple >> _LEADING_BIT
    symbol = exact_symbol_quotient(multiple, factor) if factor > 0 else None
    return _Parts(1, multiple, addend) if symbol is None else _Parts(factor, symbol, addend)
