"""Initializers stop being graph inputs when the IR version rises from below 4, and return below it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.execution import assert_equal, build, op_types, run
from support.ir_models import X, node
from support.reversible import serialized

from opshift import check, compare, convert, convert_version, plan_version
from opshift.analysis.verification.verify import verify
from opshift.batch.convert_many import convert_many
from opshift.converter.streaming.convert_file import convert_file
from opshift.model.errors import UsageError

W = np.full((2, 3), 2, np.float32)


def old_model(opset: int = 8) -> onnx.ModelProto:
    """Build a model of IR version 3, with a weight, and a shape that Reshape reads, before the data."""
    nodes = [
        node("Mul", ["x", "w"], ["m"]),
        node("Reshape", ["m", "shape"], ["r"]),
        node("Clip", ["r"], ["y"], min=0.0),
    ]
    weights = {"w": W, "shape": np.array([3, 2])}
    feeds = {"w": W, "x": X, "shape": weights["shape"]}
    model = build(nodes, feeds, ["y"], opset, ir_version=3, initializers=weights)
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 2]))
    return model


def inputs(model: Any) -> list[str]:
    return [each.name for each in model.graph.input]


@pytest.mark.parametrize("target", [9, 13, 21, "onnx-1.13"])
def test_initializers_stop_being_inputs(target: int | str) -> None:
    model = old_model()
    converted = convert(model, target)
    result = converted.model
    onnx.checker.check_model(result, full_check=True)
    assert inputs(result) == ["x"]
    assert {"w", "shape"} <= {each.name for each in result.graph.initializer}
    assert_equal(run(result, {"x": X}), run(model, {"x": X}))
    assert any(
        "2 initializers are removed from the graph inputs" in each for each in converted.report.ir_steps
    )
    assert plan_version(model, target).ir.steps() == converted.report.ir_steps


@pytest.mark.parametrize("target", [8, 7])
def test_initializers_stay_inputs_below_ir_version_4(target: int) -> None:
    assert inputs(convert_version(old_model(), target)) == inputs(old_model())


def test_initializers_stay_inputs_if_the_ir_version_does() -> None:
    result = convert_version(old_model(), 13, ir_version="keep")
    assert inputs(result)[:3] == inputs(old_model())


def test_initializers_stay_inputs_of_newer_models() -> None:
    model = old_model(9)
    model.ir_version = 4
    converted = convert(model, 13)
    assert inputs(converted.model) == inputs(model)
    assert not converted.report.ir_steps


def test_freed_initializers_are_constants_for_steps() -> None:
    """Upsample-9 becomes Resize only with constant scales, and the replaced constant disappears."""
    nodes = [node("Unsqueeze", ["x"], ["u"], axes=[0]), node("Upsample", ["u", "scales"], ["y"])]
    scales = np.array([1, 1, 2], np.float32)
    feeds = {"x": X, "scales": scales}
    model = build(nodes, feeds, ["y"], 9, ir_version=3, initializers={"scales": scales})
    result = convert_version(model, 10)
    assert "scales" not in inputs(result)
    squeeze = build([node("Squeeze", ["x", "axes"], ["y"])], {"x": X[None], "axes": X}, ["y"], 13)
    del squeeze.graph.input[1]
    squeeze.graph.initializer.append(numpy_helper.from_array(np.array([0]), "axes"))
    squeeze.graph.input.append(helper.make_tensor_value_info("axes", TensorProto.INT64, [1]))
    squeeze.ir_version = 3
    raised = convert_version(squeeze, 21)
    assert inputs(raised) == ["x"]
    assert_equal(run(raised, {"x": X[None]}), [X])


def test_subgraphs_read_freed_initializers() -> None:
    branch = helper.make_graph(
        [node("Add", ["x", "w"], ["b"])],
        "b",
        [],
        [helper.make_tensor_value_info("b", TensorProto.FLOAT, None)],
    )
    nodes = [node("If", ["yes"], ["y"], then_branch=branch, else_branch=branch)]
    feeds = {"x": X, "yes": np.array(True), "w": W}
    model = build(nodes, feeds, ["y"], 8, ir_version=3, initializers={"w": W})
    result = convert_version(model, 13)
    assert inputs(result) == ["x", "yes"]
    assert_equal(run(result, {"x": X, "yes": np.array(True)}), [X + W])


def test_output_may_be_a_freed_initializer() -> None:
    model = old_model()
    model.graph.output.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [2, 3]))
    result = convert_version(model, 13)
    assert inputs(result) == ["x"]
    assert_equal(run(result, {"x": X}), run(model, {"x": X}))


def declaration(
    doc: str = "", *, dims: Sequence[int | str] | None = (2, 3), kind: int = TensorProto.FLOAT
) -> onnx.ValueInfoProto:
    value: onnx.ValueInfoProto = helper.make_tensor_value_info("w", kind, dims, doc)
    return value


def with_denotation(*, is_of_dim: bool) -> onnx.ValueInfoProto:
    value = declaration()
    owner = value.type.tensor_type.shape.dim[0] if is_of_dim else value.type
    owner.denotation = "DATA_BATCH" if is_of_dim else "IMAGE"
    return value


DECLARATIONS = {
    "sizes only": (declaration(), False),
    "doc string": (declaration("weights of layer 1"), True),
    "denotation": (with_denotation(is_of_dim=False), True),
    "denotation of a dimension": (with_denotation(is_of_dim=True), True),
    "name of a dimension": (declaration(dims=("rows", 3)), True),
}


@pytest.mark.parametrize(("value", "is_kept"), DECLARATIONS.values(), ids=DECLARATIONS)
def test_value_info_keeps_descriptions(value: onnx.ValueInfoProto, is_kept: bool) -> None:
    """An initializer has no such fields, so the declaration of the input moves to `value_info` and back."""
    model = old_model()
    model.graph.input[0].CopyFrom(value)
    raised = convert_version(model, ir_version=8)
    onnx.checker.check_model(raised, full_check=True)
    assert list(raised.graph.value_info) == [value] * is_kept
    assert [each.rule for each in check(raised)] == [each.rule for each in check(model)]
    lowered = convert_version(raised, ir_version=3)
    onnx.checker.check_model(lowered, full_check=True)
    assert not lowered.graph.value_info
    assert [each for each in lowered.graph.input if each.name == "w"] == [value]
    for each in (raised, lowered):
        assert_equal(run(each, {"x": X}), run(model, {"x": X}))


def test_value_info_keeps_its_own_declaration() -> None:
    model = old_model()
    model.graph.input[0].CopyFrom(declaration("input"))
    model.graph.value_info.append(declaration("value_info"))
    assert list(convert_version(model, 13).graph.value_info) == [declaration("value_info")]


WRONG = {
    "type": declaration("kept", kind=TensorProto.DOUBLE),
    "rank": declaration("kept", dims=[6]),
    "size": declaration("kept", dims=["rows", 4]),
    "no shape": declaration("kept", dims=None),
}


@pytest.mark.parametrize("value", WRONG.values(), ids=WRONG)
def test_inputs_get_no_wrong_declaration(value: onnx.ValueInfoProto) -> None:
    raised = convert_version(old_model(), ir_version=8)
    raised.graph.value_info.append(value)
    lowered = convert_version(raised, ir_version=3)
    assert list(lowered.graph.value_info) == [value]
    assert [each for each in lowered.graph.input if each.name == "w"] == [declaration()]


def test_conversion_back_adds_the_inputs() -> None:
    result = convert_version(convert_version(old_model(), 13), 8)
    assert result.ir_version == 3
    assert sorted(inputs(result)[1:3]) == ["shape", "w"]
    onnx.checker.check_model(result, full_check=True)
    assert_equal(run(result, {"x": X}), run(old_model(), {"x": X}))


def test_reversible_conversion_restores_the_inputs() -> None:
    """The inputs return to their positions, with their doc strings."""
    model = old_model()
    model.graph.input[0].doc_string = "the weight"
    up = convert_version(model, 13, reversible=True)
    assert inputs(up) == ["x"]
    assert op_types(up) == op_types(model)
    assert serialized(convert_version(up, 8)) == serialized(model)
    later = convert_version(convert_version(up, 21, reversible=True), 8)
    assert serialized(later) == serialized(model)
    lower = convert_version(up, 7)
    assert inputs(lower) == inputs(model)
    assert lower.graph.input[0] == model.graph.input[0]


def test_reversible_conversion_restores_no_wrong_declaration() -> None:
    up = convert_version(old_model(), 13, reversible=True)
    weight = next(each for each in up.graph.initializer if each.name == "w")
    weight.CopyFrom(numpy_helper.from_array(np.full((1, 3), 2, np.float32), "w"))
    result = convert_version(up, 8)
    onnx.checker.check_model(result)
    assert [each.dim_value for each in result.graph.input[0].type.tensor_type.shape.dim] == [1, 3]
    assert inputs(result) == inputs(old_model())


def test_compare_requires_no_major_version_for_freed_initializers() -> None:
    """Runtimes treat these inputs as constants before and after the conversion."""
    model = old_model()
    result = convert_version(model, 13, bump=True)
    found = compare(model, result)
    assert found.required.name == "MINOR"
    assert not any("INPUT" in each.rule for each in found.changes)
    result.graph.initializer[0].CopyFrom(numpy_helper.from_array(W + 1, "w"))
    assert [each.rule for each in compare(model, result).changes if "INPUT" in each.rule] == [
        "INPUT_DEFAULT_CHANGED"
    ]
    kept = convert_version(model, 13, keep_initializer_inputs=True)
    del kept.graph.input[0]
    del kept.graph.initializer[0]
    assert "INPUT_REMOVED" in [each.rule for each in compare(model, kept).changes]


def test_verify_explains_values_of_freed_initializers() -> None:
    model = old_model()
    assert verify(model, convert_version(model, 13)).equal
    with pytest.raises(UsageError, match="'w' is a constant of the converted model"):
        verify(model, convert_version(model, 13), {"w": W}, runtime="reference")
    kept = convert_version(model, 13, keep_initializer_inputs=True)
    assert verify(model, kept, {"w": W + 1}, runtime="reference").equal


@pytest.mark.parametrize("keeps", [False, True])
def test_all_entry_points_agree(keeps: bool, tmp_path: Path) -> None:
    model, out = old_model(), tmp_path / "out"
    expected = convert_version(model, 13, keep_initializer_inputs=keeps)
    assert inputs(expected) == (["w", "x", "shape"] if keeps else ["x"])
    onnx.save(model, tmp_path / "m.onnx")
    convert_file(tmp_path / "m.onnx", tmp_path / "n.onnx", 13, keep_initializer_inputs=keeps)
    assert onnx.load(tmp_path / "n.onnx") == expected
    assert (
        onnx.load_from_string(convert_version(model.SerializeToString(), 13, keep_initializer_inputs=keeps))
        == expected
    )
    (outcome,) = convert_many([tmp_path / "m.onnx"], 13, out, keep_initializer_inputs=keeps)
    assert outcome.report
    assert onnx.load(out / "m.onnx") == expected
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    assert convert_version(copy, 13, inplace=True, keep_initializer_inputs=keeps) is copy
    assert copy == expected
