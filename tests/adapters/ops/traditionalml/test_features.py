"""Standard operators instead of Binarizer and ArrayFeatureExtractor."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.execution import Array, assert_equal, run, run_reference
from support.forms import RANKED_FORMS, in_form

from opshift import ConversionRefused, convert_version

DOMAIN = "ai.onnx.ml"
FLOATS = np.array([[-1.5, 0.0, 0.5], [1.0, np.nan, np.inf]], np.float32)


def _model(
    node: onnx.NodeProto, feeds: dict[str, Array], form: str = "fed"
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    element_type = helper.np_dtype_to_tensor_dtype(next(iter(feeds.values())).dtype)
    model, fed = in_form(form, [node], feeds, {"z": element_type}, 17)
    for proto in (model, *model.functions):
        proto.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    return model, dict(fed)


def _without(model: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    result = convert_version(model, opset, without=DOMAIN)
    assert DOMAIN not in {each.domain for each in result.opset_import}
    return result


@pytest.mark.parametrize("threshold", [0.0, 0.5, -1.5, float("inf"), float("nan")])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compares_floats_with_the_threshold(threshold: float, dtype: Any) -> None:
    node = helper.make_node("Binarizer", ["x"], ["z"], domain=DOMAIN, threshold=threshold)
    model, feeds = _model(node, {"x": FLOATS.astype(dtype)})
    for opset in (8, 13, 24):
        assert_equal(run(_without(model, opset), feeds), run_reference(model, feeds))


@pytest.mark.parametrize("threshold", [0.0, 1.5, -1.5, -2.0, 2.0])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_compares_integers_with_the_integer_below(threshold: float, dtype: Any) -> None:
    limits = np.iinfo(dtype)
    node = helper.make_node("Binarizer", ["x"], ["z"], domain=DOMAIN, threshold=threshold)
    model, feeds = _model(node, {"x": np.array([limits.min, -2, -1, 0, 1, 2, 3, limits.max], dtype)})
    expected = (feeds["x"].astype(np.float64) > threshold).astype(dtype)
    for opset in (8, 13, 24):
        assert_equal(run(_without(model, opset), feeds), [expected])


@pytest.mark.parametrize("threshold", [2.0**31, -(2.0**31), float("inf"), float("nan")])
def test_refuses_thresholds_that_are_no_integers_of_the_type(threshold: float) -> None:
    node = helper.make_node("Binarizer", ["x"], ["z"], domain=DOMAIN, threshold=threshold)
    model, _ = _model(node, {"x": np.array([1, 2], np.int32)})
    with pytest.raises(ConversionRefused, match="outside of the range of int32") as caught:
        _without(model, 17)
    assert caught.value.refusals[0].remedy


@pytest.mark.parametrize("form", RANKED_FORMS)
@pytest.mark.parametrize(
    ("shape", "indices"),
    [((3, 4), [0, 3]), ((2, 3, 4), [[3], [0]]), ((4,), [1, 1, 2]), ((4,), [2]), ((1, 4), [])],
    ids=str,
)
def test_gathers_elements_of_the_last_axis(shape: tuple[int, ...], indices: list[Any], form: str) -> None:
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    node = helper.make_node("ArrayFeatureExtractor", ["x", "y"], ["z"], domain=DOMAIN)
    model, feeds = _model(node, {"x": values, "y": np.array(indices, np.int64)}, form)
    rows = values if values.ndim > 1 else values[np.newaxis]
    expected = rows[..., np.array(indices, np.int64).reshape(-1)]
    assert_equal(run(_without(model, 17), feeds), [expected])
    if indices and form == "fed":
        assert_equal(run(model, feeds), [expected])
