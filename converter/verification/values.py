"""Generated input values: varied enough to detect differences, and small enough to avoid overflow."""

from __future__ import annotations

import numpy as np

from opshift.converter.verification.arrays import Array, dtype_of

WORDS = ("", "a", "B", "opshift", "12", "-3.5")
NUMERALS = ("0", "1")
"""Strings for models that convert text to numbers."""
RANGES = ((0, 9), (1, 4), (0, 1), (1, 1), (0, 0))
"""Ranges of integers to try in turn: indices into small tables, sizes, flags, only ones, only zeros."""
BYTES = {"int8": (-128, 127), "uint8": (0, 255)}
"""Full ranges of types that usually hold quantized values; tried before smaller ranges."""
LARGEST = {"int4": 7, "uint4": 15, "int2": 1, "uint2": 3}
"""Largest values of types that do not hold all integers in RANGES."""


def make(
    element_type: str,
    shape: tuple[int, ...],
    sample: int,
    integer_range: tuple[int, int],
    random: np.random.Generator,
) -> Array:
    """Return an array of random values.

    Args:
        element_type: the ONNX element type.
        shape: the shape.
        sample: index of the sample, which selects the distribution of floats.
        integer_range: range of integers, an item of RANGES.
        random: the generator.
    """
    values: Array
    if element_type == "string":
        values = random.choice(np.array(WORDS if integer_range == RANGES[0] else NUMERALS, object), shape)
    elif element_type == "bool":
        values = random.integers(0, 2, shape)
    elif "int" in element_type:
        values = random.integers(*_integer_limits(element_type, integer_range), shape, endpoint=True)
    elif element_type.startswith("complex"):
        values = _random_floats(shape, sample, random) + 1j * _random_floats(shape, sample, random)
    else:
        values = _random_floats(shape, sample, random)
    return np.asarray(values, dtype_of(element_type))


def _integer_limits(element_type: str, integer_range: tuple[int, int]) -> tuple[int, int]:
    if integer_range == RANGES[0] and element_type in BYTES:
        return BYTES[element_type]
    least, most = integer_range
    return least, min(most, LARGEST.get(element_type, most))


def _random_floats(shape: tuple[int, ...], sample: int, random: np.random.Generator) -> Array:
    """Return floats around 0, halves with zeros, ties and equal values, or large floats, in turn."""
    if sample % 3 == 1:
        return np.asarray(random.integers(-8, 8, shape, endpoint=True) / 2)
    return np.asarray(random.normal(0, 100 if sample % 3 else 1, shape))
