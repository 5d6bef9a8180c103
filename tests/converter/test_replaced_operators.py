"""Operators in models whose opset deprecates or no longer has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.execution import Feeds, assert_equal, build, op_types, run

import opshift
from opshift.registry.models import OperatorVersion
from opshift.registry.steps import Refuse


def misplaced(opset: int, *nodes: onnx.NodeProto, rank: int = 4) -> onnx.ModelProto:
    """Return a model with nodes that read `x` and constants."""
    feeds = {"x": np.zeros((1, 2, 3, 4)[-rank:], np.float32)}
    constants: Feeds = {
        "scales": np.array([1, 1, 2, 1.5], np.float32),
        "indices": np.array([[[[0, -1, 2, -3]]]], np.int64),
        "updates": np.array([[[[5, 6, 7, 8]]]], np.float32),
    }
    return build(nodes, feeds, ["y"], opset, initializers=constants)


def require_valid(model: onnx.ModelProto) -> None:
    """Raise ValidationError unless `onnx` accepts a model."""
    onnx.checker.check_model(onnx.shape_inference.infer_shapes(model))


def inputs() -> Iterator[np.ndarray]:
    """Yield inputs with random and special values."""
    rng = np.random.default_rng(3)
    yield rng.standard_normal((1, 2, 3, 4)).astype(np.float32)
    special = rng.standard_normal((1, 2, 3, 4)).astype(np.float32)
    special.flat[:4] = [np.nan, np.inf, -np.inf, -0.0]
    yield special


@pytest.mark.parametrize("opset", [10, 11, 13, 19])
@pytest.mark.parametrize("target", [10, 11, 13, 18, 21])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_upsample_becomes_the_resize_of_its_last_opset(opset: int, target: int, mode: str) -> None:
    model = misplaced(opset, helper.make_node("Upsample", ["x", "scales"], ["y"], mode=mode))
    found = opshift.convert_version(model, target)
    assert op_types(found)[-1] == "Resize"
    require_valid(found)
    original = misplaced(9, helper.make_node("Upsample", ["x", "scales"], ["y"], mode=mode))
    for x in inputs():
        assert_equal(run(found, {"x": x}), run(original, {"x": x}))


@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize("target", [11, 16, 21])
def test_scatter_becomes_scatter_elements(opset: int, target: int) -> None:
    model = misplaced(opset, helper.make_node("Scatter", ["x", "indices", "updates"], ["y"], axis=2))
    found = opshift.convert_version(model, target)
    assert op_types(found) == ["ScatterElements"]
    require_valid(found)
    for x in inputs():
        expected = x.copy()
        for column, (row, value) in enumerate([(0, 5), (-1, 6), (2, 7), (-3, 8)]):
            expected[0, 0, row, column] = value
        assert_equal(run(found, {"x": x}), [expected])


def removed_operators() -> Iterator[OperatorVersion]:
    for operator in opshift.default_registry().operators(""):
        removal = operator.versions[-1].removal
        if removal and not isinstance(removal.up, Refuse):
            yield operator.versions[-1]


def legacy_node(name: str, output: str = "y", data: str = "x") -> onnx.NodeProto:
    special: Mapping[str, Mapping[str, Any]] = {
        "ConstantFill": {"shape": [2, 2]},
        "GivenTensorFill": {"shape": [2, 2], "values": [1.0, 2.0, 3.0, 4.0]},
        "Crop": {"border": [0, 0, 1, 1]},
        "ImageScaler": {"scale": 2.0, "bias": [1.0, 2.0]},
        "Scale": {"scale": 3.0},
    }
    attributes = special.get(name, {"alpha": 2.0, "beta": 3.0})
    if name in ("ConstantFill", "GivenTensorFill"):
        return helper.make_node(name, [], [output], **attributes)
    if name == "DynamicSlice":
        return helper.make_node(name, [data, "starts", "ends"], [output])
    return helper.make_node(name, [data], [output], **attributes)


@pytest.mark.parametrize("version", [*removed_operators()], ids=lambda each: each.name)
@pytest.mark.parametrize("opset", [10, 13, 21])
def test_removed_operators_mean_what_they_meant_before(version: OperatorVersion, opset: int) -> None:
    assert version.removal is not None
    models = []
    for declared in (version.removal.removed_in - 1, opset):
        model = misplaced(declared, legacy_node(version.name))
        for name in ("starts", "ends"):
            value = [0, 0, 0, 0] if name == "starts" else [1, 1, 2, 3]
            model.graph.initializer.append(helper.make_tensor(name, 7, [4], value))
        models.append(opshift.convert_version(model, 21))
    before, after = models
    assert op_types(after) == op_types(before)
    assert after.graph == before.graph
    require_valid(after)


CHAINS = {
    "types": [legacy_node("Crop", "a"), legacy_node("ImageScaler", "y", "a")],
    "ranks": [legacy_node("Crop", "a"), helper.make_node("Softmax", ["a"], ["y"], axis=3)],
    "types of each result": [
        legacy_node("Affine", "a"),
        legacy_node("ScaledTanh", "b", "a"),
        legacy_node("ParametricSoftplus", "c", "b"),
        legacy_node("Scale", "y", "c"),
    ],
}


@pytest.mark.parametrize("nodes", CHAINS.values(), ids=CHAINS)
@pytest.mark.parametrize("opset", [10, 11, 12])
def test_converts_nodes_that_read_results_of_removed_operators(
    opset: int, nodes: list[onnx.NodeProto]
) -> None:
    before = misplaced(9, *nodes)
    found, expected = (opshift.convert_version(misplaced(each, *nodes), 13) for each in (opset, 9))
    assert found.graph == expected.graph
    require_valid(found)
    for x in inputs():
        assert_equal(run(found, {"x": x}), run(before, {"x": x}))


def test_a_model_at_an_opset_with_the_operator_keeps_it() -> None:
    model = misplaced(13, legacy_node("ImageScaler"))
    assert op_types(opshift.convert_version(model, 9)) == ["ImageScaler"]
    model = misplaced(13, helper.make_node("Upsample", ["x", "scales"], ["y"], mode="nearest"))
    assert op_types(opshift.convert_version(model, 9)) == ["Upsample"]


def test_an_operator_of_unknown_meaning_is_refused() -> None:
    model = misplaced(13, helper.make_node("ATen", ["x"], ["y"], operator="relu"))
    with pytest.raises(opshift.ConversionRefused, match="calls a function of PyTorch"):
        opshift.convert_version(model, 17)
