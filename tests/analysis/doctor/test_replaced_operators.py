"""Correction of models with operators that their opset deprecates or no longer has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import helper
from support.execution import Feeds, assert_equal, build, op_types, run

import opshift
from opshift.analysis.doctor.diagnose import diagnose
from opshift.analysis.doctor.restamp import restamp
from opshift.model.errors import InvalidModel

ROUND = helper.make_node("Round", ["u"], ["y"])
"""Node of opset 11 or newer."""

CONSTANTS: Feeds = {"scales": np.array([1, 1, 2, 3], np.float32)}


def model_of(
    first: onnx.NodeProto, opset: int, others: Sequence[onnx.NodeProto] = (ROUND,)
) -> onnx.ModelProto:
    feeds = {"x": np.zeros((1, 2, 3, 4), np.float32)}
    return build([first, *others], feeds, ["y"], opset, initializers=CONSTANTS)


def upsample(opset: int) -> onnx.ModelProto:
    return model_of(helper.make_node("Upsample", ["x", "scales"], ["u"], mode="nearest"), opset)


def samples() -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    special = rng.standard_normal((1, 2, 3, 4)).astype(np.float32)
    special.flat[:4] = [np.nan, np.inf, -np.inf, -0.0]
    return [rng.standard_normal((1, 2, 3, 4)).astype(np.float32), special]


@pytest.mark.parametrize("opset", [11, 13, 18, 21])
def test_replaces_a_deprecated_operator_at_the_declared_opset(opset: int) -> None:
    model = upsample(opset)
    (stamp,) = diagnose(model).stamps
    assert (stamp.opset, stamp.opsets, stamp.fitting, stamp.replaced) == (opset, (), opset, ("Upsample",))
    assert not stamp.fits
    before = model.SerializeToString()
    fixed = restamp(model)
    assert model.SerializeToString() == before
    assert "Upsample" not in op_types(fixed)
    assert fixed.opset_import[0].version == opset
    assert diagnose(fixed).fits
    onnx.checker.check_model(onnx.shape_inference.infer_shapes(fixed))
    for x in samples():
        expected = x.repeat(2, 2).repeat(3, 3).round()
        assert_equal(run(fixed, {"x": x}), [expected])


def test_replaces_at_the_nearest_opset_that_the_other_nodes_allow() -> None:
    (stamp,) = diagnose(upsample(9)).stamps
    assert (stamp.fitting, stamp.replaced) == (11, ("Upsample",))
    fixed = restamp(upsample(9))
    assert fixed.opset_import[0].version == 11
    assert op_types(fixed) == ["Resize", "Round"]


def test_replaces_a_removed_operator() -> None:
    first = helper.make_node("ImageScaler", ["x"], ["u"], scale=2.0, bias=[1.0, 2.0])
    fixed = restamp(model_of(first, 13))
    assert diagnose(fixed).fits
    for x in samples():
        scaled = x * np.float32(2) + np.array([1, 2], np.float32).reshape(1, 2, 1, 1)
        assert_equal(run(fixed, {"x": x}), [scaled.round()])


def test_keeps_nodes_if_an_opset_has_all_operators() -> None:
    model = upsample(11)
    model.graph.node[1].CopyFrom(helper.make_node("Relu", ["u"], ["y"]))
    fixed = restamp(model)
    assert fixed.opset_import[0].version == 9
    assert op_types(fixed) == ["Upsample", "Relu"]


def test_replaces_in_place_or_not_at_all() -> None:
    model = upsample(13)
    assert restamp(model, inplace=True) is model
    assert diagnose(model).fits
    refused = upsample(13)
    refused.graph.node[0].attribute[0].s = b"cubic"  # no version of Upsample has it
    before = refused.SerializeToString()
    with pytest.raises((InvalidModel, opshift.ConversionRefused)):
        restamp(refused, inplace=True)
    assert refused.SerializeToString() == before


def test_refuses_an_operator_of_unknown_meaning() -> None:
    model = model_of(helper.make_node("ATen", ["x"], ["u"], operator="relu"), 13)
    with pytest.raises(InvalidModel, match=r"no opset of ai\.onnx is valid"):
        restamp(model)


def test_refuses_a_node_of_a_form_before_the_last_one() -> None:
    first = helper.make_node("Upsample", ["x"], ["u"], mode="nearest", scales=[1.0, 1.0, 2.0, 3.0])
    with pytest.raises(InvalidModel, match=r"no opset of ai\.onnx is valid"):
        restamp(model_of(first, 13))
