"""Nodes that onnxruntime or onnx.reference computes wrongly, so that random chains must not contain them."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from support.execution import run

from comparison.reference_faults import is_invalid
from random_graphs.execution import NoRuntime, run_in_reference


@pytest.mark.parametrize(
    ("node", "sizes", "expected"),
    [
        ("y = Gemm <beta = 0.5> (a, b, c)", (2, 0, 3), np.full((2, 3), 0.5)),
        ("y = Gemm (a, b, c)", (2, 0, 3), np.ones((2, 3))),
        ("y = Gemm <beta = 0.5> (a, b, c)", (2, 1, 3), np.full((2, 3), 1.5)),
        ("y = ReduceLogSumExp <axes = [-1]> (a)", (2, 0, 3), np.full((2, 1), -np.inf)),
        ("y = ReduceLogSumExp <axes = [1]> (a)", (2, 0, 3), np.full((2, 1), -np.inf)),
        ("y = ReduceSum (a, k)", (2, 0, 3), np.zeros((2, 1))),
    ],
)
def test_finds_data_without_elements_that_onnxruntime_computes_wrongly(
    node: str, sizes: tuple[int, int, int], expected: np.ndarray
) -> None:
    rows, inner, columns = sizes
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 13]>'
        f"g (float[M, K] a, float[K, N] b, float c, int64[1] k) => (float[P, Q] y) {{ {node} }}"
    )
    values = {
        "a": np.ones((rows, inner), np.float32),
        "b": np.ones((inner, columns), np.float32),
        "c": np.array(1, np.float32),
        "k": np.array([-1]),
    }
    feeds: dict[str, np.ndarray] = {each.name: values[each.name] for each in model.graph.input}
    (found,) = run(model, feeds)
    is_equal = found.shape == expected.shape and np.array_equal(found, expected)
    assert is_invalid(model.graph.node[0], feeds) == (not is_equal)


def test_does_not_use_lrn_of_the_reference() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 16]>'
        "g (float[1, 2, 1, 1] x) => (float[1, 2, 1, 1] y) { y = LRN <size = 1, alpha = 1.0> (x) }"
    )
    feeds = {"x": np.full((1, 2, 1, 1), 3, np.float32)}
    np.testing.assert_allclose(run(model, feeds)[0].ravel(), [3 / 10**0.75] * 2, rtol=1e-6)
    with pytest.raises(NoRuntime, match="LRN"):
        run_in_reference(model, feeds)
