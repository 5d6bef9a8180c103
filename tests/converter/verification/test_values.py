"""Values of every type."""

from __future__ import annotations

import numpy as np
import pytest

from opshift.converter.verification.arrays import EXTENDED, PLAIN, element_type_of
from opshift.converter.verification.values import RANGES, make
from opshift.registry.element_types import BY_NAME


@pytest.mark.parametrize("element_type", BY_NAME)
def test_every_element_type_has_values(element_type: str) -> None:
    assert element_type in {**PLAIN, **EXTENDED}
    for sample in range(3):
        for whole in RANGES:
            found = make(element_type, (3, 4), sample, whole, np.random.default_rng(sample))
            assert element_type_of(found) == element_type
            assert found.shape == (3, 4)


@pytest.mark.parametrize(
    ("element_type", "whole", "low", "high"),
    [
        pytest.param("int64", RANGES[0], 0, 9, id="indices of a small table"),
        pytest.param("int32", (0, 1), 0, 1, id="flags"),
        pytest.param("int64", (1, 4), 1, 4, id="sizes"),
        pytest.param("int64", (0, 0), 0, 0, id="zeros"),
        pytest.param("uint8", RANGES[0], 0, 255, id="quantized numbers"),
        pytest.param("int8", RANGES[0], -128, 127, id="signed quantized numbers"),
        pytest.param("uint8", (0, 1), 0, 1, id="flags of a byte"),
        pytest.param("int4", RANGES[0], 0, 7, id="four bits"),
        pytest.param("uint2", RANGES[0], 0, 3, id="two bits"),
    ],
)
def test_integers_stay_within_limits(element_type: str, whole: tuple[int, int], low: int, high: int) -> None:
    found = make(element_type, (5000,), 0, whole, np.random.default_rng(0)).astype(np.int64)
    assert (found.min(), found.max()) == (low, high)


def test_samples_are_of_three_kinds() -> None:
    normal, halves, large = (make("float", (999,), i, RANGES[0], np.random.default_rng(i)) for i in range(3))
    assert abs(float(normal.std()) - 1) < 0.1
    assert set(np.unique(halves * 2)) == set(range(-8, 9))
    assert abs(float(large.std()) - 100) < 10
