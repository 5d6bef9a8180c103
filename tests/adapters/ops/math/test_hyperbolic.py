"""Hyperbolic functions and Erf below opset 9, where they are approximate."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from support.conversion import refusal_of
from support.execution import Array, assert_equal, one_node_model, run

from opshift import convert_version


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("op_type", "low", "high", "function"),
    [
        pytest.param("Sinh", -5, 5, np.sinh, id="hyperbolic sine"),
        pytest.param("Cosh", -5, 5, np.cosh, id="hyperbolic cosine"),
        pytest.param("Asinh", -50, 50, np.arcsinh, id="inverse hyperbolic sine"),
        pytest.param("Acosh", 1, 50, np.arccosh, id="inverse hyperbolic cosine"),
        pytest.param("Atanh", -0.99, 0.99, np.arctanh, id="inverse hyperbolic tangent"),
        pytest.param("Erf", -4, 4, np.vectorize(math.erf), id="error function"),
    ],
)
def test_refuses_inexact_functions_unless_approximate_is_allowed(
    op_type: str, low: float, high: float, function: Callable[[Array], Array], dtype: type
) -> None:
    data: Array = np.linspace(low, high, 41).astype(dtype)
    model = one_node_model(op_type, 9, dtype, data)
    assert (
        refusal_of(model, 8).remedy == "pass --allow approximate (allow= in Python) if the model tolerates it"
    )
    result = convert_version(model, 7, allow="approximate")
    assert_equal(run(result, {"x0": data}), [function(data).astype(dtype)])
