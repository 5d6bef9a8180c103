"""Metadata, and what else goes to the model's metadata, under keys that say where it was."""

from __future__ import annotations

import onnx
from support.ir_models import MODELS, X, node, plain

from opshift.converter.convert import convert_version


def entries(model: onnx.ModelProto) -> dict[str, str]:
    assert len({each.key for each in model.metadata_props}) == len(model.metadata_props)
    return {each.key: each.value for each in model.metadata_props}


def test_every_entry_says_where_it_was() -> None:
    assert entries(convert_version(MODELS["metadata"](), ir_version=9)) == {
        "author": "me",
        "graph, node Add -> y: namespace": "NodeProto",
        "graph: namespace": "GraphProto",
        "graph, value 'x': namespace": "ValueInfoProto",
        "graph, value 'unused': namespace": "ValueInfoProto",
        "graph, initializer 'w': namespace": "TensorProto",
    }


def test_nodes_of_one_name_keep_entries_of_their_own() -> None:
    model = plain()
    for position, each in enumerate(model.graph.node):
        each.name = "same"
        each.metadata_props.add(key="k", value=str(position))
    found = entries(convert_version(model, ir_version=9))
    assert found == {"graph, node 'same': k": "0", "graph, node 'same': k (2)": "1"}


def test_functions_leave_theirs_when_they_are_inlined() -> None:
    model = MODELS["functions"]()
    function = model.functions[0]
    function.metadata_props.add(key="k", value="function")
    function.node[0].metadata_props.add(key="k", value="node")
    model.graph.node[0].metadata_props.add(key="k", value="call")
    result = convert_version(model, ir_version=7)
    assert entries(result) == {
        "graph, node Leak -> y: k": "call",
        "function local.Leak, node LeakyRelu -> b: k": "node",
        "function local.Leak: k": "function",
    }


def test_tensors_of_attributes_have_theirs_too() -> None:
    value = onnx.numpy_helper.from_array(X, "v")
    value.metadata_props.add(key="k", value="v")
    model = plain(nodes=[node("Constant", [], ["w"], value=value), node("Add", ["x", "w"], ["y"])])
    result = convert_version(model, ir_version=9)
    assert entries(result) == {"graph, node Constant -> w, attribute 'value': k": "v"}
    assert not result.graph.node[0].attribute[0].t.metadata_props


def test_quantization_annotations_name_the_tensor_and_the_role() -> None:
    result = convert_version(MODELS["quantization_annotations"](), ir_version=4)
    assert entries(result) == {"graph, quantization of 'h': SCALE_TENSOR": "x"}
    assert not result.graph.quantization_annotation
