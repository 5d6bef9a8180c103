"""Integers of four and of two bits, several to a byte, the first of them in the lowest bits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain

BITS = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2}


def unpacked(payload: Iterable[int], element_type: str, count: int) -> tuple[int, ...]:
    """The first `count` integers of some bytes."""
    return tuple(chain.from_iterable(map(_of_byte(element_type).__getitem__, payload)))[:count]


def packed(values: Sequence[int], element_type: str) -> bytes:
    """The bytes that hold some integers.

    Raises:
        OverflowError: one takes more bits.
    """
    bits = BITS[element_type]
    low, size = -(1 << (bits - 1)) if element_type.startswith("int") else 0, 1 << bits
    if not all(low <= value < low + size for value in values):
        raise OverflowError(f"not all values fit in {bits} bits")
    shifts = range(0, 8, bits)
    columns = [values[place :: len(shifts)] for place in range(len(shifts))]
    payload = bytearray(len(columns[0]))
    for column, shift in zip(columns, shifts, strict=True):
        for at, value in enumerate(column):
            payload[at] |= value % size << shift
    return bytes(payload)


@cache
def _of_byte(element_type: str) -> tuple[tuple[int, ...], ...]:
    """For every byte the integers that it holds."""
    bits = BITS[element_type]
    size, is_signed = 1 << bits, element_type.startswith("int")
    parts = ([byte >> shift & (size - 1) for shift in range(0, 8, bits)] for byte in range(256))
    if is_signed:
        parts = ([part - size if part >= size // 2 else part for part in each] for each in parts)
    return tuple(map(tuple, parts))
