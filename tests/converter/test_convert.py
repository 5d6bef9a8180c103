"""`convert_version`: what may be given, what comes back, and what is left alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.running import assert_equal, build, op_types, opset_of, run

from opshift.converter.convert import convert, convert_version, plan_version
from opshift.converter.errors import ConversionRefused
from opshift.converter.target import TargetLike
from opshift.model.errors import InvalidModel, UsageError
from opshift.model.messages import ModelProto
from opshift.registry.registry import default_registry

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(2, 6)


def clipper(opset: int = 9) -> onnx.ModelProto:
    """Clip and Softmax change on the way up, Relu does not."""
    nodes = [
        helper.make_node("Clip", ["x"], ["c"], "clip", min=-1.0, max=1.0),
        helper.make_node("Relu", ["c"], ["r"], "relu"),
        helper.make_node("Softmax", ["r"], ["y"], "softmax", axis=1),
    ]
    return build(nodes, {"x": X}, ["y"], opset, ir_version=4)


def refused() -> onnx.ModelProto:
    """No later Dropout drops anything without being told to train, so this one has nowhere to go."""
    nodes = [
        helper.make_node("Clip", ["x"], ["c"], min=0.0, max=1.0),
        helper.make_node("Dropout", ["c"], ["y"], is_test=0),
    ]
    return build(nodes, {"x": X}, ["y"], 6)


def learned(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with a classifier in front, for targets of two domains."""
    scaler = helper.make_node("Scaler", ["x"], ["s"], domain="ai.onnx.ml", offset=[0.0], scale=[1.0])
    model.graph.node.insert(0, scaler)
    model.graph.node[1].input[0] = "s"
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 2))
    return model


def to_own(model: onnx.ModelProto) -> ModelProto:
    return ModelProto.FromString(model.SerializeToString())


def is_converted(model: Any) -> bool:
    return opset_of(model) == 13 and len(model.graph.node[0].input) == 3


class TestWhatIsGivenComesBack:
    """The result has the kind of the argument, and the argument stays as it is."""

    def test_an_onnx_model_gives_an_onnx_model(self) -> None:
        result = convert_version(clipper(), 13)
        assert type(result) is onnx.ModelProto
        assert is_converted(result)

    def test_the_projects_model_gives_the_projects_model(self) -> None:
        result = convert_version(to_own(clipper()), 13)
        assert type(result) is ModelProto
        assert is_converted(result)

    @pytest.mark.parametrize(
        "kind", [bytes, bytearray, memoryview], ids=["as bytes", "as a bytearray", "as a memoryview"]
    )
    def test_bytes_give_bytes(self, kind: type) -> None:
        result = convert_version(kind(clipper().SerializeToString()), 13)
        assert type(result) is bytes
        assert is_converted(onnx.ModelProto.FromString(result))

    @pytest.mark.parametrize("kind", [str, Path], ids=["as text", "as a Path"])
    def test_a_path_gives_the_projects_model_and_leaves_the_file(self, kind: type, tmp_path: Path) -> None:
        path = tmp_path / "model.onnx"
        path.write_bytes(clipper().SerializeToString())
        result = convert_version(kind(path), 13)
        assert type(result) is ModelProto
        assert is_converted(result)
        assert path.read_bytes() == clipper().SerializeToString()

    def test_every_kind_gives_the_same_bytes(self) -> None:
        model = clipper()
        results = [
            convert_version(model, 13).SerializeToString(),
            convert_version(to_own(model), 13).SerializeToString(),
            convert_version(model.SerializeToString(), 13),
        ]
        assert results[0] == results[1] == results[2]

    def test_the_result_gives_the_same_numbers(self) -> None:
        feeds = {"x": X}
        assert_equal(run(convert_version(clipper(), 13), feeds), run(clipper(), feeds))

    @pytest.mark.parametrize("make", [onnx.ModelProto.FromString, ModelProto.FromString], ids=["onnx", "own"])
    def test_the_argument_is_left_as_it_is(self, make: Any) -> None:
        model = make(clipper().SerializeToString())
        before = model.SerializeToString()
        convert_version(model, 13)
        convert(model, 13)
        plan_version(model, 13)
        assert model.SerializeToString() == before

    def test_a_refused_argument_is_left_as_it_is(self) -> None:
        model = refused()
        before = model.SerializeToString()
        with pytest.raises(ConversionRefused):
            convert_version(model, 13)
        assert model.SerializeToString() == before

    @pytest.mark.parametrize("target", [9, {"ai.onnx": 9}, {"": 9}, "9"], ids=str)
    def test_a_model_that_is_there_already_is_byte_for_byte_the_same(self, target: TargetLike) -> None:
        model = clipper()
        before = model.SerializeToString()
        assert convert_version(model, target).SerializeToString() == before
        assert convert_version(before, target) == before


class TestInPlace:
    """`inplace=True` changes the object that was given."""

    @pytest.mark.parametrize("make", [onnx.ModelProto.FromString, ModelProto.FromString], ids=["onnx", "own"])
    def test_the_same_object_is_converted(self, make: Any) -> None:
        model = make(clipper().SerializeToString())
        expected = convert_version(model, 13).SerializeToString()
        assert convert_version(model, 13, inplace=True) is model
        assert model.SerializeToString() == expected

    def test_nothing_is_copied(self) -> None:
        """Weights and nodes that stay are the very messages that were there."""
        model = clipper()
        model.graph.initializer.append(helper.make_tensor("w", 1, [2], [1.0, 2.0]))
        graph, weight, relu = model.graph, model.graph.initializer[0], model.graph.node[1]
        convert_version(model, 13, inplace=True)
        assert model.graph is graph
        assert any(each is weight for each in model.graph.initializer)
        assert any(each is relu for each in model.graph.node)

    def test_a_refused_model_is_not_touched(self) -> None:
        model = refused()
        before = model.SerializeToString()
        with pytest.raises(ConversionRefused):
            convert_version(model, 13, inplace=True)
        assert model.SerializeToString() == before

    def test_a_wrong_target_touches_nothing(self) -> None:
        model = clipper()
        before = model.SerializeToString()
        with pytest.raises(UsageError):
            convert_version(model, {"": True}, inplace=True)
        assert model.SerializeToString() == before

    def test_the_report_is_the_same_as_of_a_copy(self) -> None:
        model = clipper()
        for node in model.graph.node:
            node.ClearField("name")
        report = convert(model, 13).report
        assert convert(model, 13, inplace=True).report == report


TARGETS: list[tuple[str, TargetLike, dict[str, int]]] = [
    ("a number", 17, {"": 17, "ai.onnx.ml": 2}),
    ("a number as text", "17", {"": 17, "ai.onnx.ml": 2}),
    ("a mapping", {"": 17, "ai.onnx.ml": 3}, {"": 17, "ai.onnx.ml": 3}),
    ("a mapping that spells the domain out", {"ai.onnx": 17}, {"": 17, "ai.onnx.ml": 2}),
    ("a domain and its opset", "ai.onnx.ml=3", {"": 9, "ai.onnx.ml": 3}),
    ("the default domain and its opset", "ai.onnx=17", {"": 17, "ai.onnx.ml": 2}),
    ("a release of ONNX", "onnx-1.12", {"": 17, "ai.onnx.ml": 3}),
    ("a patch release of ONNX", "onnx-1.12.1", {"": 17, "ai.onnx.ml": 3}),
    ("a release of onnxruntime", "onnxruntime-1.14", {"": 18, "ai.onnx.ml": 3}),
    ("several texts", ["17", "ai.onnx.ml=3"], {"": 17, "ai.onnx.ml": 3}),
    ("a release and what it says anyway", ("onnx-1.12", "17"), {"": 17, "ai.onnx.ml": 3}),
    ("an iterator of texts", iter(["17"]), {"": 17, "ai.onnx.ml": 2}),
]


@pytest.mark.parametrize(
    ("target", "expected"), [row[1:] for row in TARGETS], ids=[row[0] for row in TARGETS]
)
def test_a_target_may_be(target: TargetLike, expected: dict[str, int]) -> None:
    result = convert_version(learned(clipper()), target)
    assert {each.domain: each.version for each in result.opset_import} == expected


def test_target_version_is_target_as_onnx_spells_it() -> None:
    model = clipper()
    assert convert_version(model, target_version=13) == convert_version(model, 13)


@pytest.mark.parametrize(
    "arguments",
    [{}, {"target": 13, "target_version": 13}, {"target": None}, {"target_version": None}],
    ids=["neither", "both", "a target that is None", "a target_version that is None"],
)
def test_exactly_one_target_is_to_be_given(arguments: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        convert_version(clipper(), **arguments)
    assert caught.value.remedy


def test_conversion_tells_what_it_did() -> None:
    model, report = convert(clipper(), 13)
    assert is_converted(model)
    assert [each.operator for each in report.changed] == ["ai.onnx.Clip:6", "ai.onnx.Softmax:1"]
    assert report.refusals == ()


def test_bytes_and_paths_are_converted_with_a_report_too(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(clipper().SerializeToString())
    from_path, from_bytes = convert(path, 13), convert(path.read_bytes(), 13)
    assert from_path == from_bytes
    assert type(from_bytes.model) is ModelProto


def test_a_plan_changes_nothing_and_raises_nothing_when_nodes_are_refused() -> None:
    model = refused()
    before = model.SerializeToString()
    plan = plan_version(model, 13)
    assert len(plan.refusals) == 1
    assert model.SerializeToString() == before


def test_a_registry_of_ones_own_is_used() -> None:
    registry = default_registry()
    assert convert_version(clipper(), 13, registry=registry) == convert_version(clipper(), 13)


def test_two_conversions_share_nothing() -> None:
    """Routes are kept between conversions, values and names are not."""
    first = convert_version(clipper(), 13)
    other = build([helper.make_node("Clip", ["const"], ["y"], min=0.0)], {"const": X}, ["y"], 9)
    convert_version(other, 13)
    assert convert_version(clipper(), 13) == first


def test_down_is_converted_as_up_is() -> None:
    nodes = [helper.make_node("Squeeze", ["x", "axes"], ["y"])]
    model = build(nodes, {"x": X[None]}, ["y"], 13, initializers={"axes": np.array([0])})
    result = convert_version(model, 11)
    assert op_types(result) == ["Squeeze"]
    assert_equal(run(result, {"x": X[None]}), run(model, {"x": X[None]}))


WITHOUT_ONNX = """
import sys
import opshift
given = {given}
result = opshift.convert_version(given, 13)
assert opshift.convert(given, 13).report.changed
loaded = [name for name in ("onnx", "onnxruntime", "numpy") if name in sys.modules]
assert not loaded, loaded
"""


@pytest.mark.parametrize("given", ["open({path!r}, 'rb').read()", "{path!r}"], ids=["bytes", "a path"])
def test_converting_needs_neither_onnx_nor_numpy(given: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(clipper().SerializeToString())
    script = WITHOUT_ONNX.format(given=given.format(path=str(path)))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidModel) as caught:
        convert_version(tmp_path / "absent.onnx", 13)
    assert "absent.onnx" in str(caught.value)
