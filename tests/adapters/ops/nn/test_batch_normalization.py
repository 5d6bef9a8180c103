"""Upgrade of BatchNormalization and GroupNormalization, compared with the formulas of their versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, build, op_types, run

from opshift import convert_version

NAMES = ("x", "scale", "bias", "mean", "var")
SHAPES = {"rank 2": (4, 3), "rank 3": (2, 3, 5), "rank 4": (2, 3, 4, 5), "rank 5": (1, 2, 2, 3, 2)}


def _feeds(shape: Sequence[int], dtype: Any = np.float32, *, per_element: bool = False) -> dict[str, Array]:
    random = np.random.default_rng(len(shape))
    size = shape[1:] if per_element else shape[1:2]
    arrays = [random.standard_normal(shape), *(random.uniform(0.5, 2, size) for _ in range(4))]
    return {name: np.asarray(each, dtype) for name, each in zip(NAMES, arrays, strict=True)}


def _batch_model(
    opset: int, feeds: Mapping[str, Array], outputs: Sequence[str] = ("y",), **attributes: Any
) -> Any:
    node = helper.make_node("BatchNormalization", NAMES, outputs, name="node", **attributes)
    element_type = helper.np_dtype_to_tensor_dtype(feeds["x"].dtype)
    return build([node], feeds, dict.fromkeys(filter(None, outputs), element_type), opset)


def _expected_inference(feeds: Mapping[str, Array], epsilon: float = 1e-5) -> Array:
    """Compute inference with statistics per channel or per element."""
    data = feeds["x"]
    ones = (1,) * (data.ndim - 2)
    aligned = [
        each.reshape(each.shape + ones) if each.ndim == 1 else each for each in (feeds[n] for n in NAMES[1:])
    ]
    scale, bias, mean, variance = aligned
    return np.asarray((data - mean) / np.sqrt(variance + epsilon) * scale + bias, data.dtype)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize(
    "attributes", [{}, {"epsilon": 0.1, "momentum": 0.5, "spatial": 1}], ids=["default", "explicit"]
)
def test_upgrades_inference_of_version_6(shape: tuple[int, ...], attributes: Mapping[str, Any]) -> None:
    feeds = _feeds(shape)
    model = _batch_model(6, feeds, is_test=1, **attributes)
    for target in (7, 9, 14, 15):
        result = convert_and_check(
            model, target, feeds, [_expected_inference(feeds, attributes.get("epsilon", 1e-5))]
        )
        assert op_types(result) == ["BatchNormalization"]
        assert "is_test" not in {each.name for each in result.graph.node[0].attribute}


def test_drops_consumed_inputs_of_version_1() -> None:
    feeds = _feeds((2, 3, 4))
    model = _batch_model(1, feeds, is_test=1, consumed_inputs=[0, 0, 0, 1, 1])
    convert_and_check(model, 9, feeds, [_expected_inference(feeds)])


@pytest.mark.parametrize(
    ("outputs", "is_test", "remedy"),
    [
        pytest.param(["y"], 0, "set is_test to 1", id="training with one output"),
        pytest.param(["y"], None, "set is_test to 1", id="default is_test with one output"),
        pytest.param(["y", "m", "v"], 1, "set is_test to 1", id="inference with three outputs"),
    ],
)
def test_refuses_outputs_that_contradict_is_test(
    outputs: Sequence[str], is_test: int | None, remedy: str
) -> None:
    attributes = {} if is_test is None else {"is_test": is_test}
    refused = refusal_of(_batch_model(6, _feeds((2, 3, 4)), outputs, **attributes), 7)
    assert f"is_test is {is_test or 0}, but {len(outputs)} outputs" in refused.reason
    assert remedy in refused.remedy


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float", "double"])
@pytest.mark.parametrize("attributes", [{}, {"epsilon": 0.1}], ids=["default epsilon", "explicit epsilon"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_expands_statistics_per_element(
    shape: tuple[int, ...], attributes: Mapping[str, Any], dtype: Any
) -> None:
    feeds = _feeds(shape, dtype, per_element=True)
    model = _batch_model(7, feeds, spatial=0, **attributes)
    for target in (9, 14):
        result = convert_and_check(
            model, target, feeds, [_expected_inference(feeds, attributes.get("epsilon", 1e-5))]
        )
        assert op_types(result) == ["Add", "Sqrt", "Sub", "Div", "Mul", "Add"]


def test_matches_onnxruntime_for_statistics_per_element() -> None:
    feeds = _feeds((2, 3, 4), per_element=True)
    convert_and_check(_batch_model(7, feeds, spatial=0), 9, feeds)


@pytest.mark.parametrize("attributes", [{}, {"spatial": 1}], ids=["default", "explicit"])
def test_keeps_statistics_per_channel(attributes: Mapping[str, Any]) -> None:
    feeds = _feeds((2, 3, 4))
    result = convert_and_check(_batch_model(7, feeds, **attributes), 9, feeds)
    assert op_types(result) == ["BatchNormalization"]
    assert not result.graph.node[0].attribute


def test_refuses_training_with_statistics_per_element() -> None:
    model = _batch_model(7, _feeds((2, 3), per_element=True), ["y", "m", "v"], spatial=0)
    assert refusal_of(model, 9).reason == "the node trains with spatial 0, which no later version supports"


def _expected_training(feeds: Mapping[str, Array], momentum: float = 0.9) -> list[Array]:
    """Compute output, running mean and running variance by the definition of version 9."""
    data = feeds["x"]
    axes = tuple(axis for axis in range(data.ndim) if axis != 1)
    mean, variance = data.mean(axes), data.var(axes)
    running_statistics = [
        np.asarray(old * momentum + new * (1 - momentum), data.dtype)
        for old, new in ((feeds["mean"], mean), (feeds["var"], variance))
    ]
    return [_expected_inference({**feeds, "mean": mean, "var": variance}), *running_statistics]


@pytest.mark.parametrize(
    ("opset", "outputs", "attributes"),
    [
        pytest.param(9, ["y", "m", "v"], {}, id="version 9"),
        pytest.param(9, ["y", "m", "v"], {"momentum": 0.6}, id="version 9 with momentum"),
        pytest.param(7, ["y", "m", "v"], {"spatial": 1}, id="version 7"),
        pytest.param(6, ["y", "m", "v"], {"is_test": 0}, id="version 6"),
    ],
)
def test_sets_training_mode(opset: int, outputs: Sequence[str], attributes: Mapping[str, Any]) -> None:
    feeds = _feeds((4, 3, 5))
    model = _batch_model(opset, feeds, outputs, **attributes)
    expected = _expected_training(feeds, attributes.get("momentum", 0.9))
    for target in (14, 15):
        result = convert_and_check(model, target, feeds, expected)
        assert helper.get_node_attr_value(result.graph.node[0], "training_mode") == 1


def test_drops_unused_batch_statistics() -> None:
    feeds = _feeds((4, 3, 5))
    model = _batch_model(9, feeds, ["y", "m", "v", "batch_mean", "batch_var"])
    del model.graph.output[3:]
    result = convert_and_check(model, 14, feeds, _expected_training(feeds))
    assert list(result.graph.node[0].output) == ["y", "m", "v"]


@pytest.mark.parametrize("used_output", ["batch_mean", "batch_var"])
def test_refuses_used_batch_statistics(used_output: str) -> None:
    model = _batch_model(9, _feeds((4, 3)), ["y", "m", "v", "batch_mean", "batch_var"])
    del model.graph.output[3:]
    model.graph.output.append(helper.make_tensor_value_info(used_output, 1, None))
    assert refusal_of(model, 14).reason.startswith("the statistics of the batch (outputs 4 and 5) are used")


@pytest.mark.parametrize("outputs", [["y", "m"], ["y", "", "v"]], ids=["no variance", "no mean"])
def test_names_missing_training_outputs(outputs: Sequence[str]) -> None:
    """Training requires three outputs since opset 14."""
    feeds = _feeds((4, 3, 5))
    output_of = dict(zip(["y", "m", "v"], _expected_training(feeds), strict=True))
    expected = [output_of[name] for name in outputs if name]
    result = convert_and_check(_batch_model(9, feeds, outputs), 14, feeds, expected)
    assert len(list(filter(None, result.graph.node[0].output))) == 3


def test_treats_unnamed_outputs_as_inference() -> None:
    feeds = _feeds((4, 3, 5))
    result = convert_and_check(_batch_model(9, feeds, ["y", "", ""]), 14, feeds, [_expected_inference(feeds)])
    assert [each.name for each in result.graph.node[0].attribute] == []


GROUPS = 2
PRECISIONS = {
    "float": (np.float32, 1, 1e-5),
    "float16": (np.float16, 10, 2e-2),
    "double": (np.float64, 11, 1e-5),
}


def _group_feeds(dtype: Any) -> dict[str, Array]:
    random = np.random.default_rng(5)
    x = random.standard_normal((2, 6, 3, 2)) * 3
    return {
        "x": x.astype(dtype),
        "scale": np.array([0.5, 3], dtype),
        "bias": np.array([-1, 0.25], dtype),
    }


def _group_model(feeds: Mapping[str, Array], *, constant: bool, epsilon: float | None) -> onnx.ModelProto:
    attributes: dict[str, Any] = {"num_groups": GROUPS, **({} if epsilon is None else {"epsilon": epsilon})}
    node = helper.make_node("GroupNormalization", ["x", "scale", "bias"], ["y"], name="node", **attributes)
    constants = {name: array for name, array in feeds.items() if name != "x"} if constant else {}
    computed = {name: array for name, array in feeds.items() if name not in constants}
    element_type = helper.np_dtype_to_tensor_dtype(feeds["x"].dtype)
    return build([node], computed, {"y": element_type}, 18, initializers=constants)


def _expected_groups(feeds: Mapping[str, Array], epsilon: float) -> Array:
    """Compute GroupNormalization-18, where scale and bias belong to a group."""
    data = feeds["x"].astype(np.float64)
    groups = data.reshape(data.shape[0], GROUPS, -1)
    normalized = (groups - groups.mean(2, keepdims=True)) / np.sqrt(groups.var(2, keepdims=True) + epsilon)
    scaled = normalized * feeds["scale"][:, None] + feeds["bias"][:, None]
    return np.asarray(scaled.reshape(data.shape), feeds["x"].dtype)


@pytest.mark.parametrize("epsilon", [None, 0.5], ids=["default epsilon", "explicit epsilon"])
@pytest.mark.parametrize("channels_known", [True, False], ids=["known channels", "unknown channels"])
@pytest.mark.parametrize("constant", [True, False], ids=["constant scale", "computed scale"])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_repeats_scale_and_bias(
    precision: str, constant: bool, channels_known: bool, epsilon: float | None
) -> None:
    dtype, stash_type, tolerance = PRECISIONS[precision]
    feeds = _group_feeds(dtype)
    model = _group_model(feeds, constant=constant, epsilon=epsilon)
    if not channels_known:
        model.graph.input[0].type.tensor_type.shape.dim[1].Clear()
    computed = {each.name: feeds[each.name] for each in model.graph.input}
    result = convert_and_check(model, 21, computed, [_expected_groups(feeds, epsilon or 1e-5)], tolerance)
    node = result.graph.node[-1]
    attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    assert attributes["num_groups"] == GROUPS
    assert attributes.get("stash_type", 1) == stash_type
    assert attributes.get("epsilon") == epsilon
    assert (len(result.graph.node) == 1) == (constant and channels_known)


def test_matches_onnxruntime_for_groups() -> None:
    feeds = _group_feeds(np.float32)
    model = _group_model(feeds, constant=False, epsilon=None)
    np.testing.assert_allclose(run(model, feeds)[0], _expected_groups(feeds, 1e-5), rtol=1e-5, atol=1e-5)
    convert_and_check(model, 21, feeds)


def test_repeats_computed_scale_of_unknown_rank() -> None:
    feeds = _group_feeds(np.float32)
    model = _group_model(feeds, constant=False, epsilon=None)
    for value in model.graph.input:
        value.type.tensor_type.ClearField("shape")
    convert_and_check(model, 21, feeds)


def test_refuses_unknown_element_type() -> None:
    producer = helper.make_node("Anything", ["a"], ["x"], domain="com.acme")
    model = _group_model(_group_feeds(np.float32), constant=False, epsilon=None)
    model.graph.input[0].name = "a"
    model.graph.node.insert(0, producer)
    model.graph.node.append(helper.make_node("Abs", ["y"], ["z"]))
    model.graph.output[0].name = "z"
    model.opset_import.append(helper.make_opsetid("com.acme", 1))
    assert refusal_of(model, 21).reason == "the element type of 'x' is unknown"


def test_keeps_nodes_of_the_same_version() -> None:
    model = _group_model(_group_feeds(np.float32), constant=True, epsilon=None)
    assert convert_version(model, 20).graph == model.graph
