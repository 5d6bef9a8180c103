"""Random nodes of com.microsoft, of which `tools/compare_contrib.py` compares many more."""

from __future__ import annotations

from pathlib import Path

import pytest

from comparison.compare import KERNELS, OPERATORS, case_at, run_case
from comparison.kernel_faults import KERNEL_FAULTS
from comparison.sampler import GENERATORS, Sample, Sampler
from opshift import default_registry
from opshift.registry.models import OperatorVersion

DOCS = Path(__file__).parents[3] / "docs" / "conversions.md"

SAMPLES = 400
"""Number of samples that cover every choice of a generator."""

REFUSED_ATTRIBUTES = {
    "Attention": {"do_rotary", "past_present_share_buffer", "rotary_embedding_dim"},
    "FusedMatMulActivation": {"activation_axis", "activation_gamma"},
    "FusedGemm": {"activation_gamma"},
    "GroupQueryAttention": {
        "causal", "k_quant_type", "kv_cache_bit_width", "sliding_window_cache", "v_quant_type",
    },
    "MoE": {"use_sparse_mixer"},
    "QAttention": {"do_rotary", "past_present_share_buffer"},
    "QMoE": {
        "accuracy_level", "fc1_expert_weight_bits", "fc2_expert_weight_bits", "fc3_expert_weight_bits",
        "quant_type", "use_sparse_mixer", "weights_prepacked",
    },
    "RotaryEmbedding": {"is_packed_batching"},
}  # fmt: skip
"""Attributes that the kernel for the CPU or the conversion refuses, unless they have their default."""

REFUSED_INPUTS = {
    "Attention": {"past_sequence_length"},
    "GroupQueryAttention": {"k_scale", "v_scale"},
    "MoE": {"fc3_experts_weights", "fc3_experts_bias"},
    "MultiHeadAttention": {"past_sequence_length", "cache_indirection"},
    "QMoE": {
        "fc3_experts_weights", "fc3_scales", "fc3_experts_bias", "fc3_zero_points", "router_weights",
        "fc1_global_scale", "fc2_global_scale", "fc1_act_scale", "fc2_act_scale", "fc1_act_block_scale",
        "fc2_act_block_scale",
    },
}  # fmt: skip
"""Optional inputs that the kernel for the CPU or the conversion refuses."""


def _convertible() -> list[OperatorVersion]:
    """Return the operators of com.microsoft that other operators express."""
    registry = default_registry()
    names = sorted({each.name for each in registry.operators("com.microsoft")})
    versions = [registry.at(name, 1, "com.microsoft") for name in names]
    return [each for each in versions if each and each.before in ("adapter", "body")]


def _samples(op_type: str) -> list[Sample]:
    return [GENERATORS[op_type](Sampler((1, index)), op_type) for index in range(SAMPLES)]


def test_every_convertible_operator_has_a_generator() -> None:
    assert {each.name for each in _convertible()} == set(OPERATORS)


@pytest.mark.parametrize("version", _convertible(), ids=lambda version: version.name)
def test_generators_vary_all_that_definitions_offer(version: OperatorVersion) -> None:
    samples = _samples(version.name)
    for name, attribute in version.attributes.items():
        is_set = {name in each.attributes for each in samples}
        if name not in REFUSED_ATTRIBUTES.get(version.name, ()):
            assert True in is_set, name
            assert attribute.required or False in is_set or version.name == "Rfft", name
    for position, parameter in enumerate(version.inputs):
        given = {len(each.inputs) > position and each.inputs[position] is not None for each in samples}
        if parameter.name not in REFUSED_INPUTS.get(version.name, ()):
            assert True in given, parameter.name
    for position, parameter in enumerate(version.outputs):
        assert any(len(each.outputs) > position and each.outputs[position] for each in samples), (
            parameter.name
        )


@pytest.mark.parametrize("op_type", sorted(KERNELS))
def test_standard_operators_equal_the_kernel(op_type: str) -> None:
    first = OPERATORS.index(op_type)
    outcomes = [run_case(case_at(0, first + len(OPERATORS) * turn)) for turn in range(5)]
    assert [each for each in outcomes if each.kind == "wrong"] == []


@pytest.mark.parametrize("fault", KERNEL_FAULTS, ids=lambda fault: fault.reason)
def test_faults_of_kernels_are_documented(fault: object) -> None:
    text = " ".join(DOCS.read_text().split())
    assert str(getattr(fault, "reason", "")) in text


def test_rounding_of_inputs_may_change_results_as_much() -> None:
    """Scores of -2434 and more are sums of terms that cancel, so float16 has few exact digits of them."""
    assert run_case(case_at(9863, 20164)).kind == "unstable"
