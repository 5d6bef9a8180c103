"""BatchNormalization and GroupNormalization, compared with the arithmetic that their versions define."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.running import Array, build, op_types, run

from opshift import convert_version
from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
NAMES = ("x", "scale", "bias", "mean", "var")
SHAPES = {"table": (4, 3), "sequence": (2, 3, 5), "image": (2, 3, 4, 5), "volume": (1, 2, 2, 3, 2)}


def _feeds(shape: Sequence[int], kind: Any = np.float32, *, of_elements: bool = False) -> dict[str, Array]:
    random = np.random.default_rng(len(shape))
    size = shape[1:] if of_elements else shape[1:2]
    drawn = [random.standard_normal(shape), *(random.uniform(0.5, 2, size) for _ in range(4))]
    return {name: np.asarray(each, kind) for name, each in zip(NAMES, drawn, strict=True)}


def _batch(opset: int, feeds: Mapping[str, Array], outputs: Sequence[str] = ("y",), **stated: Any) -> Any:
    node = helper.make_node("BatchNormalization", NAMES, outputs, name="node", **stated)
    element = helper.np_dtype_to_tensor_dtype(feeds["x"].dtype)
    return build([node], feeds, dict.fromkeys(filter(None, outputs), element), opset)


def _normal(feeds: Mapping[str, Array], epsilon: float = 1e-5) -> Array:
    """Inference, by the definition; statistics belong to dimension 1, or to each element."""
    data = feeds["x"]
    ones = (1,) * (data.ndim - 2)
    spread = [
        each.reshape(each.shape + ones) if each.ndim == 1 else each for each in (feeds[n] for n in NAMES[1:])
    ]
    scale, bias, mean, variance = spread
    return np.asarray((data - mean) / np.sqrt(variance + epsilon) * scale + bias, data.dtype)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize(
    "attributes", [{}, {"epsilon": 0.1, "momentum": 0.5, "spatial": 1}], ids=["", "stated"]
)
def test_inference_of_version_6(
    shape: tuple[int, ...], attributes: Mapping[str, Any], converted: Converted
) -> None:
    feeds = _feeds(shape)
    model = _batch(6, feeds, is_test=1, **attributes)
    for target in (7, 9, 14, 15):
        result = converted(model, target, feeds, [_normal(feeds, attributes.get("epsilon", 1e-5))])
        assert op_types(result) == ["BatchNormalization"]
        assert "is_test" not in {each.name for each in result.graph.node[0].attribute}


def test_version_1_names_the_inputs_it_consumes(converted: Converted) -> None:
    feeds = _feeds((2, 3, 4))
    model = _batch(1, feeds, is_test=1, consumed_inputs=[0, 0, 0, 1, 1])
    converted(model, 9, feeds, [_normal(feeds)])


@pytest.mark.parametrize(
    ("outputs", "is_test", "remedy"),
    [
        pytest.param(["y"], 0, "set is_test to 1", id="one output, but training"),
        pytest.param(["y"], None, "set is_test to 1", id="one output, and is_test left out"),
        pytest.param(["y", "m", "v"], 1, "set is_test to 1", id="three outputs, but inference"),
    ],
)
def test_outputs_have_to_agree_with_is_test(
    outputs: Sequence[str], is_test: int | None, remedy: str, refusal: Refusing
) -> None:
    stated = {} if is_test is None else {"is_test": is_test}
    found = refusal(_batch(6, _feeds((2, 3, 4)), outputs, **stated), 7)
    assert f"is_test is {is_test or 0} with {len(outputs)} outputs" in found.reason
    assert remedy in found.remedy


@pytest.mark.parametrize("kind", [np.float32, np.float64], ids=["float", "double"])
@pytest.mark.parametrize("attributes", [{}, {"epsilon": 0.1}], ids=["default epsilon", "its own epsilon"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_statistics_of_each_element(
    shape: tuple[int, ...], attributes: Mapping[str, Any], kind: Any, converted: Converted
) -> None:
    feeds = _feeds(shape, kind, of_elements=True)
    model = _batch(7, feeds, spatial=0, **attributes)
    for target in (9, 14):
        result = converted(model, target, feeds, [_normal(feeds, attributes.get("epsilon", 1e-5))])
        assert op_types(result) == ["Add", "Sqrt", "Sub", "Div", "Mul", "Add"]


def test_the_runtime_agrees_about_statistics_of_each_element(converted: Converted) -> None:
    feeds = _feeds((2, 3, 4), of_elements=True)
    converted(_batch(7, feeds, spatial=0), 9, feeds)


@pytest.mark.parametrize("attributes", [{}, {"spatial": 1}], ids=["left out", "stated"])
def test_statistics_of_each_channel_stay(attributes: Mapping[str, Any], converted: Converted) -> None:
    feeds = _feeds((2, 3, 4))
    result = converted(_batch(7, feeds, **attributes), 9, feeds)
    assert op_types(result) == ["BatchNormalization"]
    assert not result.graph.node[0].attribute


def test_training_with_statistics_of_each_element_is_refused(refusal: Refusing) -> None:
    model = _batch(7, _feeds((2, 3), of_elements=True), ["y", "m", "v"], spatial=0)
    assert refusal(model, 9).reason == "the node trains with spatial 0, which no later version supports"


def _trained(feeds: Mapping[str, Array], momentum: float = 0.9) -> list[Array]:
    """Output, running mean and running variance, by the definition of version 9."""
    data = feeds["x"]
    axes = tuple(axis for axis in range(data.ndim) if axis != 1)
    mean, variance = data.mean(axes), data.var(axes)
    running = [
        np.asarray(old * momentum + new * (1 - momentum), data.dtype)
        for old, new in ((feeds["mean"], mean), (feeds["var"], variance))
    ]
    return [_normal({**feeds, "mean": mean, "var": variance}), *running]


@pytest.mark.parametrize(
    ("opset", "outputs", "attributes"),
    [
        pytest.param(9, ["y", "m", "v"], {}, id="9 with three outputs"),
        pytest.param(9, ["y", "m", "v"], {"momentum": 0.6}, id="9 with its own momentum"),
        pytest.param(7, ["y", "m", "v"], {"spatial": 1}, id="7 with three outputs"),
        pytest.param(6, ["y", "m", "v"], {"is_test": 0}, id="6 with three outputs"),
    ],
)
def test_training_is_told_by_an_attribute(
    opset: int, outputs: Sequence[str], attributes: Mapping[str, Any], converted: Converted
) -> None:
    feeds = _feeds((4, 3, 5))
    model = _batch(opset, feeds, outputs, **attributes)
    expected = _trained(feeds, attributes.get("momentum", 0.9))
    for target in (14, 15):
        result = converted(model, target, feeds, expected)
        assert helper.get_node_attr_value(result.graph.node[0], "training_mode") == 1


def test_statistics_of_the_batch_that_nothing_reads_are_left_out(converted: Converted) -> None:
    feeds = _feeds((4, 3, 5))
    model = _batch(9, feeds, ["y", "m", "v", "batch_mean", "batch_var"])
    del model.graph.output[3:]
    result = converted(model, 14, feeds, _trained(feeds))
    assert list(result.graph.node[0].output) == ["y", "m", "v"]


@pytest.mark.parametrize("used", ["batch_mean", "batch_var"])
def test_statistics_of_the_batch_that_are_read_are_refused(used: str, refusal: Refusing) -> None:
    model = _batch(9, _feeds((4, 3)), ["y", "m", "v", "batch_mean", "batch_var"])
    del model.graph.output[3:]
    model.graph.output.append(helper.make_tensor_value_info(used, 1, None))
    assert refusal(model, 14).reason.startswith("the statistics of the batch (outputs 4 and 5) are used")


@pytest.mark.parametrize("outputs", [["y", "m"], ["y", "", "v"]], ids=["no variance", "no mean"])
def test_statistics_that_training_leaves_out_get_a_name(outputs: Sequence[str], converted: Converted) -> None:
    """From 14 on training lists three outputs."""
    feeds = _feeds((4, 3, 5))
    result_of = dict(zip(["y", "m", "v"], _trained(feeds), strict=True))
    expected = [result_of[name] for name in outputs if name]
    result = converted(_batch(9, feeds, outputs), 14, feeds, expected)
    assert len(list(filter(None, result.graph.node[0].output))) == 3


def test_outputs_that_have_no_name_are_no_training(converted: Converted) -> None:
    feeds = _feeds((4, 3, 5))
    result = converted(_batch(9, feeds, ["y", "", ""]), 14, feeds, [_normal(feeds)])
    assert [each.name for each in result.graph.node[0].attribute] == []


GROUPS = 2
KINDS = {"float": (np.float32, 1, 1e-5), "float16": (np.float16, 10, 2e-2), "double": (np.float64, 11, 1e-5)}


def _group_feeds(kind: Any) -> dict[str, Array]:
    random = np.random.default_rng(5)
    x = random.standard_normal((2, 6, 3, 2)) * 3
    return {
        "x": x.astype(kind),
        "scale": np.array([0.5, 3], kind),
        "bias": np.array([-1, 0.25], kind),
    }


def _group(feeds: Mapping[str, Array], *, constant: bool, epsilon: float | None) -> onnx.ModelProto:
    stated: dict[str, Any] = {"num_groups": GROUPS, **({} if epsilon is None else {"epsilon": epsilon})}
    node = helper.make_node("GroupNormalization", ["x", "scale", "bias"], ["y"], name="node", **stated)
    kept = {name: array for name, array in feeds.items() if name != "x"} if constant else {}
    open_ = {name: array for name, array in feeds.items() if name not in kept}
    element = helper.np_dtype_to_tensor_dtype(feeds["x"].dtype)
    return build([node], open_, {"y": element}, 18, initializers=kept)


def _grouped(feeds: Mapping[str, Array], epsilon: float) -> Array:
    """Version 18 by its definition: scale and bias belong to a group."""
    data = feeds["x"].astype(np.float64)
    parts = data.reshape(data.shape[0], GROUPS, -1)
    normal = (parts - parts.mean(2, keepdims=True)) / np.sqrt(parts.var(2, keepdims=True) + epsilon)
    scaled = normal * feeds["scale"][:, None] + feeds["bias"][:, None]
    return np.asarray(scaled.reshape(data.shape), feeds["x"].dtype)


@pytest.mark.parametrize("epsilon", [None, 0.5], ids=["default epsilon", "its own epsilon"])
@pytest.mark.parametrize("is_known", [True, False], ids=["channels known", "channels not known"])
@pytest.mark.parametrize("constant", [True, False], ids=["constant scale", "computed scale"])
@pytest.mark.parametrize("kind", KINDS)
def test_scale_and_bias_are_repeated(
    kind: str, constant: bool, is_known: bool, epsilon: float | None, converted: Converted
) -> None:
    dtype, stash_type, tolerance = KINDS[kind]
    feeds = _group_feeds(dtype)
    model = _group(feeds, constant=constant, epsilon=epsilon)
    if not is_known:
        model.graph.input[0].type.tensor_type.shape.dim[1].Clear()
    given = {each.name: feeds[each.name] for each in model.graph.input}
    result = converted(model, 21, given, [_grouped(feeds, epsilon or 1e-5)], tolerance)
    node = result.graph.node[-1]
    stated = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    assert stated["num_groups"] == GROUPS
    assert stated.get("stash_type", 1) == stash_type
    assert stated.get("epsilon") == epsilon
    assert (len(result.graph.node) == 1) == (constant and is_known)


def test_the_runtime_agrees_about_groups(converted: Converted) -> None:
    feeds = _group_feeds(np.float32)
    model = _group(feeds, constant=False, epsilon=None)
    np.testing.assert_allclose(run(model, feeds)[0], _grouped(feeds, 1e-5), rtol=1e-5, atol=1e-5)
    converted(model, 21, feeds)


def test_a_computed_scale_of_unknown_rank(converted: Converted) -> None:
    feeds = _group_feeds(np.float32)
    model = _group(feeds, constant=False, epsilon=None)
    for value in model.graph.input:
        value.type.tensor_type.ClearField("shape")
    converted(model, 21, feeds)


def test_the_precision_of_unknown_data_is_not_guessed(refusal: Refusing) -> None:
    unknown = helper.make_node("Anything", ["a"], ["x"], domain="com.acme")
    model = _group(_group_feeds(np.float32), constant=False, epsilon=None)
    model.graph.input[0].name = "a"
    model.graph.node.insert(0, unknown)
    model.graph.node.append(helper.make_node("Abs", ["y"], ["z"]))
    model.graph.output[0].name = "z"
    model.opset_import.append(helper.make_opsetid("com.acme", 1))
    assert refusal(model, 21).reason == "the element type of 'x' is unknown"


def test_nothing_changes_where_the_version_stays() -> None:
    model = _group(_group_feeds(np.float32), constant=True, epsilon=None)
    assert convert_version(model, 20).graph == model.graph
