"""`convert_version`: accepted arguments, results, and what stays unchanged."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, parser
from support.execution import assert_equal, build, op_types, opset_of, run

from opshift.converter.convert import convert, convert_version, plan_version
from opshift.converter.options import TargetLike
from opshift.converter.refusals import ConversionRefused
from opshift.model.errors import InvalidModel, UsageError
from opshift.model.messages import ModelProto
from opshift.registry.registry import default_registry

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(2, 6)


def upgradable_model(opset: int = 9) -> onnx.ModelProto:
    """Return a model in which an upgrade changes Clip and Softmax but not Relu."""
    model: onnx.ModelProto = parser.parse_model(f"""
    <ir_version: 4, opset_import: ["": {opset}]>
    upgradable (float[2, 6] x) => (float[] y) {{
        [clip] c = Clip <min = -1.0, max = 1.0> (x)
        [relu] r = Relu (c)
        [softmax] y = Softmax <axis = 1> (r)
    }}
    """)
    return model


def refused_model() -> onnx.ModelProto:
    """Return a model that cannot be upgraded: later Dropout versions drop elements only in training mode."""
    model: onnx.ModelProto = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 6]>
    refused (float[2, 6] x) => (float[] y) {
        c = Clip <min = 0.0, max = 1.0> (x)
        y = Dropout <is_test = 0> (c)
    }
    """)
    return model


def with_scaler(model: onnx.ModelProto) -> onnx.ModelProto:
    """Insert a Scaler in front of the model, for targets of two domains."""
    scaler = helper.make_node("Scaler", ["x"], ["s"], domain="ai.onnx.ml", offset=[0.0], scale=[1.0])
    model.graph.node.insert(0, scaler)
    model.graph.node[1].input[0] = "s"
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 2))
    return model


def to_opshift(model: onnx.ModelProto) -> ModelProto:
    return ModelProto.FromString(model.SerializeToString())


def is_converted(model: Any) -> bool:
    return opset_of(model) == 13 and len(model.graph.node[0].input) == 3


class TestResultType:
    """The result has the type of the argument, and the argument stays unchanged."""

    def test_returns_an_onnx_model_for_an_onnx_model(self) -> None:
        result = convert_version(upgradable_model(), 13)
        assert type(result) is onnx.ModelProto
        assert is_converted(result)

    def test_returns_an_opshift_model_for_an_opshift_model(self) -> None:
        result = convert_version(to_opshift(upgradable_model()), 13)
        assert type(result) is ModelProto
        assert is_converted(result)

    @pytest.mark.parametrize(
        "buffer_type", [bytes, bytearray, memoryview], ids=["bytes", "bytearray", "memoryview"]
    )
    def test_returns_bytes_for_buffers(self, buffer_type: type) -> None:
        result = convert_version(buffer_type(upgradable_model().SerializeToString()), 13)
        assert type(result) is bytes
        assert is_converted(onnx.ModelProto.FromString(result))

    @pytest.mark.parametrize("path_type", [str, Path], ids=["str", "Path"])
    def test_returns_an_opshift_model_for_a_path_and_keeps_the_file(
        self, path_type: type, tmp_path: Path
    ) -> None:
        path = tmp_path / "model.onnx"
        path.write_bytes(upgradable_model().SerializeToString())
        result = convert_version(path_type(path), 13)
        assert type(result) is ModelProto
        assert is_converted(result)
        assert path.read_bytes() == upgradable_model().SerializeToString()

    def test_result_is_the_same_for_every_argument_type(self) -> None:
        model = upgradable_model()
        results = [
            convert_version(model, 13).SerializeToString(),
            convert_version(to_opshift(model), 13).SerializeToString(),
            convert_version(model.SerializeToString(), 13),
        ]
        assert results[0] == results[1] == results[2]

    def test_preserves_outputs(self) -> None:
        feeds = {"x": X}
        assert_equal(run(convert_version(upgradable_model(), 13), feeds), run(upgradable_model(), feeds))

    @pytest.mark.parametrize(
        "parse", [onnx.ModelProto.FromString, ModelProto.FromString], ids=["onnx", "opshift"]
    )
    def test_keeps_the_argument_unchanged(self, parse: Any) -> None:
        model = parse(upgradable_model().SerializeToString())
        before = model.SerializeToString()
        convert_version(model, 13)
        convert(model, 13)
        plan_version(model, 13)
        assert model.SerializeToString() == before

    def test_keeps_a_refused_argument_unchanged(self) -> None:
        model = refused_model()
        before = model.SerializeToString()
        with pytest.raises(ConversionRefused):
            convert_version(model, 13)
        assert model.SerializeToString() == before

    @pytest.mark.parametrize("target", [9, {"ai.onnx": 9}, {"": 9}, "9"], ids=str)
    def test_returns_identical_bytes_at_the_target_opset(self, target: TargetLike) -> None:
        model = upgradable_model()
        before = model.SerializeToString()
        assert convert_version(model, target).SerializeToString() == before
        assert convert_version(before, target) == before


class TestInPlace:
    """`inplace=True` modifies the argument."""

    @pytest.mark.parametrize(
        "parse", [onnx.ModelProto.FromString, ModelProto.FromString], ids=["onnx", "opshift"]
    )
    def test_returns_the_same_object(self, parse: Any) -> None:
        model = parse(upgradable_model().SerializeToString())
        expected = convert_version(model, 13).SerializeToString()
        assert convert_version(model, 13, inplace=True) is model
        assert model.SerializeToString() == expected

    def test_keeps_the_message_objects(self) -> None:
        """The result holds the same objects for the graph, initializers and kept nodes."""
        model = upgradable_model()
        model.graph.initializer.append(helper.make_tensor("w", 1, [2], [1.0, 2.0]))
        graph, weight, relu = model.graph, model.graph.initializer[0], model.graph.node[1]
        convert_version(model, 13, inplace=True)
        assert model.graph is graph
        assert any(each is weight for each in model.graph.initializer)
        assert any(each is relu for each in model.graph.node)

    def test_keeps_a_refused_model_unchanged(self) -> None:
        model = refused_model()
        before = model.SerializeToString()
        with pytest.raises(ConversionRefused):
            convert_version(model, 13, inplace=True)
        assert model.SerializeToString() == before

    def test_keeps_the_model_unchanged_for_an_invalid_target(self) -> None:
        model = upgradable_model()
        before = model.SerializeToString()
        with pytest.raises(UsageError):
            convert_version(model, {"": True}, inplace=True)
        assert model.SerializeToString() == before

    def test_report_equals_the_report_of_a_copy(self) -> None:
        model = upgradable_model()
        for node in model.graph.node:
            node.ClearField("name")
        report = convert(model, 13).report
        assert convert(model, 13, inplace=True).report == report


TARGETS: list[tuple[str, TargetLike, dict[str, int]]] = [
    ("number", 17, {"": 17, "ai.onnx.ml": 2}),
    ("number as a string", "17", {"": 17, "ai.onnx.ml": 2}),
    ("mapping", {"": 17, "ai.onnx.ml": 3}, {"": 17, "ai.onnx.ml": 3}),
    ("mapping with an explicit default domain", {"ai.onnx": 17}, {"": 17, "ai.onnx.ml": 2}),
    ("domain and opset", "ai.onnx.ml=3", {"": 9, "ai.onnx.ml": 3}),
    ("default domain and opset", "ai.onnx=17", {"": 17, "ai.onnx.ml": 2}),
    ("ONNX release", "onnx-1.12", {"": 17, "ai.onnx.ml": 3}),
    ("ONNX patch release", "onnx-1.12.1", {"": 17, "ai.onnx.ml": 3}),
    ("program that supports the opsets", "onnxruntime-1.14", {"": 9, "ai.onnx.ml": 2}),
    ("program that supports older opsets", "windowsml-1809", {"": 7, "ai.onnx.ml": 1}),
    ("several strings", ["17", "ai.onnx.ml=3"], {"": 17, "ai.onnx.ml": 3}),
    ("release and an equal opset", ("onnx-1.12", "17"), {"": 17, "ai.onnx.ml": 3}),
    ("iterator of strings", iter(["17"]), {"": 17, "ai.onnx.ml": 2}),
]


@pytest.mark.parametrize(
    ("target", "expected"), [row[1:] for row in TARGETS], ids=[row[0] for row in TARGETS]
)
def test_accepts_targets(target: TargetLike, expected: dict[str, int]) -> None:
    result = convert_version(with_scaler(upgradable_model()), target)
    assert {each.domain: each.version for each in result.opset_import} == expected


def test_target_version_is_an_alias_of_target() -> None:
    model = upgradable_model()
    assert convert_version(model, target_version=13) == convert_version(model, 13)


@pytest.mark.parametrize(
    "arguments",
    [{}, {"target": 13, "target_version": 13}, {"target": None}, {"target_version": None}],
    ids=["neither", "both", "target None", "target_version None"],
)
def test_requires_exactly_one_target(arguments: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        convert_version(upgradable_model(), **arguments)
    assert caught.value.remedy


def test_reports_changed_nodes() -> None:
    model, report = convert(upgradable_model(), 13)
    assert is_converted(model)
    assert [each.operator for each in report.changed] == ["ai.onnx.Clip:6", "ai.onnx.Softmax:1"]
    assert report.refusals == ()


def test_convert_returns_the_kind_of_its_argument(tmp_path: Path) -> None:
    message, path = upgradable_model(), tmp_path / "model.onnx"
    data = message.SerializeToString()
    path.write_bytes(data)
    same_class = convert(message, 13)
    assert type(same_class.model) is type(message)
    for given in data, bytearray(data), memoryview(data):
        from_bytes = convert(given, 13)
        assert ModelProto.FromString(from_bytes.model) == convert(path, 13).model
        assert from_bytes.model == convert_version(given, 13)
        assert from_bytes.report == same_class.report
    for each in path, str(path), io.BytesIO(data):
        assert type(convert(each, 13).model) is ModelProto


def test_convert_returns_bytes_unchanged_if_nothing_changes() -> None:
    data = upgradable_model().SerializeToString() + b"\xa8\x7d\x01"  # an unknown field
    assert convert(data, 9).model == data == convert_version(data, 9)


def test_plan_collects_refusals_without_changing_the_model() -> None:
    model = refused_model()
    before = model.SerializeToString()
    plan = plan_version(model, 13)
    assert len(plan.refusals) == 1
    assert model.SerializeToString() == before


def test_accepts_a_registry() -> None:
    registry = default_registry()
    assert convert_version(upgradable_model(), 13, registry=registry) == convert_version(
        upgradable_model(), 13
    )


def test_conversions_are_independent() -> None:
    """Conversions share cached routes, but neither values nor names."""
    first = convert_version(upgradable_model(), 13)
    other = build([helper.make_node("Clip", ["const"], ["y"], min=0.0)], {"const": X}, ["y"], 9)
    convert_version(other, 13)
    assert convert_version(upgradable_model(), 13) == first


def test_downgrades_models() -> None:
    nodes = [helper.make_node("Squeeze", ["x", "axes"], ["y"])]
    model = build(nodes, {"x": X[None]}, ["y"], 13, initializers={"axes": np.array([0])})
    result = convert_version(model, 11)
    assert op_types(result) == ["Squeeze"]
    assert_equal(run(result, {"x": X[None]}), run(model, {"x": X[None]}))


WITHOUT_ONNX = """
import sys
import opshift
source = {source}
result = opshift.convert_version(source, 13)
assert opshift.convert(source, 13).report.changed
loaded = [name for name in ("onnx", "onnxruntime", "numpy") if name in sys.modules]
assert not loaded, loaded
"""


@pytest.mark.parametrize("source", ["open({path!r}, 'rb').read()", "{path!r}"], ids=["bytes", "path"])
def test_converts_without_importing_onnx_or_numpy(source: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(upgradable_model().SerializeToString())
    script = WITHOUT_ONNX.format(source=source.format(path=str(path)))
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr


def test_names_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidModel) as caught:
        convert_version(tmp_path / "absent.onnx", 13)
    assert "absent.onnx" in str(caught.value)
