"""Bounds of the errors of pooling where onnxruntime differs from the definition."""

from __future__ import annotations

import math
from functools import reduce
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from support.conversion import refusal_of
from support.execution import Array, build, run

from opshift import convert_version
from opshift.adapters.ops.nn.pooling import ERRORS


class Pool(NamedTuple):
    """Attributes of a node with padding that depends on the size of the data."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    auto_pad: str
    sizes: tuple[int, ...]


POOLS = (
    Pool((3, 3), (1, 1), (2, 2), "SAME_UPPER", (350, 480)),
    Pool((2, 3), (2, 1), (3, 2), "SAME_LOWER", (350, 480)),
    Pool((3,), (1,), (4,), "SAME_UPPER", (90_000,)),
    Pool((5,), (2,), (2,), "SAME_LOWER", (90_001,)),
    Pool((1, 2), (3, 2), (1, 2), "SAME_UPPER", (200, 301)),
    Pool((2, 2, 2), (1, 2, 1), (2, 2, 2), "SAME_LOWER", (40, 61, 50)),
)

SPECIAL = (math.inf, -math.inf, math.nan)


def _data(shape: tuple[int, ...], dtype: type, largest: float, special: tuple[float, ...]) -> Array:
    """Return numbers with exponents of 2 up to the largest one, and some special values."""
    random = np.random.default_rng(0)
    magnitudes = 2.0 ** random.uniform(-largest, largest, shape)
    data: Array = (magnitudes * random.choice([-1, 1], shape)).astype(dtype)
    for each in special:
        data[random.random(shape) < 1e-4] = each
    return data


def _windows(data: Array, pool: Pool) -> tuple[Array, Array]:
    """Return the elements of each window along the first dimension, and where they are data."""
    longer = data[0, 0].astype(np.longdouble)
    indices, masks = [], []
    for size, kernel, stride, dilation in zip(
        pool.sizes, pool.kernel, pool.strides, pool.dilations, strict=True
    ):
        count = -(-size // stride)
        padding = max((count - 1) * stride + (kernel - 1) * dilation + 1 - size, 0)
        before = padding // 2 if pool.auto_pad == "SAME_UPPER" else padding - padding // 2
        index = np.arange(count)[:, None] * stride + np.arange(kernel) * dilation - before
        masks.append((index >= 0) & (index < size))
        indices.append(index.clip(0, size - 1))
    elements, inside = [], []
    for taps in product(*map(range, pool.kernel)):
        grid = np.ix_(*(index[:, tap] for index, tap in zip(indices, taps, strict=True)))
        elements.append(longer[grid][None, None])
        mask = reduce(np.logical_and.outer, (mask[:, tap] for mask, tap in zip(masks, taps, strict=True)))
        inside.append(np.broadcast_to(mask, elements[-1].shape))
    return np.stack(elements), np.stack(inside)


def _run(op_type: str, data: Array, pool: Pool, target: int, **attributes: int) -> Array:
    node = helper.make_node(
        op_type, ["x"], ["y"], kernel_shape=pool.kernel, strides=pool.strides, dilations=pool.dilations,
        auto_pad=pool.auto_pad, **attributes,
    )  # fmt: skip
    output = {"y": helper.np_dtype_to_tensor_dtype(data.dtype)}
    model = build([node], {"x": data}, output, 22)
    if target == 9:
        refusal = refusal_of(model, target)
        assert refusal.remedy == "pass --allow approximate (allow= in Python) if the model tolerates it"
        assert refusal.reason.endswith(f"the error is {ERRORS[op_type]}")
    result = convert_version(model, target, allow="approximate")
    # onnxruntime pools double in MaxPool only.
    is_slow = data.dtype == np.float64 and op_type != "MaxPool"
    found: Array = (
        ReferenceEvaluator(result).run(None, {"x": data}) if is_slow else run(result, {"x": data})
    )[0]
    return found


def _few_elements(pool: Pool) -> Pool:
    return pool._replace(sizes=tuple(12 + size % 7 for size in pool.sizes))


@pytest.mark.some_cases(3)
@pytest.mark.parametrize(
    ("dtype", "target"), [(np.float32, 7), (np.float32, 9), (np.float64, 9), (np.float16, 7)]
)
@pytest.mark.parametrize("pool", POOLS, ids=str)
def test_averages_have_a_bounded_error(pool: Pool, dtype: type, target: int) -> None:
    pool = _few_elements(pool) if dtype is np.float64 else pool
    # onnx.reference, which runs double, leaves NaN out of an average.
    special = SPECIAL[:2] if dtype is np.float64 else SPECIAL
    data = _data((1, 1, *pool.sizes), dtype, 7 if dtype is np.float16 else 60, special)
    elements, inside = _windows(data, pool)
    for counts_padding in (0, 1):
        found = _run("AveragePool", data, pool, target, count_include_pad=counts_padding)
        count = math.prod(pool.kernel)
        divisor = count if counts_padding else inside.sum(0)
        with np.errstate(all="ignore"):
            exact = np.where(inside, elements, 0).sum(0) / divisor
            mean = np.where(inside, abs(elements), 0).sum(0) / divisor
            unit = np.spacing(mean.astype(dtype)).astype(np.longdouble)
            is_finite = np.isfinite(mean)
            errors = abs(found.astype(np.longdouble) - exact)[is_finite] / unit[is_finite]
        assert np.all(errors <= 2 * (count + 2))
        np.testing.assert_array_equal(found[~is_finite], exact[~is_finite].astype(dtype))


@pytest.mark.some_cases(3)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("pool", POOLS, ids=str)
@pytest.mark.parametrize("exponent", [1, 2, 3])
def test_norms_have_a_bounded_error(pool: Pool, exponent: int, dtype: type) -> None:
    pool = _few_elements(pool) if dtype is np.float64 else pool
    largest, more = (120, 100) if dtype is np.float32 else (1000, 750)
    data = _data((1, 1, *pool.sizes), dtype, largest / exponent, SPECIAL[: 3 if dtype is np.float32 else 2])
    elements, inside = _windows(data, pool)
    found = _run("LpPool", data, pool, 9, p=exponent)
    count = math.prod(pool.kernel)
    with np.errstate(all="ignore"):
        total = (np.where(inside, abs(elements), 0) ** exponent).sum(0)
        exact = total ** (1 / np.longdouble(exponent))
        is_normal = np.isfinite(total.astype(dtype)) & (total >= np.finfo(dtype).tiny)
        unit = np.spacing(exact.astype(dtype)).astype(np.longdouble)
        errors = (abs(found.astype(np.longdouble) - exact) / unit)[is_normal]
    assert np.all(errors <= 2 * (count + 2) + (more if exponent > 2 else 0))
    is_special = ~np.isfinite(total)
    np.testing.assert_array_equal(found[is_special], exact[is_special].astype(dtype))


@pytest.mark.parametrize(("dtype", "target"), [(np.float32, 7), (np.float32, 9), (np.float64, 9)])
@pytest.mark.parametrize("pool", POOLS, ids=str)
def test_maxima_are_exact(pool: Pool, dtype: type, target: int) -> None:
    data = _data((1, 1, *pool.sizes), dtype, 60, (math.inf, -math.inf))
    elements, inside = _windows(data, pool)
    found = _run("MaxPool", data, pool, target)
    np.testing.assert_array_equal(found, np.where(inside, elements, -math.inf).max(0).astype(dtype))
