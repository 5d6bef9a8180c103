"""Attention at opset 24, which pads narrow masks, and at opset 25, which restricts heads and caches."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.inliner import inline_selected_functions
from support.conversion import refusal_of
from support.execution import Array, assert_equal, build, op_types, run_reference

from opshift import check, convert_version

INPUTS = ("Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen")
BATCH, HEADS, QUERIES, KEYS, SIZE = 2, 2, 3, 4, 8
RANDOM = np.random.default_rng(24)


def _random(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def _inputs(keys: int = KEYS, /, **others: Array) -> dict[str, Array]:
    sizes = {"Q": QUERIES, "K": keys, "V": keys}
    return {name: _random(BATCH, HEADS, size, SIZE) for name, size in sizes.items()} | others


def _packed(**others: Array) -> dict[str, Array]:
    sizes = {"Q": QUERIES, "K": KEYS, "V": KEYS}
    return {name: _random(BATCH, size, HEADS * SIZE) for name, size in sizes.items()} | others


def _past(length: int = 2) -> dict[str, Array]:
    return {name: _random(BATCH, HEADS, length, SIZE) for name in ("past_key", "past_value")}


def _model(
    feeds: dict[str, Array],
    opset: int,
    outputs: tuple[str, ...] = ("Y",),
    dims: dict[str, tuple[int | str, ...] | None] | None = None,
    **attributes: Any,
) -> onnx.ModelProto:
    """Return a model with one node; `dims` replaces the declared shapes of some inputs."""
    last = max(INPUTS.index(name) for name in feeds)
    inputs = [name if name in feeds else "" for name in INPUTS[: last + 1]]
    node = helper.make_node("Attention", inputs, outputs, name="node", **attributes)
    model = build([node], feeds, [name for name in outputs if name], opset, ir_version=11)
    for value in model.graph.input:
        if value.name in (dims or {}):
            element_type = value.type.tensor_type.elem_type
            value.CopyFrom(helper.make_tensor_value_info(value.name, element_type, (dims or {})[value.name]))
    return model


def _run_body(model: onnx.ModelProto, feeds: dict[str, Array]) -> list[Array]:
    """Run the function body of ONNX: onnx.reference pads narrow masks at opset 23, too."""
    inlined = inline_selected_functions(model, [("", "Attention")], False, inline_schema_functions=True)
    return run_reference(inlined, feeds)


PAST = ("Y", "present_key", "present_value")
KEY_COUNT = ("Shape", "Gather")
DIMS: dict[str, tuple[int | str, ...] | None] = {
    "K": (BATCH, HEADS, "S", SIZE),
    "V": (BATCH, HEADS, "S", SIZE),
}


@pytest.mark.parametrize(
    ("feeds", "dims", "added"),
    [
        (_inputs(attn_mask=_random(QUERIES, 1)), {}, ["Expand"]),
        (_inputs(attn_mask=RANDOM.random((BATCH, 1, QUERIES, 1)) > 0.5), {}, ["Expand"]),
        (_inputs(attn_mask=_random(QUERIES, 1)), DIMS, [*KEY_COUNT, "Expand"]),
        (_inputs(attn_mask=_random(QUERIES, 1)), {"attn_mask": ("L", "M")}, ["Expand"]),
        (_inputs(attn_mask=_random(QUERIES, 1)), {"attn_mask": None}, ["Expand"]),
        (_inputs(attn_mask=_random(QUERIES, 1)), {"K": None, "attn_mask": None}, [*KEY_COUNT, "Expand"]),
        (_inputs(attn_mask=_random(QUERIES, 1), **_past()), {}, ["Expand"]),
        (_inputs(), DIMS, []),
        (_inputs(**_past()), {}, []),
        (_inputs(attn_mask=_random(QUERIES, KEYS)), {}, []),
        (_inputs(attn_mask=_random(QUERIES, KEYS)), DIMS, []),
        (_inputs(attn_mask=_random(QUERIES, KEYS)), {**DIMS, "attn_mask": ("L", "S")}, []),
        (_inputs(attn_mask=_random(QUERIES, KEYS + 2), **_past()), {}, []),
        (_inputs(1, attn_mask=_random(QUERIES, 1)), {}, []),
        (_inputs(1, attn_mask=_random(QUERIES, 1)), {"attn_mask": ("L", "M")}, []),
    ],
    ids=[
        "float", "boolean", "symbolic keys", "symbolic columns", "mask of unknown rank",
        "keys of unknown rank", "past keys", "no mask", "past keys without mask",
        "column per key", "column per symbolic key", "symbols", "column per past key", "one key",
        "one key, symbolic columns",
    ],
)  # fmt: skip
def test_expands_masks_with_one_column(
    feeds: dict[str, Array], dims: dict[str, tuple[int | str, ...] | None], added: list[str]
) -> None:
    model = _model(feeds, 23, PAST if "past_key" in feeds else ("Y",), dims)
    result = convert_version(model, 24)
    assert op_types(result) == [*added, "Attention"]
    if not added:
        assert result.graph.node == model.graph.node
    if "attn_mask" in feeds:
        assert_equal(_run_body(result, feeds), _run_body(model, feeds))


def test_masks_of_other_nodes_do_not_change_with_a_similar_node() -> None:
    """The rewrite cache distinguishes nodes by the shapes of keys and mask."""
    feeds = _inputs(wide=_random(QUERIES, KEYS), narrow=_random(QUERIES, 1))
    nodes = [
        helper.make_node("Attention", ["Q", "K", "V", mask], [f"y{index}"])
        for index, mask in enumerate(("wide", "narrow", "wide", "narrow"))
    ]
    model = build(nodes, feeds, ["y0", "y1", "y2", "y3"], 23, ir_version=11)
    result = convert_version(model, 24)
    assert op_types(result) == ["Attention", "Expand", "Attention", "Attention", "Expand", "Attention"]
    assert_equal(_run_body(result, feeds), _run_body(model, feeds))


LENGTHS = np.array([2, 4], np.int64)


CACHES: dict[str, tuple[dict[str, Array], tuple[str, ...], dict[str, Any]]] = {
    "head counts": (_inputs(), ("Y",), {"q_num_heads": HEADS, "kv_num_heads": HEADS}),
    "one head count": (_inputs(), ("Y",), {"q_num_heads": HEADS, "is_causal": 1}),
    "head counts of packed inputs": (_packed(), ("Y",), {"q_num_heads": HEADS, "kv_num_heads": HEADS}),
    "keys cached": (_inputs(**_past()), ("Y", "present_key"), {}),
    "values cached": (_inputs(**_past()), ("Y", "", "present_value", "scores"), {}),
    "values cached without past": (_inputs(), ("Y", "", "present_value"), {}),
    "unchanged": (_inputs(**_past()), PAST, {}),
}
CACHES_OF_24: dict[str, tuple[dict[str, Array], tuple[str, ...], dict[str, Any]]] = {
    "lengths and caches": (_inputs(nonpad_kv_seqlen=LENGTHS), PAST, {}),
    "lengths, keys cached and scores": (
        _inputs(nonpad_kv_seqlen=LENGTHS), ("Y", "present_key", "", "scores"), {"is_causal": 1},
    ),
    "lengths and caches of packed inputs": (
        _packed(nonpad_kv_seqlen=LENGTHS), PAST, {"q_num_heads": HEADS, "kv_num_heads": HEADS},
    ),
}  # fmt: skip
"""Cases with the input `nonpad_kv_seqlen`, which opset 24 adds."""


@pytest.mark.parametrize(
    ("opset", "case"),
    [*((opset, each) for opset in (23, 24) for each in CACHES), *((24, each) for each in CACHES_OF_24)],
)
def test_meets_rules_of_opset_25(opset: int, case: str) -> None:
    feeds, outputs, attributes = (CACHES | CACHES_OF_24)[case]
    model = _model(feeds, opset, outputs, **attributes)
    result = convert_version(model, 25)
    assert_equal(run_reference(result, feeds), run_reference(model, feeds))
    assert not [each for each in check(result) if each.rule.startswith("node")]
    for value in result.graph.output:
        value.type.tensor_type.ClearField("shape")
    onnx.shape_inference.infer_shapes(result, check_type=True, strict_mode=True)


@pytest.mark.parametrize(
    ("feeds", "reason"),
    [
        (_inputs(past_key=_past()["past_key"]), "one of past_key and past_value is absent: past_value"),
        (
            _inputs(nonpad_kv_seqlen=LENGTHS, **_past()),
            "nonpad_kv_seqlen is combined with past_key and past_value",
        ),
    ],
)
def test_refuses_invalid_caches(feeds: dict[str, Array], reason: str) -> None:
    assert refusal_of(_model(feeds, 24), 25).reason == reason


NODES_25 = {
    "head counts of 4-D inputs": (_inputs(), ("Y",), {"q_num_heads": HEADS}, "rank(Q) is 4"),
    "only keys cached": (_inputs(), ("Y", "present_key"), {}, "present(present_value) is false"),
    "only past keys": (_inputs(past_key=_past()["past_key"]), ("Y",), {}, "present(past_value) is false"),
    "lengths and caches": (_inputs(nonpad_kv_seqlen=LENGTHS), PAST, {}, "present(present_key) is true"),
    "lengths and past": (
        _inputs(nonpad_kv_seqlen=LENGTHS, **_past()), ("Y",), {}, "present(past_key) is true",
    ),
    "valid caches": (_inputs(**_past()), PAST, {}, ""),
}  # fmt: skip


@pytest.mark.parametrize(("feeds", "outputs", "attributes", "reason"), NODES_25.values(), ids=NODES_25)
def test_check_reports_nodes_that_onnx_refuses(
    feeds: dict[str, Array], outputs: tuple[str, ...], attributes: dict[str, Any], reason: str
) -> None:
    model = _model(feeds, 25, outputs, **attributes)
    found = [each.reason for each in check(model) if each.rule == "node.requires"]
    assert [reason in each for each in found] == ([True] if reason else [])
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except onnx.shape_inference.InferenceError:
        assert reason
    else:
        assert not reason


def test_check_distinguishes_nodes_by_their_outputs() -> None:
    feeds = _inputs()
    nodes = [helper.make_node("Attention", ["Q", "K", "V"], ["a", "", "", "b"])]
    nodes += [helper.make_node("Attention", ["Q", "K", "V"], ["c", "d", "", "e"])]
    model = build(nodes, feeds, dict.fromkeys("abcde", TensorProto.FLOAT), 25, ir_version=13)
    (found,) = (each for each in check(model) if each.rule == "node.requires")
    assert "d" in found.place
