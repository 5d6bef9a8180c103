"""Operators of com.microsoft on sequences compute the same as standard operators, or are refused."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.com_microsoft import DOMAIN, NodeCase, assert_replaced, case, model_of, without_microsoft
from support.forms import FORMS, RANKED_FORMS

from opshift import ConversionRefused, default_registry

if TYPE_CHECKING:
    from support.execution import Array

f = np.float32


def _floats(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(f)


def _repeats(size: int, length: int) -> NodeCase:
    tokens = np.random.default_rng(size * length).integers(0, 3, (4, length))
    return case("NGramRepeatBlock", tokens, _floats(4, 6), outputs=[f], ngram_size=size)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("size", "length"), [(1, 1), (1, 4), (2, 1), (2, 6), (3, 2), (3, 3), (3, 9), (4, 2)])
def test_excluded_tokens_equal_those_of_the_kernel(size: int, length: int, form: str) -> None:
    assert_replaced(_repeats(size, length), form)


@pytest.mark.parametrize("opset", [9, 11, 13, 25])
def test_excluded_tokens_equal_those_of_the_kernel_at_other_opsets(opset: int) -> None:
    assert_replaced(_repeats(3, 9), opset=opset)


def test_refuses_an_empty_sequence_size() -> None:
    with pytest.raises(ConversionRefused, match="ngram_size"):
        without_microsoft(model_of(_repeats(0, 4))[0], 17)


CONVOLUTIONS = {
    f"{activation}, bias {bias}, past {past}": case(
        "CausalConvWithState",
        _floats(2, 4, 6),
        _floats(4, 1, 3),
        _floats(4) if bias else None,
        _floats(2, 4, 2) if past else None,
        outputs=[f, f],
        activation=activation,
    )
    for activation, bias, past in product(("none", "silu", "swish"), (False, True), (False, True))
}
CHANNELS_LAST = {
    f"channels last, past {past}": case(
        "CausalConvWithState",
        _floats(2, 6, 4),
        _floats(4, 1, 3),
        _floats(4),
        _floats(2, 2, 4) if past else None,
        outputs=[f, f],
        channels_last=1,
    )
    for past in (False, True)
}
ATTENTIONS = {
    f"{rule}, past {past}": case(
        "LinearAttention",
        _floats(2, 5, 16),
        _floats(2, 5, 8),
        _floats(2, 5, 12),
        _floats(2, 2, 4, 6) if past else None,
        -abs(_floats(2, 5, 2)) if "gated" in rule else None,
        abs(_floats(2, 5, 2)) if "delta" in rule else None,
        outputs=[f, f],
        q_num_heads=4,
        kv_num_heads=2,
        update_rule=rule,
    )
    for rule, past in product(("linear", "gated", "delta", "gated_delta"), (False, True))
}
STATES = CONVOLUTIONS | CHANNELS_LAST | ATTENTIONS


@pytest.mark.parametrize("form", [form for form in RANKED_FORMS if form != "symbolic"])
@pytest.mark.parametrize("name", STATES)
def test_results_with_states_equal_those_of_the_kernel(name: str, form: str) -> None:
    assert_replaced(STATES[name], form, tolerance=5e-5)


def test_states_become_the_operator_of_onnx_where_the_target_has_it() -> None:
    for given in (CONVOLUTIONS["silu, bias True, past True"], ATTENTIONS["gated_delta, past True"]):
        result = without_microsoft(model_of(given)[0], 27)
        assert [(node.op_type, node.domain) for node in result.graph.node] == [(given.op_type, "")]


@pytest.mark.parametrize(("name", "value"), [("dilation", 2), ("ndim", 2), ("state_window", 4)])
def test_refuses_attributes_that_onnx_lacks(name: str, value: int) -> None:
    given = CONVOLUTIONS["none, bias True, past True"]
    changed = given._replace(attributes={**given.attributes, name: value})
    with pytest.raises(ConversionRefused, match=f"{name} is {value}"):
        without_microsoft(model_of(changed)[0], 17)


REFUSED = {
    "BeamSearch": "no conversion of a search",
    "DecoderMaskedMultiHeadAttention": "updates a cache in place",
    "GatedRelativePositionBias": "computes the gates",
    "GreedySearch": "no conversion of a search",
    "LongformerAttention": "global tokens",
    "PackedAttention": "without padding",
    "PackedMultiHeadAttention": "without padding",
    "PagedAttention": "blocks of a cache in place",
    "RelativePositionBias": "rounding of one kernel",
    "RemovePadding": "without padding",
    "RestorePadding": "without padding",
    "Sampling": "cannot be reproduced",
    "SparseAttention": "lists of blocks",
}


@pytest.mark.parametrize("op_type", REFUSED)
def test_refuses_with_a_reason_and_a_remedy(op_type: str) -> None:
    operator = default_registry().get_schema(op_type, 1, DOMAIN)
    attributes: dict[str, Any] = {
        name: helper.make_graph([], "g", [], []) if attribute.type == "GRAPH" else 1
        for name, attribute in operator.attributes.items()
        if attribute.required
    }
    names = [each.name for each in operator.inputs]
    node = helper.make_node(op_type, names, ["y"], domain=DOMAIN, **attributes)
    inputs = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in names]
    outputs = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)]
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    model = helper.make_model(helper.make_graph([node], "test", inputs, outputs), opset_imports=imports)
    with pytest.raises(ConversionRefused, match=REFUSED[op_type]) as refused:
        without_microsoft(model, 17)
    assert refused.value.refusals[0].remedy
