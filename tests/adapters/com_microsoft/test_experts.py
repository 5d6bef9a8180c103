"""MoE and QMoE of com.microsoft compute the same as standard operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.com_microsoft import NodeCase, assert_replaced, case, model_of, without_microsoft
from support.forms import RANKED_FORMS

from opshift import ConversionRefused

if TYPE_CHECKING:
    from support.execution import Array

TOKENS, HIDDEN, INNER, EXPERTS = 5, 32, 16, 4
GATED: dict[str, Any] = {"activation_type": "swiglu", "swiglu_fusion": 1}
BOUNDED: dict[str, Any] = {**GATED, "activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 0.7}


def _inputs(lead: tuple[int, ...], width: int, bias: bool, element_type: Any) -> list[Array | None]:
    """Return data, scores of the router, and the biases of both layers."""
    random = np.random.default_rng(width)
    shapes = [(*lead, HIDDEN), (int(np.prod(lead)), EXPERTS), (EXPERTS, width), (EXPERTS, HIDDEN)]
    arrays = [random.normal(size=shape).astype(element_type) for shape in shapes]
    return [*arrays[:2], *(arrays[2:] if bias else [None, None])]


def _experts(*, lead: tuple[int, ...] = (TOKENS,), bias: bool = True, **attributes: Any) -> NodeCase:
    width = INNER * (1 + ("swiglu" in attributes.get("activation_type", "")))
    data, scores, bias_1, bias_2 = _inputs(lead, width, bias, np.float32)
    random = np.random.default_rng(1)
    weights_1 = random.normal(size=(EXPERTS, width, HIDDEN)).astype(np.float32)
    weights_2 = random.normal(size=(EXPERTS, HIDDEN, INNER)).astype(np.float32)
    inputs = [data, scores, weights_1, bias_1, weights_2, bias_2]
    return case("MoE", *inputs, **{"k": 2, **attributes})


def _packed(
    columns: int, rows: int, bits: int, block: int, zeros: bool, element_type: Any
) -> tuple[Array, Array, Array | None]:
    """Return weights, scales and zero points of a layer."""
    random = np.random.default_rng(columns + bits)
    weights = random.integers(0, 256, (EXPERTS, columns, rows * bits // 8)).astype(np.uint8)
    blocks = rows // block if block else 0
    scales = random.uniform(0.005, 0.05, (EXPERTS, columns, blocks) if block else (EXPERTS, columns))
    packed = (EXPERTS, columns, -(-blocks * bits // 8)) if block else (EXPERTS, -(-columns * bits // 8))
    zero_points = random.integers(0, 256, packed).astype(np.uint8) if zeros else None
    return weights, scales.astype(element_type), zero_points


def _quantized(
    *,
    bits: int = 4,
    block: int = 0,
    zeros: bool = False,
    bias: bool = True,
    element_type: Any = np.float32,
    **attributes: Any,
) -> NodeCase:
    width = INNER * (1 + ("swiglu" in attributes.get("activation_type", "")))
    data, scores, bias_1, bias_2 = _inputs((TOKENS,), width, bias, element_type)
    weights_1, scales_1, zeros_1 = _packed(width, HIDDEN, bits, block, zeros, element_type)
    weights_2, scales_2, zeros_2 = _packed(HIDDEN, INNER, bits, block, zeros, element_type)
    inputs = [data, scores, weights_1, scales_1, bias_1, weights_2, scales_2, bias_2]
    if zeros:
        inputs += [None, None, None, zeros_1, zeros_2]
    if block:
        attributes["block_size"] = block
    defaults = {"k": 2, "normalize_routing_weights": 1, "expert_weight_bits": bits}
    return case("QMoE", *inputs, **{**defaults, **attributes})


CASES = {
    "plain": _experts(),
    "one expert": _experts(k=1),
    "all experts": _experts(k=4, normalize_routing_weights=1),
    "normalized": _experts(normalize_routing_weights=1),
    "no bias": _experts(bias=False),
    "silu": _experts(activation_type="silu"),
    "gelu": _experts(activation_type="gelu"),
    "identity": _experts(activation_type="identity"),
    "gated": _experts(**GATED),
    "gated, bounded": _experts(**BOUNDED),
    "batch": _experts(lead=(1, TOKENS)),
    "4 bits": _quantized(),
    "2 bits": _quantized(bits=2),
    "8 bits": _quantized(bits=8),
    "zero points": _quantized(zeros=True),
    "8 bits, zero points": _quantized(bits=8, zeros=True),
    "blocks": _quantized(block=16),
    "blocks, zero points": _quantized(block=16, zeros=True),
    "2 bits, blocks, zero points": _quantized(bits=2, block=16, zeros=True),
    "quantized without bias": _quantized(bias=False, activation_type="silu"),
    "quantized gated": _quantized(**BOUNDED),
    "half": _quantized(element_type=np.float16, activation_type="gelu"),
}


@pytest.mark.parametrize("form", RANKED_FORMS)
@pytest.mark.parametrize("name", CASES)
def test_equals_the_kernel(name: str, form: str) -> None:
    given = CASES[name]
    if form == "symbolic" and given.op_type == "QMoE":
        pytest.skip("the sizes of quantized weights are necessary")
    half = given.outputs[0] == np.float16
    assert_replaced(given, form, tolerance=2e-2 if half else 2e-4)


@pytest.mark.parametrize("opset", [11, 13, 21, 25])
def test_equals_the_kernel_at_other_opsets(opset: int) -> None:
    for name in ("gated, bounded", "blocks, zero points"):
        assert_replaced(CASES[name], opset=opset, tolerance=2e-4)


REFUSED = {
    "use_sparse_mixer is 1": _experts(use_sparse_mixer=1),
    "swiglu_fusion is 2": _experts(activation_type="swiglu", swiglu_fusion=2),
    "the activation 'tanh' is not defined": _experts(activation_type="tanh"),
    "weights of a third layer": _experts()._replace(inputs=[*_experts().inputs, _experts().inputs[2]]),
    "normalize_routing_weights is 0": _quantized(normalize_routing_weights=0),
    "other layouts are specific to one kernel": _quantized(quant_type="fp8"),
    "the size of packed numbers is 3 bits, expected 2, 4 or 8": _quantized(expert_weight_bits=3),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_refuses_what_the_kernel_lacks(reason: str) -> None:
    with pytest.raises(ConversionRefused, match=reason):
        without_microsoft(model_of(REFUSED[reason])[0], 17)


def test_ignores_infinite_results_of_other_experts() -> None:
    given = _experts(k=1)
    inputs = [np.array(each) for each in given.inputs]
    inputs[1][:] = [9, 0, 0, 0]
    inputs[4][1] = np.inf
    assert_replaced(given._replace(inputs=inputs), tolerance=2e-4)
