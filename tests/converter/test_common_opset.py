"""The opset at which several models can meet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from support.running import build, opset_of

from opshift import InvalidModel, NoCommonOpset, UsageError, common_opset, convert_version
from opshift.registry.catalogue import default_registry

NEWEST = default_registry().newest_opset()


def of(op: str, opset: int, **attributes: object) -> onnx.ModelProto:
    node = helper.make_node(op, ["x"], ["y"], **attributes)
    return build([node], {"x": np.zeros((2, 2), np.float32)}, ["y"], opset)


RELU, SIN = of("Relu", 9), of("Sin", 13)
DROPS = of("Dropout", 6, is_test=0)
"""Nothing says from opset 7 on that a model drops elements when it is run."""
CASES = {
    "one model": ([RELU], 1, NEWEST),
    "the same twice": ([RELU, RELU], 1, NEWEST),
    "one goes nowhere but up": ([RELU, SIN], 7, NEWEST),
    "one goes nowhere but down": ([RELU, DROPS], 1, 6),
}


@pytest.mark.parametrize(("models", "lowest", "highest"), CASES.values(), ids=CASES)
def test_where_models_meet(models: Sequence[onnx.ModelProto], lowest: int, highest: int) -> None:
    found = common_opset(models)
    assert (found.domain, found.lowest, found.highest) == ("ai.onnx", lowest, highest)
    assert len(found.reaches) == len(found.reports) == len(models)
    for model in models:
        assert {opset_of(convert_version(model, opset)) for opset in (lowest, highest)} == {lowest, highest}


def test_how_each_model_gets_there() -> None:
    clip = of("Clip", 10, min=0.0, max=1.0)
    first, second = common_opset([clip, of("Relu", NEWEST)]).reports
    assert [change.operator for change in first.changed] == ["ai.onnx.Clip:6"]
    assert (second.changed, second.opsets) == ((), ())


def test_without_an_opset_in_common_both_bounds_are_told() -> None:
    with pytest.raises(NoCommonOpset) as error:
        common_opset([RELU, DROPS, SIN])
    assert "models[2] stops at opset 7, models[1] at 6" in error.value.reason
    assert [(each.lowest, each.highest) for each in error.value.reaches] == [
        (1, NEWEST),
        (1, 6),
        (7, NEWEST),
    ]


def test_models_may_be_paths_and_bytes(tmp_path: Path) -> None:
    onnx.save(RELU, tmp_path / "relu.onnx")
    assert common_opset([tmp_path / "relu.onnx", SIN.SerializeToString()]).lowest == 7


def test_another_domain() -> None:
    node = helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=[0.0], scale=[1.0])
    model = build([node], {"x": np.zeros((2, 2), np.float32)}, ["y"], {"": 15, "ai.onnx.ml": 2})
    found = common_opset([model, model], "ai.onnx.ml")
    assert (found.domain, found.highest) == ("ai.onnx.ml", default_registry().newest_opset("ai.onnx.ml"))
    with pytest.raises(InvalidModel, match=r"does not import ai\.onnx\.ml"):
        common_opset([model, RELU], "ai.onnx.ml")


def test_no_models_have_no_opset() -> None:
    with pytest.raises(UsageError, match="no models are given"):
        common_opset([])
