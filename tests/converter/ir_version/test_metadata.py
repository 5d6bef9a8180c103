"""Metadata and annotations moved to the metadata of the model, under keys that name their origin."""

from __future__ import annotations

import onnx
from support.ir_models import MODELS, X, node, plain_model

from opshift.converter.convert import convert_version


def entries(model: onnx.ModelProto) -> dict[str, str]:
    assert len({each.key for each in model.metadata_props}) == len(model.metadata_props)
    return {each.key: each.value for each in model.metadata_props}


def test_keys_name_origin_of_entries() -> None:
    assert entries(convert_version(MODELS["metadata"](), ir_version=9)) == {
        "author": "me",
        "graph, node Add -> y: namespace": "NodeProto",
        "graph: namespace": "GraphProto",
        "graph, value 'x': namespace": "ValueInfoProto",
        "graph, value 'unused': namespace": "ValueInfoProto",
        "graph, initializer 'w': namespace": "TensorProto",
    }


def test_nodes_with_equal_names_keep_separate_entries() -> None:
    model = plain_model()
    for position, each in enumerate(model.graph.node):
        each.name = "same"
        each.metadata_props.add(key="k", value=str(position))
    metadata = entries(convert_version(model, ir_version=9))
    assert metadata == {"graph, node 'same': k": "0", "graph, node 'same': k (2)": "1"}


def test_inlining_keeps_metadata_of_functions() -> None:
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


def test_moves_metadata_of_attribute_tensors() -> None:
    value = onnx.numpy_helper.from_array(X, "v")
    value.metadata_props.add(key="k", value="v")
    model = plain_model(nodes=[node("Constant", [], ["w"], value=value), node("Add", ["x", "w"], ["y"])])
    result = convert_version(model, ir_version=9)
    assert entries(result) == {"graph, node Constant -> w, attribute 'value': k": "v"}
    assert not result.graph.node[0].attribute[0].t.metadata_props


def test_keys_of_quantization_annotations_name_tensor_and_role() -> None:
    result = convert_version(MODELS["quantization_annotations"](), ir_version=4)
    assert entries(result) == {"graph, quantization of 'h': SCALE_TENSOR": "x"}
    assert not result.graph.quantization_annotation
