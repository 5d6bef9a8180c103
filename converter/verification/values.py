"""Made-up values: varied enough to tell two models apart, small enough for both to bear."""

from __future__ import annotations

import numpy as np

from opshift.converter.verification.arrays import Array, dtype_of

WORDS = ("", "a", "B", "opshift", "12", "-3.5")
NUMERALS = ("0", "1")
"""For models that read numbers out of text."""
RANGES = ((0, 9), (1, 4), (0, 1), (1, 1), (0, 0))
"""The least and greatest integer, in turn: indices into small tables, sizes, flags, ones and zeros."""
BYTES = {"int8": (-128, 127), "uint8": (0, 255)}
"""Quantized numbers rather than indices: all of them, before fewer are tried."""
LARGEST = {"int4": 7, "uint4": 15, "int2": 1, "uint2": 3}


def make(
    element_type: str,
    shape: tuple[int, ...],
    sample: int,
    whole: tuple[int, int],
    random: np.random.Generator,
) -> Array:
    """An array; `whole` is one of RANGES, for integers."""
    made: Array
    if element_type == "string":
        made = random.choice(np.array(WORDS if whole == RANGES[0] else NUMERALS, object), shape)
    elif element_type == "bool":
        made = random.integers(0, 2, shape)
    elif "int" in element_type:
        made = random.integers(*_limits(element_type, whole), shape, endpoint=True)
    elif element_type.startswith("complex"):
        made = _reals(shape, sample, random) + 1j * _reals(shape, sample, random)
    else:
        made = _reals(shape, sample, random)
    return np.asarray(made, dtype_of(element_type))


def _limits(element_type: str, whole: tuple[int, int]) -> tuple[int, int]:
    if whole == RANGES[0] and element_type in BYTES:
        return BYTES[element_type]
    least, most = whole
    return least, min(most, LARGEST.get(element_type, most))


def _reals(shape: tuple[int, ...], sample: int, random: np.random.Generator) -> Array:
    """Samples of three kinds in turn: around 0; halves, which meet zeros, ties and equals; larger ones."""
    if sample % 3 == 1:
        return np.asarray(random.integers(-8, 8, shape, endpoint=True) / 2)
    return np.asarray(random.normal(0, 100 if sample % 3 else 1, shape))
