"""Operators that every opset has, which arithmetic expresses in models that may not contain them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.forms import in_form
from support.running import assert_equal, build, op_types, run

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
    feeds = {"x": data, **_statistics()}
    node = helper.make_node("BatchNormalization", list(feeds), ["y"], epsilon=0.01)
    model, fed = in_form(form, [node], feeds, {"y": FLOAT}, 15)
    expected = run(model, fed)
    for target in (9, 13, 15, 17, 21):
        assert_equal(run(_without(model, "BatchNormalization", target), fed), expected, 1e-4)


def test_normalization_in_training() -> None:
    feeds = {"x": DATA, **_statistics()}
    node = helper.make_node(
        "BatchNormalization", list(feeds), ["y", "m", "v"], training_mode=1, momentum=0.75
    )
    model = build([node], feeds, ["y", "m", "v"], 15)
    expected = run(model, feeds)
    for target in (14, 15, 18):
        assert_equal(run(_without(model, "BatchNormalization", target), feeds), expected, 1e-4)


@pytest.mark.parametrize("training", [0, 1])
def test_normalization_of_other_types(training: int) -> None:
    feeds = {"x": DATA.astype(np.float16), **_statistics()}
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
    feeds = {"x": DATA, **_statistics()}
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
    feeds = {"x": data, "ratio": np.array(0.25, np.float32), "training": np.array(True)}
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
