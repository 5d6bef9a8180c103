"""Pack 4-bit and 2-bit integers into bytes, the first integer in the lowest bits, as TensorProto does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain

BITS = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2}
"""Number of bits of each packed element type."""


def unpacked(payload: Iterable[int], element_type: str, count: int) -> tuple[int, ...]:
    """Return the first `count` integers of packed bytes."""
    return tuple(chain.from_iterable(map(_byte_table(element_type).__getitem__, payload)))[:count]


def packed(values: Sequence[int], element_type: str) -> bytes:
    """Return the packed bytes of integers; unused bits of the last byte are zero.

    Raises:
        OverflowError: an integer is out of the range of the element type.
    """
    bits = BITS[element_type]
    low, modulus = -(1 << (bits - 1)) if element_type.startswith("int") else 0, 1 << bits
    if not all(low <= value < low + modulus for value in values):
        raise OverflowError(f"a value is out of the range of {element_type}")
    shifts = range(0, 8, bits)
    groups = [values[offset :: len(shifts)] for offset in range(len(shifts))]
    payload = bytearray(len(groups[0]))
    for group, shift in zip(groups, shifts, strict=True):
        for index, value in enumerate(group):
            payload[index] |= value % modulus << shift
    return bytes(payload)


# A table of 256 entries per element type: unpacking a byte becomes one lookup.
@cache
def _byte_table(element_type: str) -> tuple[tuple[int, ...], ...]:
    """Return the integers packed in each of the 256 bytes."""
    bits = BITS[element_type]
    size, is_signed = 1 << bits, element_type.startswith("int")
    rows = ([byte >> shift & (size - 1) for shift in range(0, 8, bits)] for byte in range(256))
    if is_signed:
        rows = ([number - size if number >= size // 2 else number for number in row] for row in rows)
    return tuple(map(tuple, rows))
