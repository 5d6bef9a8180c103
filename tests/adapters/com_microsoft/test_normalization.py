"""Normalizations of com.microsoft compute the same as standard operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.com_microsoft import NodeCase, assert_replaced, case, model_of, without_microsoft
from support.forms import FORMS, RANKED_FORMS

from opshift import ConversionRefused

if TYPE_CHECKING:
    from support.execution import Array

f = np.float32


def _floats(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(f)


X, SKIP = _floats(2, 3, 8), _floats(2, 3, 8, seed=1)
GAMMA, BETA, BIAS = _floats(8, seed=2), _floats(8, seed=3), _floats(8, seed=4)
SUM: list[Any] = [f, None, None, f]
NORMALIZATIONS = {
    "skip": case("SkipLayerNormalization", X, SKIP, GAMMA),
    "skip beta": case("SkipLayerNormalization", X, SKIP, GAMMA, BETA, epsilon=0.01),
    "skip bias": case("SkipLayerNormalization", X, SKIP, GAMMA, None, BIAS),
    "skip beta bias sum": case("SkipLayerNormalization", X, SKIP, GAMMA, BETA, BIAS, outputs=SUM),
    "skip broadcast": case("SkipLayerNormalization", X, SKIP[0], GAMMA, BETA),
    "skip broadcast 1": case("SkipLayerNormalization", X, SKIP[:1], GAMMA, BETA),
    "skip rank 2": case("SkipLayerNormalization", X[0], SKIP[0], GAMMA, BETA),
    "rms": case("SkipSimplifiedLayerNormalization", X, SKIP, GAMMA),
    "rms bias sum": case("SkipSimplifiedLayerNormalization", X, SKIP, GAMMA, BIAS, outputs=SUM, epsilon=1e-6),
    "rms rank 2": case("SkipSimplifiedLayerNormalization", X[0], SKIP[0], GAMMA),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_equals_the_kernel(name: str, form: str) -> None:
    for opset in (11, 17, 23):
        assert_replaced(NORMALIZATIONS[name], form, opset)


@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_equals_the_kernel_in_float16(name: str) -> None:
    given = NORMALIZATIONS[name]
    inputs = [None if each is None else each.astype(np.float16) for each in given.inputs]
    outputs = [None if each is None else np.float16 for each in given.outputs]
    for opset in (13, 17, 23):
        assert_replaced(given._replace(inputs=inputs, outputs=outputs), opset=opset, tolerance=1e-2)


def test_refuses_statistics_of_rms() -> None:
    given = case("SkipSimplifiedLayerNormalization", X, SKIP, GAMMA, outputs=[f, None, f])
    with pytest.raises(ConversionRefused) as caught:
        without_microsoft(model_of(given)[0], 17)
    (refusal,) = caught.value.refusals
    assert "inv_std_var is used" in refusal.reason
    assert "omit the output" in refusal.remedy


WORDS = np.array([[1, 4, 2, 0], [3, 3, 1, 2]], np.int32)
SEGMENTS, MASK = (
    np.array([[0, 0, 1, 1], [1, 0, 1, 0]], np.int32),
    np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32),
)
TABLES = _floats(5, 8, seed=5), _floats(9, 8, seed=6), _floats(2, 8, seed=7)
POSITIONS = np.array([[3, 2, 1, 0], [0, 5, 8, 2]], np.int32)
ID = np.int32
EMBEDDINGS = {
    "all": case("EmbedLayerNormalization", WORDS, SEGMENTS, *TABLES, GAMMA, BETA, MASK, outputs=[f, ID, f]),
    "no segments": case(
        "EmbedLayerNormalization", WORDS, None, *TABLES[:2], None, GAMMA, BETA, MASK, outputs=[f, ID]
    ),
    "mask of other numbers": case(
        "EmbedLayerNormalization", WORDS, None, *TABLES[:2], None, GAMMA, BETA, 3 * MASK - SEGMENTS,
        outputs=[f, ID],
    ),
    "no mask": case("EmbedLayerNormalization", WORDS, SEGMENTS, *TABLES, GAMMA, BETA, outputs=[f, ID]),
    "positions": case(
        "EmbedLayerNormalization", WORDS, SEGMENTS, *TABLES, GAMMA, BETA, None, POSITIONS, outputs=[f, ID, f]
    ),
    "one row of positions": case(
        "EmbedLayerNormalization", WORDS, SEGMENTS, *TABLES, GAMMA, BETA, None, POSITIONS[:1],
        outputs=[f, ID], epsilon=0.01,
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", ["fed", "initializer", "computed", "branch"])  # others fail in onnxruntime
@pytest.mark.parametrize("name", EMBEDDINGS)
def test_embeddings_equal_the_kernel(name: str, form: str) -> None:
    for opset in (11, 17):
        assert_replaced(EMBEDDINGS[name], form, opset)


def _group_norm(x: Array, groups: int, gamma: Array, beta: Array, silu: bool, epsilon: float) -> Any:
    """Normalize images with channels last, in double."""
    batch, height, width, channels = x.shape
    parts = x.astype(float).reshape(batch, height, width, groups, channels // groups)
    mean, variance = (statistic(parts, axis=(1, 2, 4), keepdims=True) for statistic in (np.mean, np.var))
    result = ((parts - mean) / np.sqrt(variance + epsilon)).reshape(x.shape) * gamma + beta
    return result / (1 + np.exp(-result)) if silu else result


def _group_norm_cases(element_type: Any, parameter_type: Any) -> Sequence[tuple[NodeCase, list[Array]]]:
    x, skip = (_floats(2, 3, 4, 8, seed=seed).astype(element_type) for seed in (0, 1))
    gamma, beta, bias = (each.astype(parameter_type) for each in (GAMMA, BETA, BIAS))
    bias = bias.astype(element_type)
    row = skip[:, 0, 0]
    cases = []
    for activation in (0, 1):
        settings: dict[str, Any] = {"groups": 4, "activation": activation, "epsilon": 1e-4}
        plain = _group_norm(x, 4, gamma, beta, bool(activation), 1e-4)
        cases.append((case("GroupNorm", x, gamma, beta, **settings), [plain]))
        first = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
        cases.append(
            (
                case("GroupNorm", first, gamma, beta, channels_last=0, **settings),
                [plain.transpose(0, 3, 1, 2)],
            )
        )
        for added in (skip, row, row[:, None, None]):
            total = x + (added[:, None, None] if added.ndim == 2 else added) + bias
            result = _group_norm(total, 4, gamma, beta, bool(activation), 1e-4)
            given = case("SkipGroupNorm", x, gamma, beta, added, bias, outputs=[element_type] * 2, **settings)
            cases.append((given, [result, total]))
        total = (x + row[:, None, None] + bias).transpose(0, 3, 1, 2)
        result = _group_norm(total.transpose(0, 2, 3, 1), 4, gamma, beta, bool(activation), 1e-4)
        given = case(
            "SkipGroupNorm",
            first,
            gamma,
            beta,
            row,
            bias,
            outputs=[element_type] * 2,
            channels_last=0,
            **settings,
        )
        cases.append((given, [result.transpose(0, 3, 1, 2), total]))
    return cases


@pytest.mark.some_cases(2)
@pytest.mark.parametrize(
    ("element_type", "parameter_type"),
    [(np.float32, np.float32), (np.float16, np.float32), (np.float16, np.float16), (np.float32, np.float16)],
)
def test_group_norm_equals_its_formula(element_type: Any, parameter_type: Any) -> None:
    exact = element_type is parameter_type is np.float32
    for given, expected in _group_norm_cases(element_type, parameter_type):
        arrays = [each.astype(element_type) for each in expected]
        for form, opset in (("fed", 17), ("symbolic", 13), ("initializer", 21)):
            assert_replaced(given, form, opset, expected=arrays, tolerance=1e-4 if exact else 2e-2)


def test_refuses_unknown_activation() -> None:
    given = case("GroupNorm", _floats(2, 3, 4, 8), GAMMA, BETA, groups=2, activation=2)
    with pytest.raises(ConversionRefused, match="activation is 2, expected 0 or 1"):
        without_microsoft(model_of(given)[0], 17)


@pytest.mark.parametrize("form", RANKED_FORMS)
def test_normalizes_a_sum_of_float16_that_is_not_rounded(form: str) -> None:
    """The rounded sums of a row are all 100, and have no difference from their mean."""
    data = np.full((2, 3, 4), 100, np.float16)
    skip = np.random.default_rng(5).normal(scale=0.01, size=data.shape).astype(np.float16)
    gamma, beta = np.ones((2, 4), np.float16)
    for outputs in ([np.float16], [np.float16, np.float32, np.float32, np.float16]):
        given = case("SkipLayerNormalization", data, skip, gamma, beta, outputs=outputs, epsilon=1e-12)
        assert_replaced(given, form, 17)


LARGE, OTHERS = np.full((1, 4), 60000, np.float16), np.array([[60000, 3, 4, 5]], np.float16)
ONES, NO_OFFSET = np.ones(4, np.float16), np.zeros(4, np.float16)
LARGE_SUMS = {
    "skip": case("SkipLayerNormalization", LARGE, OTHERS, ONES),
    "rms": case("SkipSimplifiedLayerNormalization", LARGE, OTHERS, ONES),
    "rms sum": case(
        "SkipSimplifiedLayerNormalization", LARGE, OTHERS, ONES, outputs=[np.float16, None, None, np.float16]
    ),
    "embedding": case(
        "EmbedLayerNormalization", np.zeros((1, 1), np.int32), None, LARGE, OTHERS, None, ONES, NO_OFFSET,
        outputs=[np.float16, ID, np.float16],
    ),
}  # fmt: skip


@pytest.mark.parametrize("opset", [13, 17, 23])
@pytest.mark.parametrize("name", LARGE_SUMS)
def test_normalizes_a_sum_that_exceeds_float16(name: str, opset: int) -> None:
    assert_replaced(LARGE_SUMS[name], opset=opset, tolerance=1e-3)
