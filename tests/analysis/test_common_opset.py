"""The range of opsets that several models can be converted to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import compose, helper, shape_inference
from support.execution import assert_equal, build, opset_of, run

from opshift import InvalidModel, NoCommonOpset, UsageError, common_opset, convert_version
from opshift.registry.registry import default_registry

NEWEST = default_registry().newest_opset()


def model_of(op: str, opset: int, **attributes: object) -> onnx.ModelProto:
    node = helper.make_node(op, ["x"], ["y"], **attributes)
    return build([node], {"x": np.zeros((2, 2), np.float32)}, ["y"], opset)


RELU, SIN = model_of("Relu", 9), model_of("Sin", 13)
DROPPING = model_of("Dropout", 6, is_test=0)
"""Dropout that drops elements at inference; since opset 7 it does so only in training mode."""
CASES = {
    "one model": ([RELU], 1, NEWEST),
    "same model twice": ([RELU, RELU], 1, NEWEST),
    "model that needs opset 7": ([RELU, SIN], 7, NEWEST),
    "model that needs opset 6 or older": ([RELU, DROPPING], 1, 6),
}


@pytest.mark.parametrize(("models", "lowest", "highest"), CASES.values(), ids=CASES)
def test_finds_the_common_range(models: Sequence[onnx.ModelProto], lowest: int, highest: int) -> None:
    result = common_opset(models)
    assert (result.domain, result.lowest, result.highest) == ("ai.onnx", lowest, highest)
    assert len(result.reaches) == len(result.reports) == len(models)
    for model in models:
        assert {opset_of(convert_version(model, opset)) for opset in (lowest, highest)} == {lowest, highest}


def test_reports_the_conversion_of_each_model() -> None:
    clip = model_of("Clip", 10, min=0.0, max=1.0)
    first, second = common_opset([clip, model_of("Relu", NEWEST)]).reports
    assert [change.operator for change in first.changed] == ["ai.onnx.Clip:6"]
    assert (second.changed, second.opsets) == ((), ())


def test_results_of_a_common_target_can_be_merged() -> None:
    x = np.linspace(-1, 1, 4, dtype=np.float32).reshape(2, 2)
    clip = build(
        [helper.make_node("Clip", ["x"], ["y"], min=-0.5, max=0.5)], {"x": x}, ["y"], 10, ir_version=4
    )
    gelu = build([helper.make_node("Gelu", ["x"], ["y"])], {"x": x}, ["y"], 20, ir_version=9)
    clip, gelu = map(shape_inference.infer_shapes, (clip, gelu))  # compose requires shapes of outputs
    common = common_opset([clip, gelu])
    one, other = (convert_version(each, common) for each in (clip, gelu))
    assert {opset_of(one), opset_of(other)} == {common.highest}
    assert one.ir_version == other.ir_version == common.ir_version
    merged = compose.merge_models(compose.add_prefix(one, "a_"), other, [("a_y", "x")])
    (expected,) = run(gelu, {"x": np.clip(x, -0.5, 0.5)})
    assert_equal(run(merged, {"a_x": x}), [expected])


def test_error_states_both_bounds() -> None:
    with pytest.raises(NoCommonOpset) as error:
        common_opset([RELU, DROPPING, SIN])
    assert "models[2] stops at opset 7, models[1] at 6" in error.value.reason
    assert [(each.lowest, each.highest) for each in error.value.reaches] == [
        (1, NEWEST),
        (1, 6),
        (7, NEWEST),
    ]


def test_accepts_paths_and_bytes(tmp_path: Path) -> None:
    onnx.save(RELU, tmp_path / "relu.onnx")
    assert common_opset([tmp_path / "relu.onnx", SIN.SerializeToString()]).lowest == 7


def test_supports_other_domains() -> None:
    node = helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=[0.0], scale=[1.0])
    model = build([node], {"x": np.zeros((2, 2), np.float32)}, ["y"], {"": 15, "ai.onnx.ml": 2})
    result = common_opset([model, model], "ai.onnx.ml")
    assert (result.domain, result.highest) == ("ai.onnx.ml", default_registry().newest_opset("ai.onnx.ml"))
    with pytest.raises(InvalidModel, match=r"does not import ai\.onnx\.ml"):
        common_opset([model, RELU], "ai.onnx.ml")


def test_rejects_an_empty_list_of_models() -> None:
    with pytest.raises(UsageError, match="no models are given"):
        common_opset([])
