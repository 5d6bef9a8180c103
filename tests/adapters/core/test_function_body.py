"""Operators with `before: body` are expanded into their function body in earlier opsets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from support.execution import Array, op_types, opset_of, run

from opshift.converter.convert import convert_version
from opshift.registry.errors import DefinitionError
from opshift.registry.registry import Registry, default_registry

DEFINITION = """\
domain: com.acme
name: Scaled
versions:
- since_version: 2
  descriptions: {operator: "Scale and shift, and also return the scaled values."}
  before: body
  inputs:
  - {name: X, type: T}
  - {name: shift, type: T, option: optional}
  outputs:
  - {name: Y, type: T}
  - {name: scaled, type: T, option: optional}
  attributes:
    scale: {type: FLOAT, default: 2.0}
    axes: {type: INTS}
  type_constraints: {T: [tensor(float), tensor(double)]}
  body:
    opset_imports: {ai.onnx: 18}
    nodes:
    - {op_type: Constant, outputs: [factor], attributes: {value_float: {attribute: scale}}}
    - {op_type: CastLike, inputs: [factor, X], outputs: [like]}
    - {op_type: Mul, inputs: [X, like], outputs: [scaled]}
    - {op_type: Clip, inputs: [scaled, shift], outputs: [Y]}
"""
DATA = np.array([-1, 0.5, 2], np.float32)


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return _registry(tmp_path, DEFINITION)


def _registry(folder: Path, definition: str) -> Registry:
    path = folder / "com.acme" / "Scaled.yaml"
    path.parent.mkdir()
    path.write_text(definition, "utf-8")
    return default_registry().with_folder(folder)


def _model(inputs: list[str], outputs: list[str], **attributes: float) -> ModelProto:
    node = helper.make_node("Scaled", inputs, outputs, domain="com.acme", name="scaled", **attributes)
    input_infos = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])]
    input_infos += [helper.make_tensor_value_info("low", TensorProto.FLOAT, [])] if "low" in inputs else []
    output_infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in outputs if name]
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("com.acme", 2)]
    return helper.make_model(
        helper.make_graph([node], "g", input_infos, output_infos), opset_imports=imports, ir_version=8
    )


@pytest.mark.parametrize(
    ("inputs", "outputs", "attributes", "expected"),
    [
        pytest.param(["x"], ["y"], {}, [2 * DATA], id="default attribute, missing input"),
        pytest.param(["x"], ["y"], {"scale": 3.0}, [3 * DATA], id="explicit attribute"),
        pytest.param(["x", "low"], ["y"], {}, [np.maximum(2 * DATA, 0)], id="optional input"),
        pytest.param(["x", "low"], ["y", "s"], {}, [np.maximum(2 * DATA, 0), 2 * DATA], id="both outputs"),
    ],
)  # fmt: skip
def test_replaces_node_with_body(
    inputs: list[str],
    outputs: list[str],
    attributes: dict[str, float],
    expected: list[Array],
    registry: Registry,
) -> None:
    result = convert_version(_model(inputs, outputs, **attributes), {"com.acme": 1}, registry=registry)
    feeds = {"x": DATA, "low": np.float32(0)}
    actual = run(result, {each.name: np.asarray(feeds[each.name]) for each in result.graph.input})
    assert op_types(result) == ["Constant", "CastLike", "Mul", "Clip"]
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one, other)


def test_converts_body_to_the_target_opset(registry: Registry) -> None:
    result = convert_version(_model(["x"], ["y"]), {"com.acme": 1, "ai.onnx": 11}, registry=registry)
    assert opset_of(result) == 11
    np.testing.assert_allclose(run(result, {"x": DATA})[0], 2 * DATA)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("inputs: [factor, X]", "inputs: [factor, Z]", "reads 'Z'"),
        ("outputs: [Y]}\n", "outputs: [Z]}\n", "no node produces the output 'Y'"),
        ("{attribute: scale}", "{attribute: scales}", "refers to the attribute 'scales'"),
        ("{ai.onnx: 18}", "{com.acme: 1}", "missing from opset_imports"),
        ("outputs: [like]", "outputs: [factor]", "is already defined"),
        (
            "{name: scaled, type: T, option: optional}",
            "{name: scaled, type: T, option: variadic}",
            "is variadic",
        ),
    ],
    ids=["unknown input", "missing output", "unknown attribute", "domain without opset",
         "duplicate name", "variadic output"],
)  # fmt: skip
def test_reports_invalid_body_as_definition_error(old: str, new: str, message: str, tmp_path: Path) -> None:
    registry = _registry(tmp_path, DEFINITION.replace(old, new))
    with pytest.raises(DefinitionError, match=message):
        convert_version(_model(["x"], ["y"]), {"com.acme": 1}, registry=registry)


def test_reports_before_body_without_a_body(tmp_path: Path) -> None:
    registry = _registry(tmp_path, DEFINITION.partition("  body:")[0])
    with pytest.raises(DefinitionError, match="has no body"):
        registry.operator("Scaled", "com.acme")
