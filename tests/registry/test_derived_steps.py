"""Steps that no definition declares: models keep their results, or the definitions are refused."""

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from onnx.reference import ReferenceEvaluator

from opshift import convert_version, default_registry
from opshift.converter.refusals import ConversionRefused
from opshift.registry.errors import InvalidDefinition
from opshift.registry.registry import Registry

FIRST = """\
domain: com.acme
name: Mix
shape: broadcast
versions:
- since_version: 1
  inputs: [{name: A, type: T}, {name: B, type: T}]
  outputs: [{name: Y, type: T}]
  type_constraints: {T: [tensor(float), tensor(int64)]}
  body: {opset_imports: {ai.onnx: 14}, nodes: [{op_type: Sub, inputs: [A, B], outputs: [Y]}]}
"""
SECOND = """\
- since_version: 2
  inputs: [{name: A, type: T}, {name: B, type: T}]
  outputs: [{name: Y, type: T}]
  type_constraints: {T: [tensor(double), tensor(float), tensor(int64)]}
  body: {opset_imports: {ai.onnx: 14}, nodes: [{op_type: Sub, inputs: [A, B], outputs: [Y]}]}
"""
"""A version with a further type, and otherwise the same definition."""
RENAMED = SECOND.replace("name: A", "name: C").replace("[A, B]", "[C, B]")
SWAPPED = SECOND.replace("{name: A, type: T}, {name: B, type: T}", "{name: B, type: T}, {name: A, type: T}")
SPLIT = SECOND.replace("name: B, type: T", "name: B, type: U").replace(
    "constraints: {", "constraints: {U: [tensor(float), tensor(int64)], "
)


def _registry(folder: Path, first: str, second: str) -> Registry:
    file = folder / "com.acme" / "Mix.yaml"
    file.parent.mkdir()
    file.write_text(first + second, encoding="utf-8")
    return default_registry().with_folder(folder)


def _model(opset: int, second_type: int = TensorProto.FLOAT) -> ModelProto:
    types = {"a": TensorProto.FLOAT, "b": second_type}
    graph = helper.make_graph(
        [helper.make_node("Mix", ["a", "b"], ["y"], domain="com.acme")],
        "mix",
        [helper.make_tensor_value_info(name, each, [2]) for name, each in types.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.acme", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def _run(model: ModelProto, registry: Registry) -> list[float]:
    expanded = convert_version(model, 17, registry=registry, without=["com.acme"])
    feeds = {"a": np.array([5, 6], np.float32), "b": np.array([1, 2], np.float32)}
    (result,) = ReferenceEvaluator(expanded).run(None, feeds)
    return list(result.tolist())


@pytest.mark.parametrize("second", [SECOND, RENAMED], ids=["an added type", "an added type and a new name"])
def test_models_keep_their_results(tmp_path: Path, second: str) -> None:
    registry = _registry(tmp_path, FIRST, second)
    for source, target in ((1, 2), (2, 1)):
        converted = convert_version(_model(source), {"com.acme": target}, registry=registry)
        assert converted.opset_import[1].version == target
        assert _run(converted, registry) == _run(_model(source), registry) == [4, 4]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(FIRST, SWAPPED, id="swapped inputs"),
        pytest.param(FIRST, SECOND.replace("Sub", "Add"), id="another body"),
        pytest.param(FIRST, SECOND.replace("[A, B]", "[B, A]"), id="swapped inputs of the body"),
        pytest.param(FIRST + SPLIT, SECOND.replace("version: 2", "version: 3"), id="merged type variables"),
    ],
)
def test_refuses_definitions_without_a_declared_upgrade(tmp_path: Path, first: str, second: str) -> None:
    registry = _registry(tmp_path, first, second)
    with pytest.raises(InvalidDefinition, match=r"step\.missing.*no upgrade from version"):
        convert_version(_model(1), {"com.acme": 2}, registry=registry)


def test_refuses_a_downgrade_that_merges_type_variables(tmp_path: Path) -> None:
    registry = _registry(tmp_path, FIRST, SPLIT)
    assert _run(convert_version(_model(1), {"com.acme": 2}, registry=registry), registry) == [4, 4]
    with pytest.raises(ConversionRefused, match="no downgrade is defined"):
        convert_version(_model(2, TensorProto.INT64), {"com.acme": 1}, registry=registry)
