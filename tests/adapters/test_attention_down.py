"""Attention in opsets before it came, and without the padding of 24 and the windows of 25."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from support.dynamic import symbolic
from support.running import Array, build, op_types

from opshift import convert_version
from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
INPUTS = ("Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen")
OUTPUTS = ("Y", "present_key", "present_value", "qk_matmul_output")
BATCH, HEADS, QUERIES, KEYS, SIZE, WIDTH = 2, 4, 3, 5, 8, 6
NUMBERS = np.random.default_rng(23)


def _random(*shape: int) -> Array:
    return NUMBERS.standard_normal(shape).astype(np.float32)


def _apart(heads: int = HEADS, keys: int = KEYS) -> dict[str, Array]:
    return {
        "Q": _random(BATCH, HEADS, QUERIES, SIZE),
        "K": _random(BATCH, heads, keys, SIZE),
        "V": _random(BATCH, heads, keys, WIDTH),
    }


def _packed(heads: int = HEADS) -> dict[str, Array]:
    return {
        "Q": _random(BATCH, QUERIES, HEADS * SIZE),
        "K": _random(BATCH, KEYS, heads * SIZE),
        "V": _random(BATCH, KEYS, heads * WIDTH),
    }


def _past(heads: int = HEADS, length: int = 4) -> dict[str, Array]:
    return {
        "past_key": _random(BATCH, heads, length, SIZE),
        "past_value": _random(BATCH, heads, length, WIDTH),
    }


def _kept(*shape: int) -> dict[str, Array]:
    """A mask of which one query may see no key."""
    kept = NUMBERS.random(shape) > 0.4
    kept[..., 0] = True
    kept[..., -1, :] = False
    return {"attn_mask": kept}


def _model(
    feeds: dict[str, Array],
    opset: int = 23,
    outputs: int = 1,
    kind: int = TensorProto.FLOAT,
    **attributes: Any,
) -> onnx.ModelProto:
    last = max(INPUTS.index(name) for name in feeds)
    inputs = [name if name in feeds else "" for name in INPUTS[: last + 1]]
    named = dict.fromkeys(OUTPUTS[:outputs], kind)
    node = helper.make_node("Attention", inputs, list(named), name="node", **attributes)
    return build([node], feeds, named, opset, ir_version=10)


def _expected(model: onnx.ModelProto, feeds: dict[str, Array]) -> list[Array]:
    """The definition's numbers: onnxruntime is behind it in what a mask with no key gives."""
    return list(ReferenceEvaluator(model).run(None, feeds))


SHARED = {"q_num_heads": HEADS, "kv_num_heads": 2}
ALONE = {"q_num_heads": HEADS, "kv_num_heads": HEADS}
CASES = [
    pytest.param(_apart(), {}, 1, id="heads apart"),
    pytest.param(_packed(), ALONE, 1, id="heads packed"),
    pytest.param(_apart(2), {}, 1, id="heads apart, keys shared"),
    pytest.param(_packed(2), SHARED, 1, id="heads packed, keys shared"),
    pytest.param(_apart(1), {}, 1, id="one head of keys for all"),
    pytest.param(_apart(), {"scale": 0.3}, 1, id="scale stated"),
    pytest.param(_apart(), {"softcap": 0.5}, 1, id="scores capped"),
    pytest.param(_apart(), {"is_causal": 1}, 1, id="causal"),
    pytest.param(_apart(2) | _past(2), {"is_causal": 1}, 3, id="causal after past keys"),
    pytest.param(_apart() | {"attn_mask": _random(QUERIES, KEYS)}, {}, 1, id="mask of numbers"),
    pytest.param(_apart() | {"attn_mask": _random(HEADS, 1, KEYS)}, {}, 1, id="one for each head"),
    pytest.param(_apart() | _kept(QUERIES, KEYS), {}, 1, id="boolean mask"),
    pytest.param(_apart() | _kept(BATCH, 1, QUERIES, KEYS), {"is_causal": 1}, 1, id="one for each sample"),
    pytest.param(_packed() | _kept(QUERIES, 9) | _past(), ALONE, 3, id="heads packed, mask, past keys"),
    pytest.param(_apart(), {"softmax_precision": TensorProto.DOUBLE}, 1, id="softmax in double"),
    *(
        pytest.param(
            _apart() | _kept(QUERIES, KEYS),
            {"qk_matmul_output_mode": mode, "softcap": 0.7 if mode else 0.0},
            4,
            id=f"scores are an output, mode {mode}",
        )
        for mode in range(4)
    ),
]


@pytest.mark.parametrize(("feeds", "attributes", "outputs"), CASES)
def test_two_products(
    feeds: dict[str, Array], attributes: dict[str, Any], outputs: int, converted: Converted
) -> None:
    model = _model(feeds, 23, outputs, **attributes)
    for target in (7, 13, 22):
        result = converted(model, target, feeds, _expected(model, feeds))
        assert op_types(result).count("MatMul") == 2


@pytest.mark.parametrize(("feeds", "attributes", "outputs"), CASES)
def test_lengths_need_not_be_known(
    feeds: dict[str, Array], attributes: dict[str, Any], outputs: int, converted: Converted
) -> None:
    model = symbolic(_model(feeds, 23, outputs, **attributes))
    for value in model.graph.input:
        if len(value.type.tensor_type.shape.dim) == 4 and value.name in ("Q", "K", "V"):
            value.type.tensor_type.shape.dim[1].dim_value = feeds[value.name].shape[1]
    for target in (9, 22):
        converted(model, target, feeds, _expected(model, feeds))


def test_without_a_mask_softmax_stays_one_node() -> None:
    assert op_types(convert_version(_model(_apart()), 22)) == [
        *("Transpose", "Mul", "Mul", "MatMul", "Softmax", "MatMul"),
    ]


def test_float16(converted: Converted) -> None:
    feeds = {name: array.astype(np.float16) for name, array in _apart().items()} | _kept(QUERIES, KEYS)
    model = _model(feeds, kind=TensorProto.FLOAT16)
    for target in (9, 22):
        converted(model, target, feeds, _expected(model, feeds), tolerance=5e-3)


LENGTHS = {"nonpad_kv_seqlen": np.array([2, 5], np.int64)}
LATER = [
    pytest.param(24, LENGTHS, {}, id="padding"),
    pytest.param(24, LENGTHS, {"is_causal": 1}, id="padding, causal"),
    pytest.param(24, LENGTHS | _kept(QUERIES, KEYS), {"is_causal": 1}, id="padding, causal, boolean mask"),
    pytest.param(
        24, LENGTHS | {"attn_mask": _random(1, 1, QUERIES, KEYS)}, {}, id="padding, mask of numbers"
    ),
    pytest.param(24, _kept(QUERIES, KEYS - 2), {}, id="fewer columns than keys"),
    pytest.param(24, {"attn_mask": _random(QUERIES, KEYS - 1)}, {"is_causal": 1}, id="fewer, of numbers"),
    pytest.param(25, {}, {"left_window_size": 1}, id="window before the query"),
    pytest.param(25, {}, {"right_window_size": 0}, id="window after the query"),
    pytest.param(25, {}, {"left_window_size": 0, "right_window_size": 1}, id="windows on both sides"),
    pytest.param(25, {}, {"left_window_size": 2, "is_causal": 1}, id="window, causal"),
    pytest.param(25, _past(), {"left_window_size": 3, "right_window_size": 1}, id="windows after past keys"),
    pytest.param(25, LENGTHS, {"left_window_size": 1, "is_causal": 1}, id="window, padding, causal"),
    pytest.param(25, _kept(QUERIES, KEYS), {"left_window_size": 2}, id="window, boolean mask"),
    pytest.param(25, _kept(QUERIES, KEYS - 1), {"left_window_size": 2}, id="window, fewer columns"),
]


@pytest.mark.parametrize("is_stated", [True, False], ids=["lengths stated", "lengths not stated"])
@pytest.mark.parametrize(("opset", "added", "attributes"), LATER)
def test_padding_and_windows_become_a_mask(
    opset: int, added: dict[str, Array], attributes: dict[str, Any], is_stated: bool, converted: Converted
) -> None:
    feeds = _apart() | added
    outputs = 3 if "past_key" in feeds else 1
    model = _model(feeds, opset, outputs, **attributes)
    if not is_stated:
        symbolic(model)
        for value in model.graph.input[:3]:
            value.type.tensor_type.shape.dim[1].dim_value = HEADS
    expected = _expected(model, feeds)
    for target in range(23, opset):
        assert "Attention" in op_types(convert_version(model, target))
    for target in (11, 22) if not is_stated else (7, 22):
        converted(model, target, feeds, expected)


def test_what_is_not_used_changes_nothing() -> None:
    model = _model(_apart() | _kept(QUERIES, KEYS), 25, left_window_size=-1, is_causal=1)
    result = convert_version(model, 23)
    assert [each.name for each in result.graph.node[0].attribute] == ["is_causal"]
    assert op_types(result) == ["Attention"]


def _mixed() -> onnx.ModelProto:
    feeds = _apart()
    feeds["V"] = feeds["V"].astype(np.float16)
    return _model(feeds)


REFUSED = [
    pytest.param(
        _mixed(), 22, "Q and V are float and float16, but MatMul requires a single type", id="types"
    ),
    pytest.param(_model(_packed()), 22, "the number of heads of 'Q' is unknown", id="number of heads"),
    pytest.param(
        _model(_apart(), scale=-1.0),
        22,
        "scale is -1.0, but its square root multiplies queries and keys",
        id="scale",
    ),
    pytest.param(
        _model(_apart() | {"attn_mask": _random(QUERIES, 1)}, 24),
        23,
        "attn_mask may have one column, which can apply to the first key only or to every key",
        id="one column",
    ),
]


@pytest.mark.parametrize(("model", "target", "reason"), REFUSED)
def test_refused(model: onnx.ModelProto, target: int, reason: str, refusal: Callable[..., Refusal]) -> None:
    assert refusal(model, target).reason == reason
