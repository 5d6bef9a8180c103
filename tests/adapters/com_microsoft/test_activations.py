"""Activations and fused products of com.microsoft compute the same as standard operators."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.com_microsoft import NodeCase, assert_replaced, case, model_of, without_microsoft
from support.execution import assert_equal, run, run_reference
from support.forms import FORMS, RANKED_FORMS

from opshift import ConversionRefused

if TYPE_CHECKING:
    from support.execution import Array

f = np.float32


def _floats(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape, scale=2).astype(f)


X, BIAS = _floats(3, 4, 6), _floats(6, seed=1)
ACTIVATIONS = {
    "Gelu": case("Gelu", X),
    "FastGelu": case("FastGelu", X),
    "FastGelu with bias": case("FastGelu", X, BIAS),
    "QuickGelu": case("QuickGelu", X),
    "QuickGelu with alpha": case("QuickGelu", X, alpha=-0.7),
    "BiasGelu": case("BiasGelu", X, BIAS),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_equal_the_kernel(name: str, form: str) -> None:
    for opset in (9, 13, 17, 24):
        assert_replaced(ACTIVATIONS[name], form, opset)


def _gelu(x: Array) -> Any:
    return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2


def _fast_gelu(x: Array) -> Any:
    return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


@pytest.mark.parametrize("element_type", [np.float32, np.float16])
def test_operators_without_a_kernel_equal_their_formula(element_type: Any) -> None:
    x, skip = X.astype(element_type), _floats(3, 4, 6, seed=2).astype(element_type)
    bias, weight = BIAS.astype(element_type), _floats(6, 5, seed=3).astype(element_type)
    wide, total = x.astype(float), x.astype(float) + bias
    dropped = np.array([True])[0]
    cases: list[tuple[NodeCase, Array]] = [
        (case("BiasAdd", x, bias, skip), total + skip),
        (case("BiasSplitGelu", x, bias), total[..., :3] * _gelu(total[..., 3:])),
        (case("BiasDropout", x, bias, skip), total + skip),
        (case("BiasDropout", x, bias, None, element_type(0.5), ~dropped), total),
        (case("GemmFastGelu", x, weight, bias[:5]), _fast_gelu(wide @ weight + bias[:5])),
        (case("GemmFastGelu", x, weight), _fast_gelu(wide @ weight)),
        (case("FusedMatMulActivation", x, weight, activation="Relu", alpha=0.5),
         np.maximum(wide @ weight / 2, 0)),
        (case("FusedMatMulActivation", x, weight, activation="LeakyRelu", activation_alpha=0.5),
         np.where(wide @ weight > 0, wide @ weight, wide @ weight / 2)),
    ]  # fmt: skip
    for given, expected in cases:
        for opset in (13, 17, 21):
            tolerance = 1e-5 if element_type is np.float32 else 2e-2
            assert_replaced(given, opset=opset, expected=[expected.astype(element_type)], tolerance=tolerance)


def test_dropout_keeps_its_mask_and_seed() -> None:
    given = case("BiasDropout", X, BIAS, X, f(0.5), np.array(True), outputs=[f, bool], seed=7)
    model, _ = model_of(given)
    (dropout,) = [each for each in without_microsoft(model, 17).graph.node if each.op_type == "Dropout"]
    assert dropout.output[1] == "y1"
    assert {each.name: each.i for each in dropout.attribute} == {"seed": 7}


def _matmul_cases() -> Iterator[Any]:
    for element_type in (np.float32, np.float64):
        a, b = _floats(2, 3, 4, 5).astype(element_type), _floats(2, 3, 5, 6).astype(element_type)
        kind = np.dtype(element_type).name
        yield f"{kind} plain", (a, b), {}
        yield f"{kind} alpha", (a, b), {"alpha": 0.3}
        yield f"{kind} transA", (a.swapaxes(2, 3), b), {"transA": 1, "alpha": 2.0}
        yield f"{kind} transB", (a, b.swapaxes(2, 3)), {"transB": 1}
        yield f"{kind} batchA", (a.transpose(2, 0, 1, 3), b), {"transBatchA": 1}
        yield f"{kind} batchB", (a, b.transpose(2, 0, 1, 3)), {"transBatchB": 1}
        yield f"{kind} both", (a.transpose(3, 0, 1, 2), b.transpose(3, 0, 1, 2)), {
            "transBatchA": 1, "transA": 1, "transBatchB": 1, "transB": 1, "alpha": -1.5,
        }  # fmt: skip
        yield f"{kind} matrix", (a, b[0, 0].T), {"transB": 1}
        yield f"{kind} vector", (a[0, 0, 0], b[0, 0]), {"transA": 1}


@pytest.mark.parametrize(("name", "operands", "attributes"), list(_matmul_cases()))
def test_fused_matmul_equals_the_kernel(name: str, operands: Any, attributes: Any) -> None:
    arrays = [np.ascontiguousarray(each) for each in operands]
    for form in ("fed", "initializer", "symbolic"):
        assert_replaced(case("FusedMatMul", *arrays, **attributes), form)
    if "float32" in name and "transBatch" not in str(attributes):
        assert_replaced(case("TransposeMatMul", *arrays, **attributes), opset=9)


def test_matmul_without_transposition_needs_no_rank() -> None:
    assert_replaced(case("FusedMatMul", X, _floats(6, 5), alpha=0.5), "no shapes", 9)


@pytest.mark.parametrize("form", RANKED_FORMS)
def test_matmul_in_forms(form: str) -> None:
    assert_replaced(case("FusedMatMul", X, _floats(5, 6), transB=1, alpha=0.5), form, 11)


def test_matmul_rounds_after_the_factor() -> None:
    """The product exceeds float16, the result does not. onnxruntime computes in float: run onnx.reference."""
    given = case("FusedMatMul", *np.full((2, 64, 64), 100, np.float16), alpha=0.05)
    model, feeds = model_of(given)
    assert_equal(run_reference(without_microsoft(model, 17), feeds), run(model, feeds), 1e-3)


FUSABLE: dict[str, dict[str, float]] = {
    "Relu": {}, "Sigmoid": {}, "Tanh": {}, "Softplus": {}, "Softsign": {},
    "LeakyRelu": {"alpha": 0.2}, "Elu": {"alpha": 0.7}, "HardSigmoid": {"alpha": 0.3, "beta": 0.4},
    "Selu": {"alpha": 1.3, "gamma": 0.9}, "ThresholdedRelu": {"alpha": 0.6},
}  # fmt: skip


@pytest.mark.parametrize("activation", FUSABLE)
def test_fused_gemm_equals_the_kernel(activation: str) -> None:
    a, b, c = _floats(5, 3), _floats(5, 4, seed=1), _floats(4, seed=2)
    attributes: dict[str, Any] = {f"activation_{name}": value for name, value in FUSABLE[activation].items()}
    attributes["activation"] = activation
    given = case("FusedGemm", a, b, c, transA=1, alpha=0.5, beta=2.0, **attributes)
    for form, opset in (("fed", 17), ("no shapes", 9), ("function", 13), ("initializer", 21)):
        assert_replaced(given, form, opset)


CONV_PARAMETERS: dict[str, list[float]] = {
    "": [], "Relu": [], "Sigmoid": [], "Tanh": [], "LeakyRelu": [0.2], "HardSigmoid": [0.3, 0.4],
    "Clip": [-0.5, 1.5],
}  # fmt: skip


@pytest.mark.parametrize("activation", CONV_PARAMETERS)
@pytest.mark.parametrize("residual", [False, True])
def test_fused_conv_equals_the_kernel(activation: str, residual: bool) -> None:
    x, w, b = _floats(2, 4, 7, 8), _floats(6, 2, 3, 3, seed=1), _floats(6, seed=2)
    z = _floats(2, 6, 4, 4, seed=3) if residual else None
    attributes: dict[str, Any] = {"activation": activation} if activation else {}
    if CONV_PARAMETERS[activation]:
        attributes["activation_params"] = CONV_PARAMETERS[activation]
    inputs = [x, w, b, z] if residual else [x, w, b]
    given = case("FusedConv", *inputs, group=2, strides=[2, 2], pads=[1, 1, 1, 1], **attributes)
    for form, opset in (("fed", 17), ("initializer", 9), ("symbolic", 13), ("branch", 22)):
        assert_replaced(given, form, opset)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (case("FusedGemm", X[0], X[0].T, activation="Swirl"), "computes the activation 'Swirl'"),
        (case("FusedGemm", X[0], X[0].T, activation="Relu", activation_alpha=2.0),
         "parameters ['alpha'] of the activation 'Relu'"),
        (case("FusedConv", X, _floats(2, 4, 3), activation="Clip", activation_params=[1.0]),
         "Clip has 2 parameters, and activation_params has 1"),
    ],
)  # fmt: skip
def test_refuses_unknown_activations(given: NodeCase, reason: str) -> None:
    with pytest.raises(ConversionRefused) as caught:
        without_microsoft(model_of(given)[0], 17)
    (refusal,) = caught.value.refusals
    assert reason in refusal.reason
