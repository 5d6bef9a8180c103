"""Random values of every element type."""

from __future__ import annotations

import numpy as np
import pytest

from opshift.analysis.verification.inputs import INTEGER_RANGES, generate_values
from opshift.analysis.verification.numpy_types import ML_DTYPES_TYPES, NUMPY_TYPES
from opshift.analysis.verification.numpy_types import array_element_type as element_type_of
from opshift.model.element_types import BY_NAME


@pytest.mark.parametrize("element_type", BY_NAME)
def test_generates_values_of_every_element_type(element_type: str) -> None:
    assert element_type in {**NUMPY_TYPES, **ML_DTYPES_TYPES}
    for sample in range(3):
        for integer_range in INTEGER_RANGES:
            values = generate_values(
                element_type, (3, 4), sample, integer_range, np.random.default_rng(sample)
            )
            assert element_type_of(values) == element_type
            assert values.shape == (3, 4)


@pytest.mark.parametrize(
    ("element_type", "integer_range", "minimum", "maximum"),
    [
        pytest.param("int64", INTEGER_RANGES[0], 0, 9, id="indices of a small dimension"),
        pytest.param("int32", (0, 1), 0, 1, id="flags"),
        pytest.param("int64", (1, 4), 1, 4, id="sizes"),
        pytest.param("int64", (0, 0), 0, 0, id="zeros"),
        pytest.param("uint8", INTEGER_RANGES[0], 0, 255, id="quantized numbers"),
        pytest.param("int8", INTEGER_RANGES[0], -128, 127, id="signed quantized numbers"),
        pytest.param("uint8", (0, 1), 0, 1, id="flags in a byte"),
        pytest.param("int4", INTEGER_RANGES[0], 0, 7, id="4-bit integers"),
        pytest.param("uint2", INTEGER_RANGES[0], 0, 3, id="2-bit integers"),
    ],
)
def test_integers_stay_in_range(
    element_type: str, integer_range: tuple[int, int], minimum: int, maximum: int
) -> None:
    values = generate_values(element_type, (5000,), 0, integer_range, np.random.default_rng(0)).astype(
        np.int64
    )
    assert (values.min(), values.max()) == (minimum, maximum)


def test_samples_have_three_distributions() -> None:
    normal, halves, large = (
        generate_values("float", (999,), i, INTEGER_RANGES[0], np.random.default_rng(i)) for i in range(3)
    )
    assert abs(float(normal.std()) - 1) < 0.1
    assert set(np.unique(halves * 2)) == set(range(-8, 9))
    assert abs(float(large.std()) - 100) < 10
