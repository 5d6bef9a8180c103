"""Statements of the specification that no single rule states, each with a violation and a legal model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from support.checker_cases.case import parse_text, set_field, violated_rules
from support.checker_cases.features import training

from opshift import check, compare, convert_version, default_registry
from opshift.checker.findings import Level
from opshift.model.messages import ModelProto, TypeProto
from opshift.model.model_version import VersionBump

RELU = "g (float[2] x) => (float[2] y) { y = Relu(x) }"
SHAPE = "g (float[2, 3] x) => (int64[{length}] y) {{ y = Shape(x) }}"
CHAIN = "g (float{read} x) => (float{read} y) <float{claimed} z> {{ z = Relu(x) y = Neg(z) }}"


def _errors(model: object) -> list[str]:
    return [str(each) for each in check(model) if each.level is Level.ERROR]


def _with_version(version: int, text: str = RELU) -> onnx.ModelProto:
    model = parse_text(text)
    model.model_version = version
    return model


@pytest.mark.parametrize("model_version", [0, 7, 1 << 48])
@pytest.mark.parametrize(("ir_version", "opset"), [(8, 13), (10, 13), (10, 21)])
def test_ir_opsets_and_models_have_independent_versions(
    model_version: int, ir_version: int, opset: int
) -> None:
    model = _with_version(model_version)
    model.ir_version, model.opset_import[0].version = ir_version, opset
    assert _errors(model) == []
    converted = convert_version(model, 17, ir_version="keep")
    assert (converted.model_version, converted.ir_version) == (model_version, ir_version)


@pytest.mark.parametrize("version", [7, 1 << 48, -1])
def test_scheme_of_model_versions_is_advice(version: int) -> None:
    assert check(_with_version(version)) == check(_with_version(0))


def test_update_with_breaking_changes_remains_legal() -> None:
    old, new = _with_version(1 << 48), _with_version(1 << 48, RELU.replace("Relu", "Neg"))
    assert compare(old, new).required is VersionBump.MAJOR
    assert compare(old, old).required is not VersionBump.MAJOR
    assert _errors(new) == []


def test_ir_version_is_a_64_bit_integer() -> None:
    largest = (1 << 63) - 1
    assert ModelProto.FromString(ModelProto(ir_version=largest).SerializeToString()).ir_version == largest
    with pytest.raises(ValueError, match="range"):
        ModelProto(ir_version=largest + 1)


def test_second_variant_adds_machine_learning() -> None:
    registry = default_registry()
    assert "LinearClassifier" in registry.names("ai.onnx.ml")
    assert "LinearClassifier" not in registry.names("")
    assert {"sequence_type", "map_type"} <= set(TypeProto.DESCRIPTOR.fields_by_name)


def test_every_version_states_its_operator_set() -> None:
    for operator in default_registry().operators():
        numbers = [version.since_version for version in operator.versions]
        assert numbers == sorted(set(numbers))
        assert numbers[0] >= 1


def test_opset_is_at_least_the_newest_version() -> None:
    registry = default_registry()
    for domain in registry.domains():
        newest = [operator.versions[-1].since_version for operator in registry.operators(domain)]
        assert registry.newest_opset(domain) >= max(newest)


@pytest.mark.parametrize(("length", "is_valid"), [(2, True), (3, False)])
def test_shape_can_be_computed_as_a_tensor(length: int, is_valid: bool) -> None:
    assert (_errors(parse_text(SHAPE.format(length=length))) == []) is is_valid


@pytest.mark.parametrize(
    ("read", "claimed", "is_valid"),
    [
        pytest.param("", "", True, id="scalar"),
        pytest.param("[2]", "", False, id="list that is declared as a scalar"),
        pytest.param("", "[1]", False, id="scalar that is declared as a list"),
        pytest.param("[2]", "[]", True, id="no shape of a list"),
        pytest.param("[2, 3]", "[]", True, id="no shape of a matrix"),
    ],
)
def test_shape_is_a_list_of_dimensions_or_missing(read: str, claimed: str, is_valid: bool) -> None:
    assert (_errors(parse_text(CHAIN.format(read=read, claimed=claimed))) == []) is is_valid


def test_model_may_have_several_pieces_of_training_information() -> None:
    model = ModelProto.FromString(training().SerializeToString())
    model.training_info.add().CopyFrom(model.training_info[0])
    assert _errors(model) == []
    set_field("training_info[1].update_binding[0].key", "unknown")(model)
    (error,) = _errors(model)
    assert "training_info[1]" in error


@pytest.mark.parametrize(("length", "is_valid"), [("8", True), ("99", False)])
def test_tensors_may_share_a_file(length: str, is_valid: bool, tmp_path: Path) -> None:
    model = parse_text("g (float[2] x) => (float[2] y) { z = Add(x, v) y = Add(z, w) }")
    (tmp_path / "data").write_bytes(np.zeros(4, np.float32).tobytes())
    for name, offset in (("v", "0"), ("w", "8")):
        tensor = numpy_helper.from_array(np.zeros(2, np.float32), name)
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", "data"), ("offset", offset), ("length", length)):
            tensor.external_data.add(key=key, value=value)
        model.graph.initializer.append(tensor)
    assert ("external.size" not in violated_rules(model, folder=tmp_path)) is is_valid
