"""Lists of indices in every opset: NonZero, MaxPool, RNNs or a Loop compute them."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from support.conversion import convert_and_check
from support.execution import Array, op_types, run

SIZES = [(0,), (1,), (3,), (1023,), (1024,), (2050,), (0, 3), (3, 0), (2, 1500)]


@pytest.mark.parametrize("target", [7, 8, 10])
@pytest.mark.parametrize("size", SIZES)
def test_selects_elements_by_position(size: tuple[int, ...], target: int) -> None:
    """Where below opset 9 gathers from positions, which keeps infinity, NaN, and the sign of zero."""
    dims = ",".join("MN"[: len(size)])
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 12]>
        main (bool[{dims}] c, float[{dims}] a, float[{dims}] b) => (float[{dims}] y) {{
            y = Where (c, a, b)
        }}"""
    )
    random = np.random.default_rng(0)
    first, second = random.normal(size=(2, *size)).astype(np.float32)
    for values, special in ((first, [np.nan, -np.inf, -0.0]), (second, [np.inf, np.nan, -0.0])):
        count = min(values.size, 3)
        values.flat[:count] = special[:count]
    feeds = {"c": random.integers(0, 2, size).astype(bool), "a": first, "b": second}
    convert_and_check(model, target, feeds, [np.where(feeds["c"], first, second)])


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("order", ["k, b", "b, k", "k, row", "row, k"])
@pytest.mark.parametrize("dims", ["M, 3", "M, N", "2, 3"])
@pytest.mark.parametrize("size", [(2, 3), (0, 3)])
def test_selects_a_number_or_an_element(size: tuple[int, int], dims: str, order: str, target: int) -> None:
    if dims == "2, 3" and size[0] != 2:
        pytest.skip("the data has the declared size")
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 12]>
        main (bool[{dims}] c, float[{dims}] b, float[{dims[-1]}] row) => (float[{dims}] y)
        <float k = {{-0.0}}> {{ y = Where (c, {order}) }}"""
    )
    random = np.random.default_rng(0)
    values = random.normal(size=size).astype(np.float32)
    values.flat[: min(values.size, 3)] = np.array([np.nan, -np.inf, 0.0])[: min(values.size, 3)]
    feeds: dict[str, Array] = {
        "c": np.asarray(random.integers(0, 2, size).astype(bool)),
        "b": values,
        "row": np.array([np.inf, np.nan, 1], np.float32),
    }
    known = {**feeds, "k": np.array(-0.0, np.float32)}
    first, second = (known[name] for name in order.split(", "))
    expected = np.where(feeds["c"], first, second)
    result = convert_and_check(model, target, feeds, [expected])
    (found,) = run(result, feeds)
    assert (np.signbit(found) == np.signbit(expected))[~np.isnan(expected)].all()
    assert "Expand" not in op_types(result) or order in ("k, row", "row, k") or dims != "2, 3"


@pytest.mark.parametrize(
    ("target", "expected"),
    [(7, "If"), (8, "MaxPool"), (9, "NonZero"), (10, "NonZero"), (11, "Range")],
)
@pytest.mark.parametrize("limit", [-3, 0, 1, 5, 2000])
def test_lists_a_range(limit: int, target: int, expected: str) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 12]>
        main (int64 n) => (int64[N] y) <int64 zero = {0}, int64 one = {1}> { y = Range (zero, n, one) }"""
    )
    result = convert_and_check(model, target, {"n": np.array(limit)}, [np.arange(limit)])
    assert expected in op_types(result)
