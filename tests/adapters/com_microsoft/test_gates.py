"""Gates and activations of com.microsoft, and operators with a function body."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.com_microsoft import assert_replaced, case, model_of, without_microsoft
from support.forms import FORMS

import opshift

RANDOM = np.random.default_rng(7)
TYPES = {"float": np.float32, "float16": np.float16}
TOLERANCES = {"float": 1e-5, "float16": 2e-3}


def _data(shape: tuple[int, ...], element_type: str = "float") -> Any:
    return RANDOM.normal(size=shape).astype(TYPES[element_type])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scale", [None, np.float32(0.7)], ids=["attribute", "input"])
@pytest.mark.parametrize("opset", [13, 21])
def test_scaled_silu(scale: Any, form: str, opset: int) -> None:
    assert_replaced(case("ScaledSiLU", _data((2, 3)), scale, alpha=1.5), form, opset)


def test_scaled_silu_rounds_each_step() -> None:
    assert_replaced(case("ScaledSiLU", _data((40,), "float16"), alpha=1.7), tolerance=2e-3)


@pytest.mark.parametrize("element_type", TYPES)
@pytest.mark.parametrize("activation", ["silu", "swish", "sigmoid", ""])
@pytest.mark.parametrize("groups", [1, 3])
def test_gated_rms_norm(activation: str, groups: int, element_type: str) -> None:
    data, gate = (_data((2, 3, groups * 4), element_type) for _ in range(2))
    settings = {"activation": activation} if activation else {}
    given = case("GatedRMSNorm", data, _data((4,), element_type), gate, epsilon=0.01, **settings)
    assert_replaced(given, tolerance=TOLERANCES[element_type])


@pytest.mark.parametrize("form", FORMS)
def test_gated_rms_norm_in_forms(form: str) -> None:
    assert_replaced(case("GatedRMSNorm", _data((2, 8)), _data((4,)), _data((2, 8))), form, 13)


def test_gated_rms_norm_without_epsilon() -> None:
    """The squares are as small as the default of `epsilon`."""
    assert_replaced(case("GatedRMSNorm", _data((2, 8)) * np.float32(0.003), _data((4,)), _data((2, 8))))


@pytest.mark.parametrize("element_type", TYPES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rate", [False, True])
def test_linear_attention_gate(rate: bool, element_type: str, form: str) -> None:
    dtype = TYPES[element_type]
    inputs = [_data((2, 3, 4), element_type), _data((4,)), _data((4,))]
    inputs += [_data((2, 3, 4), element_type)] if rate else []
    given = case("LinearAttentionGate", *inputs, outputs=[dtype] * (2 if rate else 1))
    assert_replaced(given, form, tolerance=TOLERANCES[element_type])


@pytest.mark.parametrize("axis", [1, 2, 3, -1])
@pytest.mark.parametrize("opset", [11, 13, 21])
def test_bias_softmax(axis: int, opset: int) -> None:
    data, bias = _data((2, 3, 4, 5)), _data((2, 1, 1, 5))
    total = data + bias
    flat = total.reshape(*total.shape[: axis % 4], -1)
    powers = np.exp(flat - flat.max(-1, keepdims=True))
    expected = (powers / powers.sum(-1, keepdims=True)).reshape(total.shape)
    given = case("BiasSoftmax", data, bias, axis=axis, is_inner_broadcast=1)
    assert_replaced(given, opset=opset, expected=[expected])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("opset", [12, 21])
def test_gather_nd(form: str, opset: int) -> None:
    positions = np.array([[0, 1], [1, 2]], np.int32)
    assert_replaced(case("GatherND", _data((2, 3, 4)), positions), form, opset)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("opset", [7, 21])
def test_gated_add(form: str, opset: int) -> None:
    assert_replaced(case("GatedAdd", _data((2, 3)), _data((2, 3)), _data((2, 1))), form, opset)


def test_sample_op_is_an_identity() -> None:
    assert_replaced(case("SampleOp", _data((2, 3))))


REFUSALS = {
    "MurmurHash3": (case("MurmurHash3", np.arange(3), outputs=[np.uint32]), "hash"),
    "Tokenizer": (
        case("Tokenizer", np.array(["a b"]), mark=0, mincharnum=1, pad_value="", separators=[" "]),
        "regular expressions",
    ),
    "CDist": (case("CDist", _data((2, 3)), _data((4, 3))), "no conversion"),
}


@pytest.mark.parametrize("op_type", REFUSALS)
def test_refuses_with_a_reason_and_a_remedy(op_type: str) -> None:
    given, reason = REFUSALS[op_type]
    with pytest.raises(opshift.ConversionRefused) as caught:
        without_microsoft(model_of(given)[0], 17)
    (refusal,) = caught.value.refusals
    assert reason in refusal.reason
    assert "keep the domain com.microsoft" in refusal.remedy
