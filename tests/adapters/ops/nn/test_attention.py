"""Expansion of Attention below opset 23, and rewrites of padding (opset 24) and windows (opset 25)."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from support.conversion import convert_and_check, refusal_of
from support.dynamic import with_symbolic_dims
from support.execution import Array, assert_equal, build, op_types, run, run_reference
from support.forms import RANKED_FORMS, in_form

from opshift import convert_version

INPUTS = ("Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen")
OUTPUTS = ("Y", "present_key", "present_value", "qk_matmul_output")
BATCH, HEADS, QUERIES, KEYS, HEAD_SIZE, VALUE_SIZE = 2, 4, 3, 5, 8, 6
RANDOM = np.random.default_rng(23)


def _random(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def _inputs_4d(heads: int = HEADS, keys: int = KEYS) -> dict[str, Array]:
    return {
        "Q": _random(BATCH, HEADS, QUERIES, HEAD_SIZE),
        "K": _random(BATCH, heads, keys, HEAD_SIZE),
        "V": _random(BATCH, heads, keys, VALUE_SIZE),
    }


def _inputs_3d(heads: int = HEADS) -> dict[str, Array]:
    return {
        "Q": _random(BATCH, QUERIES, HEADS * HEAD_SIZE),
        "K": _random(BATCH, KEYS, heads * HEAD_SIZE),
        "V": _random(BATCH, KEYS, heads * VALUE_SIZE),
    }


def _past(heads: int = HEADS, length: int = 4) -> dict[str, Array]:
    return {
        "past_key": _random(BATCH, heads, length, HEAD_SIZE),
        "past_value": _random(BATCH, heads, length, VALUE_SIZE),
    }


def _boolean_mask(*shape: int) -> dict[str, Array]:
    """Return a random mask that excludes every key for the last query."""
    mask = RANDOM.random(shape) > 0.4
    mask[..., 0] = True
    mask[..., -1, :] = False
    return {"attn_mask": mask}


def _model(
    feeds: dict[str, Array],
    opset: int = 23,
    outputs: int = 1,
    element_type: int = TensorProto.FLOAT,
    **attributes: Any,
) -> onnx.ModelProto:
    last = max(INPUTS.index(name) for name in feeds)
    inputs = [name if name in feeds else "" for name in INPUTS[: last + 1]]
    output_types = dict.fromkeys(OUTPUTS[:outputs], element_type)
    node = helper.make_node("Attention", inputs, list(output_types), name="node", **attributes)
    return build([node], feeds, output_types, opset, ir_version=10)


def _expected(model: onnx.ModelProto, feeds: dict[str, Array]) -> list[Array]:
    """Run onnx.reference, because onnxruntime differs for masks without any key."""
    return list(ReferenceEvaluator(model).run(None, feeds))


GROUPED_HEADS = {"q_num_heads": HEADS, "kv_num_heads": 2}
EQUAL_HEADS = {"q_num_heads": HEADS, "kv_num_heads": HEADS}
CASES = [
    pytest.param(_inputs_4d(), {}, 1, id="4-D inputs"),
    pytest.param(_inputs_3d(), EQUAL_HEADS, 1, id="3-D inputs"),
    pytest.param(_inputs_4d(2), {}, 1, id="4-D inputs, grouped queries"),
    pytest.param(_inputs_3d(2), GROUPED_HEADS, 1, id="3-D inputs, grouped queries"),
    pytest.param(_inputs_4d(1), {}, 1, id="4-D inputs, single key head"),
    pytest.param(_inputs_4d(), {"scale": 0.3}, 1, id="explicit scale"),
    pytest.param(_inputs_4d(), {"softcap": 0.5}, 1, id="softcap"),
    pytest.param(_inputs_4d(), {"is_causal": 1}, 1, id="causal"),
    pytest.param(_inputs_4d(2) | _past(2), {"is_causal": 1}, 3, id="causal with past keys"),
    pytest.param(_inputs_4d() | {"attn_mask": _random(QUERIES, KEYS)}, {}, 1, id="float mask"),
    pytest.param(_inputs_4d() | {"attn_mask": _random(HEADS, 1, KEYS)}, {}, 1, id="float mask per head"),
    pytest.param(_inputs_4d() | _boolean_mask(QUERIES, KEYS), {}, 1, id="boolean mask"),
    pytest.param(
        _inputs_4d() | _boolean_mask(BATCH, 1, QUERIES, KEYS),
        {"is_causal": 1},
        1,
        id="boolean mask per sample",
    ),
    pytest.param(
        _inputs_3d() | _boolean_mask(QUERIES, 9) | _past(), EQUAL_HEADS, 3, id="3-D inputs, mask, past keys"
    ),
    pytest.param(_inputs_4d(), {"softmax_precision": TensorProto.DOUBLE}, 1, id="softmax in double"),
    *(
        pytest.param(
            _inputs_4d() | _boolean_mask(QUERIES, KEYS),
            {"qk_matmul_output_mode": mode, "softcap": 0.7 if mode else 0.0},
            4,
            id=f"scores as output, mode {mode}",
        )
        for mode in range(4)
    ),
]


@pytest.mark.parametrize(("feeds", "attributes", "outputs"), CASES)
def test_expands_into_two_matrix_products(
    feeds: dict[str, Array], attributes: dict[str, Any], outputs: int
) -> None:
    model = _model(feeds, 23, outputs, **attributes)
    for target in (7, 13, 22):
        result = convert_and_check(model, target, feeds, _expected(model, feeds))
        assert op_types(result).count("MatMul") == 2


@pytest.mark.parametrize(("feeds", "attributes", "outputs"), CASES)
def test_needs_no_sequence_lengths(feeds: dict[str, Array], attributes: dict[str, Any], outputs: int) -> None:
    model = with_symbolic_dims(_model(feeds, 23, outputs, **attributes))
    for value in model.graph.input:
        if len(value.type.tensor_type.shape.dim) == 4 and value.name in ("Q", "K", "V"):
            value.type.tensor_type.shape.dim[1].dim_value = feeds[value.name].shape[1]
    for target in (9, 22):
        convert_and_check(model, target, feeds, _expected(model, feeds))


def test_emits_only_softmax_without_mask() -> None:
    assert op_types(convert_version(_model(_inputs_4d()), 22)) == [
        *("Transpose", "Mul", "Mul", "MatMul", "Softmax", "MatMul"),
    ]


def test_preserves_float16() -> None:
    feeds = {name: array.astype(np.float16) for name, array in _inputs_4d().items()} | _boolean_mask(
        QUERIES, KEYS
    )
    model = _model(feeds, element_type=TensorProto.FLOAT16)
    for target in (9, 22):
        convert_and_check(model, target, feeds, _expected(model, feeds), tolerance=5e-3)


def _special_scores(dtype: type[np.floating]) -> dict[str, Array]:
    """Return inputs with infinity, NaN and only minus infinity in rows of the mask."""
    mask = np.zeros((6, KEYS), dtype)
    mask[1], mask[2, 1], mask[3], mask[4, 1] = -np.inf, np.inf, np.inf, np.nan
    mask[5], mask[5, 0] = -np.inf, np.nan
    shapes = {"Q": (1, 2, 6, 4), "K": (1, 2, KEYS, 4), "V": (1, 2, KEYS, 4)}
    return {name: _random(*shape).astype(dtype) for name, shape in shapes.items()} | {"attn_mask": mask}


@pytest.mark.parametrize("target", [22, 17, 13, 12, 11, 10, 8, 7])
@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [
        pytest.param(np.float32, 1e-5, id="float"),
        pytest.param(np.float64, 1e-5, id="double"),
        pytest.param(np.float16, 5e-3, id="float16"),
    ],
)
def test_yields_nan_for_infinite_scores(dtype: type[np.floating], tolerance: float, target: int) -> None:
    feeds = _special_scores(dtype)
    model = _model(feeds, element_type=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
    expected = run_reference(model, feeds)
    result = convert_version(model, target)
    assert_equal(run_reference(result, feeds), expected, tolerance)
    assert_equal(run(result, feeds), expected, tolerance)


@pytest.mark.parametrize("target", [22, 12, 8, 7])
def test_scores_that_overflow_do_not_yield_infinity(target: int) -> None:
    sizes = {"Q": [300], "K": [300, 1, 2], "V": [1, 2, 3]}
    columns = {name: np.array(each, np.float16).reshape(1, 1, -1, 1) for name, each in sizes.items()}
    feeds: dict[str, Array] = {name: np.repeat(each, 4, 3) for name, each in columns.items()}
    feeds["attn_mask"] = np.zeros((1, 3), np.float16)
    result = convert_version(_model(feeds, element_type=TensorProto.FLOAT16), target)
    assert np.isnan(run_reference(result, feeds)[0]).all()
    # onnxruntime may compute the scores as float, in which they do not overflow.
    assert not np.isinf(run(result, feeds)[0]).any()


PADDING = {"nonpad_kv_seqlen": np.array([2, 5], np.int64)}
NEWER_FEATURES = [
    pytest.param(24, PADDING, {}, id="padding"),
    pytest.param(24, PADDING, {"is_causal": 1}, id="padding, causal"),
    pytest.param(
        24, PADDING | _boolean_mask(QUERIES, KEYS), {"is_causal": 1}, id="padding, causal, boolean mask"
    ),
    pytest.param(24, PADDING | {"attn_mask": _random(1, 1, QUERIES, KEYS)}, {}, id="padding, float mask"),
    pytest.param(24, _boolean_mask(QUERIES, KEYS - 2), {}, id="boolean mask narrower than keys"),
    pytest.param(
        24, {"attn_mask": _random(QUERIES, KEYS - 1)}, {"is_causal": 1}, id="float mask narrower than keys"
    ),
    pytest.param(25, {}, {"left_window_size": 1}, id="left window"),
    pytest.param(25, {}, {"right_window_size": 0}, id="right window"),
    pytest.param(25, {}, {"left_window_size": 0, "right_window_size": 1}, id="both windows"),
    pytest.param(25, {}, {"left_window_size": 2, "is_causal": 1}, id="left window, causal"),
    pytest.param(
        25, _past(), {"left_window_size": 3, "right_window_size": 1}, id="both windows with past keys"
    ),
    pytest.param(25, PADDING, {"left_window_size": 1, "is_causal": 1}, id="left window, padding, causal"),
    pytest.param(25, _boolean_mask(QUERIES, KEYS), {"left_window_size": 2}, id="left window, boolean mask"),
    pytest.param(
        25, _boolean_mask(QUERIES, KEYS - 1), {"left_window_size": 2}, id="left window, narrow mask"
    ),
]


@pytest.mark.parametrize("lengths_known", [True, False], ids=["known lengths", "unknown lengths"])
@pytest.mark.parametrize(("opset", "extra_inputs", "attributes"), NEWER_FEATURES)
def test_converts_padding_and_windows_to_mask(
    opset: int, extra_inputs: dict[str, Array], attributes: dict[str, Any], lengths_known: bool
) -> None:
    feeds = _inputs_4d() | extra_inputs
    outputs = 3 if "past_key" in feeds else 1
    model = _model(feeds, opset, outputs, **attributes)
    if not lengths_known:
        with_symbolic_dims(model)
        for value in model.graph.input[:3]:
            value.type.tensor_type.shape.dim[1].dim_value = HEADS
    expected = _expected(model, feeds)
    for target in range(23, opset):
        assert "Attention" in op_types(convert_version(model, target))
    for target in (11, 22) if not lengths_known else (7, 22):
        convert_and_check(model, target, feeds, expected)


@pytest.mark.parametrize("form", RANKED_FORMS)
@pytest.mark.parametrize("inputs", [_inputs_4d(), _inputs_3d()], ids=["4-D", "3-D"])
@pytest.mark.parametrize("mask", [None, _random(QUERIES, KEYS) > 0, _random(QUERIES, KEYS)])
def test_masks_padding_for_every_query(form: str, inputs: dict[str, Array], mask: Array | None) -> None:
    feeds = {**inputs, "lengths": np.array([3, 5]), **({} if mask is None else {"mask": mask})}
    heads = {} if inputs["Q"].ndim == 4 else {"q_num_heads": HEADS, "kv_num_heads": HEADS}
    names = [*inputs, "" if mask is None else "mask", "", "", "lengths"]
    node = helper.make_node("Attention", names, ["y"], **heads)
    model, fed = in_form(form, [node], feeds, {"y": TensorProto.FLOAT}, 24)
    result = convert_version(model, 23)
    assert_equal(run(result, fed), run(model, fed))
    assert_equal(run_reference(result, fed), run(model, fed))


@pytest.mark.parametrize("opset", [23, 24, 25])
@pytest.mark.parametrize("mask", [np.array(0.5, np.float32), np.array(True), np.array(False)])
def test_applies_scalar_masks_to_every_key(opset: int, mask: Array) -> None:
    """ONNX's function bodies and onnx.reference fail for scalars, which broadcast like other masks."""
    feeds = _inputs_4d() | {"attn_mask": mask}
    windows = {"left_window_size": 1} if opset == 25 else {}
    model = _model(feeds, opset, **windows)
    wide = feeds | {"attn_mask": np.broadcast_to(mask, (QUERIES, KEYS))}
    expected = _expected(_model(wide, opset, **windows), wide)
    assert_equal(run(convert_version(model, 22), feeds), expected)
    assert_equal(run_reference(convert_version(model, 24 if opset < 24 else 23), feeds), expected)


def test_drops_disabled_windows() -> None:
    model = _model(_inputs_4d() | _boolean_mask(QUERIES, KEYS), 25, left_window_size=-1, is_causal=1)
    result = convert_version(model, 23)
    assert [each.name for each in result.graph.node[0].attribute] == ["is_causal"]
    assert op_types(result) == ["Attention"]


def test_expands_heads_without_elements() -> None:
    feeds = {
        name: array[..., :size] for (name, array), size in zip(_inputs_4d().items(), (0, 0, 6), strict=True)
    }
    model = _model(feeds)
    convert_and_check(
        model,
        22,
        feeds,
        [np.broadcast_to(feeds["V"].mean(2, keepdims=True), (BATCH, HEADS, QUERIES, VALUE_SIZE))],
    )


def _mixed_types_model() -> onnx.ModelProto:
    feeds = _inputs_4d()
    feeds["V"] = feeds["V"].astype(np.float16)
    return _model(feeds)


REFUSED = [
    pytest.param(
        _mixed_types_model(),
        22,
        "Q and V are float and float16, but MatMul requires a single type",
        id="mixed types",
    ),
    pytest.param(
        _model(_inputs_3d()), 22, "the number of heads of 'Q' is unknown", id="unknown number of heads"
    ),
    pytest.param(
        _model(_inputs_4d(), scale=-1.0),
        22,
        "scale is -1.0, but its square root multiplies queries and keys",
        id="negative scale",
    ),
    pytest.param(
        _model(_inputs_4d() | {"attn_mask": _random(QUERIES, 1)}, 24),
        23,
        "attn_mask may have one column, which can apply to the first key only or to every key",
        id="mask with one column",
    ),
]


@pytest.mark.parametrize(("model", "target", "reason"), REFUSED)
def test_refuses_unsupported_inputs(model: onnx.ModelProto, target: int, reason: str) -> None:
    assert refusal_of(model, target).reason == reason
