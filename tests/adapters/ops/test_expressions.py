"""Operators that every opset has, which arithmetic expresses in models that may not contain them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.execution import assert_equal, build, op_types, run
from support.forms import in_form

import opshift

RANDOM = np.random.default_rng(5)
DATA = RANDOM.standard_normal((2, 3, 40)).astype(np.float32)
FLOAT, BOOL = TensorProto.FLOAT, TensorProto.BOOL


def _without(model: Any, operator: str, target: int) -> Any:
    converted = opshift.convert_version(model, target, without=f"ai.onnx.{operator}")
    assert operator not in op_types(converted)
    return converted


def _statistics(dtype: Any = np.float32) -> dict[str, Any]:
    return {name: (RANDOM.random(3) + 0.5).astype(dtype) for name in ("scale", "bias", "mean", "variance")}


@pytest.mark.parametrize("form", ["fed", "initializer", "computed", "branch"])
@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (2, 3, 2, 2)])
def test_normalization_in_arithmetic(form: str, shape: tuple[int, ...]) -> None:
    data = RANDOM.standard_normal(shape).astype(np.float32)
    feeds: dict[str, Any] = {"x": data, **_statistics()}
    node = helper.make_node("BatchNormalization", list(feeds), ["y"], epsilon=0.01)
    model, fed = in_form(form, [node], feeds, {"y": FLOAT}, 15)
    expected = run(model, fed)
    for target in (9, 13, 15, 17, 21):
        assert_equal(run(_without(model, "BatchNormalization", target), fed), expected, 1e-4)


def test_normalization_in_training() -> None:
    feeds: dict[str, Any] = {"x": DATA, **_statistics()}
    node = helper.make_node(
        "BatchNormalization", list(feeds), ["y", "m", "v"], training_mode=1, momentum=0.75
    )
    model = build([node], feeds, ["y", "m", "v"], 15)
    expected = run(model, feeds)
    for target in (14, 15, 18):
        assert_equal(run(_without(model, "BatchNormalization", target), feeds), expected, 1e-4)


@pytest.mark.parametrize("training", [0, 1])
def test_normalization_of_other_types(training: int) -> None:
    feeds: dict[str, Any] = {"x": DATA.astype(np.float16), **_statistics()}
    outputs = {"y": TensorProto.FLOAT16, **({"m": FLOAT, "v": FLOAT} if training else {})}
    node = helper.make_node("BatchNormalization", list(feeds), list(outputs), training_mode=training)
    model = build([node], feeds, outputs, 15)
    wide = build([node], {**feeds, "x": DATA}, dict.fromkeys(outputs, FLOAT), 15)
    expected = run(wide, {**feeds, "x": feeds["x"].astype(np.float32)})
    found = run(_without(model, "BatchNormalization", 15), feeds)
    assert [each.dtype for each in found] == [np.float16, np.float32, np.float32][: len(outputs)]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=2e-3)


def test_normalization_needs_a_rank() -> None:
    feeds: dict[str, Any] = {"x": DATA, **_statistics()}
    model = build(
        [helper.make_node("BatchNormalization", list(feeds), ["y"])], feeds, ["y"], 15, shapes=False
    )
    with pytest.raises(opshift.ConversionRefused, match="rank"):
        _without(model, "BatchNormalization", 15)


@pytest.mark.parametrize("training", [None, False, True])
@pytest.mark.parametrize("form", ["fed", "initializer", "computed", "branch"])
def test_dropout_that_keeps_elements(form: str, training: bool | None) -> None:
    feeds: dict[str, Any] = {"x": DATA, "ratio": np.array(0.0 if training else 0.4, np.float32)}
    if training is not None:
        feeds["training"] = np.array(training)
    node = helper.make_node("Dropout", list(feeds), ["y", "mask"])
    model, fed = in_form(form, [node], feeds, {"y": FLOAT, "mask": BOOL}, 13)
    for target in (12, 13, 21):
        y, mask = run(_without(model, "Dropout", target), fed)
        assert mask.all()
        np.testing.assert_array_equal(y, DATA)


@pytest.mark.parametrize("outputs", [["y"], ["y", "mask"]])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_dropout_in_training(dtype: Any, outputs: list[str]) -> None:
    data = np.ones((100, 100), dtype)
    feeds: dict[str, Any] = {"x": data, "ratio": np.array(0.25, np.float32), "training": np.array(True)}
    elements = {"y": helper.np_dtype_to_tensor_dtype(data.dtype), "mask": BOOL}
    model = build(
        [helper.make_node("Dropout", list(feeds), outputs, seed=7)],
        feeds,
        {each: elements[each] for each in outputs},
        13,
    )
    found = run(_without(model, "Dropout", 13), feeds)
    kept = found[0] != 0
    assert found[0].dtype == dtype
    assert 0.7 < kept.mean() < 0.8
    np.testing.assert_allclose(found[0][kept], 1 / 0.75, rtol=1e-3)
    if outputs[1:]:
        np.testing.assert_array_equal(found[1], kept)


SLICES = {
    "forward": ([1, 0], [3, 100], [1, -1], [1, 2]),
    "backward": ([-1, 5], [-100, 0], [-1, 0], [-1, -3]),
    "empty": ([2], [1], [2], [1]),
    "without steps": ([0, -2], [2, 2**63 - 1], [0, 2], None),
    "without axes": ([1, 1], [2, 3], None, None),
}


@pytest.mark.parametrize("form", ["fed", "initializer", "computed", "branch"])
@pytest.mark.parametrize("case", SLICES)
def test_slice_by_indices(case: str, form: str) -> None:
    names = ("starts", "ends", "axes", "steps")
    given = {name: each for name, each in zip(names, SLICES[case], strict=True) if each is not None}
    feeds: dict[str, Any] = {"x": DATA, **{name: np.array(each, np.int64) for name, each in given.items()}}
    node = helper.make_node("Slice", list(feeds), ["y"])
    model, fed = in_form(form, [node], feeds, {"y": FLOAT}, 13)
    expected = run(model, fed)
    for target in (10, 13, 18):
        assert_equal(run(_without(model, "Slice", target), fed), expected)


@pytest.mark.parametrize("form", ["fed", "initializer", "computed", "branch"])
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("pads", [[1, 0, 0, 0, 2, 3], [0, -1, -2, 0, 1, 0]])
def test_pad_by_indices(pads: list[int], mode: str, form: str) -> None:
    feeds: dict[str, Any] = {
        "x": RANDOM.standard_normal((2, 3, 5)).astype(np.float32),
        "pads": np.array(pads, np.int64),
    }
    if mode == "reflect":
        feeds["pads"][0] = 0
    if mode == "constant":
        feeds["value"] = np.array(7, np.float32)
    node = helper.make_node("Pad", list(feeds), ["y"], mode=mode)
    model, fed = in_form(form, [node], feeds, {"y": FLOAT}, 19)
    expected = run(model, fed)
    for target in (11, 13, 19):
        assert_equal(run(_without(model, "Pad", target), fed), expected)


def test_pad_of_some_axes_by_indices() -> None:
    feeds: dict[str, Any] = {"x": DATA, "pads": np.array([1, 2], np.int64), "value": np.array(7, np.float32)}
    node = helper.make_node("Pad", [*feeds, "axes"], ["y"])
    feeds["axes"] = np.array([-2], np.int64)
    model = build([node], feeds, ["y"], 18)
    for target in (13, 18):
        assert_equal(run(_without(model, "Pad", target), feeds), run(model, feeds))


@pytest.mark.parametrize(
    "value", [np.array([3.5], np.float32), np.array([9], np.uint8), np.array([-2], np.int64)]
)
def test_list_of_computed_length(value: Any) -> None:
    attribute = helper.make_tensor("v", helper.np_dtype_to_tensor_dtype(value.dtype), [1], value)
    node = helper.make_node("ConstantOfShape", ["count"], ["y"], value=attribute)
    element = helper.np_dtype_to_tensor_dtype(value.dtype)
    for count in (0, 1, 5):
        feeds = {"count": np.array([count], np.int64)}
        model = build([node], feeds, {"y": element}, 13)
        for target in (11, 13, 21):
            assert_equal(run(_without(model, "ConstantOfShape", target), feeds), run(model, feeds))


def test_refuses_arrays_of_computed_shape() -> None:
    feeds = {"count": np.array([2, 3], np.int64)}
    model = build([helper.make_node("ConstantOfShape", ["count"], ["y"])], feeds, ["y"], 13)
    with pytest.raises(opshift.ConversionRefused, match="only lists"):
        _without(model, "ConstantOfShape", 13)
