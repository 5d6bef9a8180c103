"""Det below opset 11."""

from __future__ import annotations

import numpy as np
import pytest
from support.conversion import refusal_of
from support.execution import Array, assert_equal, one_node_model, run

from opshift import convert_version


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_refuses_det_unless_approximate_is_allowed(size: int) -> None:
    data: Array = np.random.default_rng(size).standard_normal((2, 3, size, size)).astype(np.float32)
    model = one_node_model("Det", 11, np.float32, data)
    assert (
        refusal_of(model, 10).remedy
        == "pass --allow approximate (allow= in Python) if the model tolerates it"
    )
    result = convert_version(model, 7, allow="approximate")
    assert_equal(run(result, {"x0": data}), [np.linalg.det(data)], 1e-4)


def test_refuses_det_of_large_matrices() -> None:
    data: Array = np.ones((5, 5), np.float32)
    reason = refusal_of(one_node_model("Det", 11, np.float32, data), 10).reason
    assert reason == "the size of the matrices in 'x0' is 5, not between 1 and 4"
