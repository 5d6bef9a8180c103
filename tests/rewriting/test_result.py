"""Attributes of converted nodes: moved, renamed, and with converted subgraphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto, helper, numpy_helper
from support.execution import build

from opshift.converter.convert import convert_version
from opshift.model.messages import ModelProto
from opshift.registry.registry import Registry, default_registry

X = np.ones((1, 3), np.float32)
CHOOSE = """
domain: com.acme
name: Choose
versions:
- since_version: 1
  descriptions: {operator: Runs one of two graphs.}
  inputs:
  - {name: X, type: T}
  outputs:
  - {name: Y, type: T}
  attributes:
    body: {type: GRAPH}
    table: {type: TENSOR}
    sizes: {type: INTS}
    label: {type: STRING}
  type_constraints:
    T: [tensor(float)]
- since_version: 2
  step:
    change: Every attribute is renamed, and two are added.
    up:
    - rename_attribute: {attribute: body, to: graph}
    - rename_attribute: {attribute: table, to: tensor}
    - rename_attribute: {attribute: sizes, to: lengths}
    - rename_attribute: {attribute: label, to: title}
    - add_attribute: {attribute: kind, value: new}
    - add_attribute: {attribute: scales, value: [0.5, 2]}
  inputs:
  - {name: X, type: T}
  outputs:
  - {name: Y, type: T}
  attributes:
    graph: {type: GRAPH}
    tensor: {type: TENSOR}
    lengths: {type: INTS}
    title: {type: STRING}
    kind: {type: STRING, default: old}
    scales: {type: FLOATS}
  type_constraints:
    T: [tensor(float)]
"""


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    (tmp_path / "com.acme").mkdir()
    (tmp_path / "com.acme" / "Choose.yaml").write_text(CHOOSE.lstrip())
    return default_registry().with_folder(tmp_path)


def body() -> onnx.GraphProto:
    output = helper.make_tensor_value_info("s", TensorProto.FLOAT, None)
    squeeze = helper.make_node("Squeeze", ["x"], ["s"], "inner", axes=[0])
    result: onnx.GraphProto = helper.make_graph([squeeze], "body", [], [output])
    return result


def model(**attributes: Any) -> onnx.ModelProto:
    choose = helper.make_node("Choose", ["x"], ["y"], "choose", domain="com.acme", **attributes)
    return build([choose], {"x": X}, ["y"], {"": 11, "com.acme": 1})


def attributes_of(converted: Any) -> dict[str, Any]:
    return {each.name: each for each in converted.graph.node[0].attribute}


@pytest.mark.parametrize(
    "parse", [onnx.ModelProto.FromString, ModelProto.FromString], ids=["onnx", "opshift"]
)
@pytest.mark.parametrize("inplace", [False, True], ids=["copy", "in place"])
def test_converts_graphs_in_renamed_attributes(parse: Any, inplace: bool, registry: Registry) -> None:
    source = parse(model(body=body()).SerializeToString())
    result = convert_version(source, {"": 13, "com.acme": 2}, inplace=inplace, registry=registry)
    attribute = attributes_of(result)["graph"]
    assert attribute.type == AttributeProto.GRAPH
    assert len(attribute.g.node[0].input) == 2
    assert [each.name for each in attribute.g.initializer] == [attribute.g.node[0].input[1]]


def test_moves_values_of_every_type(registry: Registry) -> None:
    table = numpy_helper.from_array(X, "table")
    before = model(table=table, sizes=[1, 2], label="text")
    attributes = attributes_of(convert_version(before, {"com.acme": 2}, registry=registry))
    assert {name: helper.get_attribute_value(each) for name, each in attributes.items()} == {
        "tensor": table,
        "lengths": [1, 2],
        "title": b"text",
        "kind": b"new",
        "scales": [0.5, 2.0],
    }
    assert [attributes[name].type for name in ("kind", "scales")] == [
        AttributeProto.STRING,
        AttributeProto.FLOATS,
    ]


def test_renamed_attribute_keeps_doc_string_and_reference(registry: Registry) -> None:
    before = model(label="text")
    before.graph.node[0].attribute[0].doc_string = "a note"
    function = helper.make_function(
        "local", "F", ["x"], ["y"], [before.graph.node[0]], [helper.make_opsetid("com.acme", 1)], ["given"]
    )
    function.node[0].attribute[0].ref_attr_name = "given"
    before.functions.append(function)
    result = convert_version(before, {"com.acme": 2}, registry=registry)
    assert attributes_of(result)["title"].doc_string == "a note"
    (title,) = (each for each in result.functions[0].node[0].attribute if each.name == "title")
    assert title.ref_attr_name == "given"
