"""A function that says so is expressed by the nodes of its body, in the opsets before it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.running import Array, op_types, opset_of, run

from opshift.converter.convert import convert_version
from opshift.registry.catalogue import Registry, default_registry
from opshift.registry.errors import DefinitionError

DEFINITION = """\
domain: com.acme
name: Scaled
description: It scales and shifts, and gives the scaled values as well.
versions:
- since_version: 2
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
X = np.array([-1, 0.5, 2], np.float32)


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return _registry(tmp_path, DEFINITION)


def _registry(folder: Path, definition: str) -> Registry:
    path = folder / "com.acme" / "Scaled.yaml"
    path.parent.mkdir()
    path.write_text(definition, "utf-8")
    return default_registry().with_folder(folder)


def _model(inputs: list[str], outputs: list[str], **attributes: float) -> object:
    node = helper.make_node("Scaled", inputs, outputs, domain="com.acme", name="scaled", **attributes)
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])]
    given += [helper.make_tensor_value_info("low", TensorProto.FLOAT, [])] if "low" in inputs else []
    made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in outputs if name]
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("com.acme", 2)]
    return helper.make_model(helper.make_graph([node], "g", given, made), opset_imports=imports, ir_version=8)


@pytest.mark.parametrize(
    ("inputs", "outputs", "attributes", "expected"),
    [
        pytest.param(["x"], ["y"], {}, [2 * X], id="the attribute by default, the input left out"),
        pytest.param(["x"], ["y"], {"scale": 3.0}, [3 * X], id="the attribute stated"),
        pytest.param(["x", "low"], ["y"], {}, [np.maximum(2 * X, 0)], id="the input there"),
        pytest.param(["x", "low"], ["y", "s"], {}, [np.maximum(2 * X, 0), 2 * X], id="both outputs"),
    ],
)  # fmt: skip
def test_a_node_becomes_its_body(
    inputs: list[str],
    outputs: list[str],
    attributes: dict[str, float],
    expected: list[Array],
    registry: Registry,
) -> None:
    older = convert_version(_model(inputs, outputs, **attributes), {"com.acme": 1}, registry=registry)
    feeds = {"x": X, "low": np.float32(0)}
    found = run(older, {each.name: np.asarray(feeds[each.name]) for each in older.graph.input})
    assert op_types(older) == ["Constant", "CastLike", "Mul", "Clip"]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other)


def test_the_body_goes_on_to_the_opset_of_the_model(registry: Registry) -> None:
    older = convert_version(_model(["x"], ["y"]), {"com.acme": 1, "ai.onnx": 11}, registry=registry)
    assert opset_of(older) == 11
    np.testing.assert_allclose(run(older, {"x": X})[0], 2 * X)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("inputs: [factor, X]", "inputs: [factor, Z]", "reads 'Z'"),
        ("outputs: [Y]}\n", "outputs: [Z]}\n", "no node produces the output 'Y'"),
        ("{attribute: scale}", "{attribute: scales}", "refers to 'scales'"),
        ("{ai.onnx: 18}", "{com.acme: 1}", "missing from opset_imports"),
        ("outputs: [like]", "outputs: [factor]", "is already defined"),
        ("{name: scaled, type: T, option: optional}", "{name: scaled, type: T, option: variadic}", "is variadic"),
    ],
    ids=["an unknown input", "an output that is missing", "an unknown attribute", "a domain without opset",
         "a name twice", "a list of outputs"],
)  # fmt: skip
def test_a_body_that_is_wrong_is_an_error_of_its_definition(
    old: str, new: str, told: str, tmp_path: Path
) -> None:
    registry = _registry(tmp_path, DEFINITION.replace(old, new))
    with pytest.raises(DefinitionError, match=told):
        convert_version(_model(["x"], ["y"]), {"com.acme": 1}, registry=registry)


def test_before_cannot_be_a_body_that_is_not_there(tmp_path: Path) -> None:
    registry = _registry(tmp_path, DEFINITION.partition("  body:")[0])
    with pytest.raises(DefinitionError, match="has no body"):
        registry.operator("Scaled", "com.acme")
