"""`opshift.compat.version_converter` has the signature, errors and shapes of `onnx.version_converter`."""

from __future__ import annotations

import inspect
import pickle
import sys
from typing import Any

import numpy as np
import onnx
import onnx.version_converter as theirs
import pytest
from onnx.parser import parse_model
from support.execution import opset_of, run
from test_public_api import modules_after

import opshift
import opshift.compat.version_converter as ours

SOFTMAX = """
<ir_version: 7, opset_import: ["": 11]>
g (float[2, 3, 4] x) => (float[] y) <float[4] w = {1.0, 2.0, 3.0, 4.0}> {
    a = Add (x, w)
    y = Softmax <axis = 1> (a)
}
"""
BRANCHES = """
<ir_version: 8, opset_import: ["": 12, "local": 1]>
g (float[2, 3] x, bool[1] c) => (float[] y) {
    y = If (c) <then_branch = t () => (float[] p) { p = local.total (x) },
                else_branch = e () => (float[] q) { q = ReduceSum <axes = [0], keepdims = 0> (x) }>
}
<domain: "local", opset_import: ["": 12]>
total (x) => (y) { y = ReduceSum <axes = [0], keepdims = 0> (x) }
"""
UNCONVERTIBLE = """
<ir_version: 9, opset_import: ["": 20]>
g (uint8[N] x) => (uint8[H, W, 3] y) { y = ImageDecoder (x) }
"""
INPUT = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def _shape(value: onnx.ValueInfoProto) -> list[int]:
    return [each.dim_value for each in value.type.tensor_type.shape.dim]


def test_has_the_names_and_parameters_of_onnx() -> None:
    assert set(ours.__all__) == {"ConvertError", "convert_version"}
    assert all(hasattr(theirs, name) for name in ours.__all__)
    assert list(inspect.signature(ours.convert_version).parameters) == list(
        inspect.signature(theirs.convert_version).parameters
    )


@pytest.mark.parametrize("target", [8, 10, 13, 21])
def test_result_is_executed_with_the_same_output(target: int) -> None:
    model = parse_model(SOFTMAX)
    given = model.SerializeToString()
    result = ours.convert_version(model, target_version=target)
    assert type(result) is onnx.ModelProto
    assert opset_of(result) == target
    onnx.checker.check_model(result, full_check=True)
    np.testing.assert_allclose(run(result, {"x": INPUT})[0], run(model, {"x": INPUT})[0], rtol=1e-6)
    assert model.SerializeToString() == given


@pytest.mark.parametrize("target", [11, 13])
def test_result_has_the_shapes_that_onnx_adds(target: int) -> None:
    model = parse_model(SOFTMAX)
    found, expected = (each.convert_version(model, target) for each in (ours, theirs))
    assert _shape(found.graph.output[0]) == _shape(expected.graph.output[0]) == [2, 3, 4]
    shapes = {each.name: _shape(each) for each in found.graph.value_info}
    assert shapes["a"] == [2, 3, 4]
    assert not model.graph.value_info


@pytest.mark.parametrize(("output", "passes"), [("float[2, 3, 4] y", 1), ("float[] y", 2)])
def test_infers_shapes_of_the_source_only_if_an_output_has_none(
    output: str, passes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each pass serializes all weights."""
    models = []
    infer_shapes = onnx.shape_inference.infer_shapes

    def counted(model: onnx.ModelProto) -> onnx.ModelProto:
        models.append(model)
        return infer_shapes(model)

    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", counted)
    result = ours.convert_version(parse_model(SOFTMAX.replace("float[] y", output)), 13)
    assert _shape(result.graph.output[0]) == [2, 3, 4]
    assert len(models) == passes


@pytest.mark.parametrize(("condition", "target"), [(True, 13), (False, 13), (True, 10), (False, 10)])
def test_converts_branches_and_functions(condition: bool, target: int) -> None:
    model = parse_model(BRANCHES)
    feeds = {"x": INPUT[:, :, 0], "c": np.array([condition])}
    result = ours.convert_version(model, target)
    np.testing.assert_array_equal(run(result, feeds)[0], feeds["x"].sum(axis=0))
    assert _shape(result.graph.output[0]) == [3]


def test_keeps_the_result_if_onnx_cannot_infer_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(model: onnx.ModelProto) -> onnx.ModelProto:
        raise onnx.shape_inference.InferenceError("larger than 2 GiB")

    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", fail)
    model = parse_model(SOFTMAX)
    assert ours.convert_version(model, 13) == opshift.convert_version(model, 13)


def test_adds_no_shapes_without_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    model = opshift.ModelProto.FromString(parse_model(SOFTMAX).SerializeToString())
    expected = opshift.convert_version(model, 13)
    assert ours.convert_version(model, 13) == expected
    monkeypatch.delitem(sys.modules, "onnx")
    result = ours.convert_version(model, 13)
    assert result == expected
    assert type(result) is opshift.ModelProto


def test_conversion_does_not_import_onnx() -> None:
    loaded = modules_after(
        "import opshift; from opshift.compat import version_converter as v\n"
        "m = opshift.ModelProto(); m.ir_version = 8; m.graph.name = 'g'; m.opset_import.add().version = 13\n"
        "assert v.convert_version(m, 17).opset_import[0].version == 17"
    )
    assert not loaded & {"onnx", "numpy", "pydantic", "yaml", "networkx", "rich"}


@pytest.mark.parametrize("model", [b"", "model.onnx", None, onnx.GraphProto(), onnx.FunctionProto()])
def test_rejects_other_models_like_onnx(model: Any) -> None:
    for each in (ours, theirs):
        with pytest.raises(TypeError):
            each.convert_version(model, 17)
    with pytest.raises(TypeError, match=f"expected a ModelProto as model, got {type(model).__name__}"):
        ours.convert_version(model, 17)


@pytest.mark.parametrize("target", ["17", 17.0, None, np.int64(17), {"": 17}])
def test_rejects_other_targets_like_onnx(target: Any) -> None:
    model = parse_model(SOFTMAX)
    for each in (ours, theirs):
        with pytest.raises(TypeError):
            each.convert_version(model, target)
    with pytest.raises(TypeError, match="expected an integer as target_version, got "):
        ours.convert_version(model, target)


@pytest.mark.parametrize("target", [0, -1, 99])
def test_raises_convert_error_for_opsets_that_do_not_exist(target: int) -> None:
    model = parse_model(SOFTMAX)
    with pytest.raises(RuntimeError):
        theirs.convert_version(model, target)
    with pytest.raises(ours.ConvertError, match=str(target)) as caught:
        ours.convert_version(model, target)
    assert isinstance(caught.value.__cause__, opshift.OpshiftError)


def test_convert_error_has_reason_and_remedy() -> None:
    model = parse_model(UNCONVERTIBLE)
    with pytest.raises(RuntimeError):
        theirs.convert_version(model, 13)
    with pytest.raises(ours.ConvertError, match="ImageDecoder") as caught:
        ours.convert_version(model, 13)
    assert isinstance(caught.value.__cause__, opshift.ConversionRefused)
    assert str(caught.value) == str(caught.value.__cause__)
    copied = pickle.loads(pickle.dumps(caught.value))
    assert type(copied) is ours.ConvertError
    assert str(copied) == str(caught.value)


def test_convert_error_for_an_invalid_model() -> None:
    with pytest.raises(RuntimeError):
        theirs.convert_version(onnx.ModelProto(), 13)
    with pytest.raises(ours.ConvertError) as caught:
        ours.convert_version(onnx.ModelProto(), 13)
    assert isinstance(caught.value.__cause__, opshift.InvalidModel)
