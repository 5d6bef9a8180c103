"""One small model from x to y for each feature that an IR version introduced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import FunctionProto, TensorProto, TypeProto, helper, numpy_helper

from support.execution import build

X = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
W = np.arange(6, dtype=np.float32).reshape(2, 3)
OPSET = 21
IR_VERSION = 13
"""The newest IR version that onnxruntime supports."""


def node(
    op_type: str, inputs: list[str], outputs: list[str], domain: str = "", **attributes: Any
) -> onnx.NodeProto:
    made: onnx.NodeProto = helper.make_node(op_type, inputs, outputs, domain=domain, **attributes)
    return made


def plain_model(
    opset: int = OPSET, nodes: list[onnx.NodeProto] | None = None, **more: Any
) -> onnx.ModelProto:
    """Return a model without any feature of a later IR version."""
    nodes = nodes or [node("Relu", ["x"], ["h"], name="first"), node("Neg", ["h"], ["y"], name="second")]
    model = build(nodes, {"x": X}, ["y"], {"": opset, "local": 1}, ir_version=IR_VERSION, **more)
    for value in model.graph.output:
        value.type.tensor_type.shape.SetInParent()
        for size in X.shape:
            value.type.tensor_type.shape.dim.add().dim_value = size
    return model


def standalone_initializers() -> onnx.ModelProto:
    return plain_model(nodes=[node("Add", ["x", "w"], ["y"])], initializers={"w": W})


def external_data() -> onnx.ModelProto:
    model = standalone_initializers()
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="weights.bin")
    return model


def sparse_tensor() -> onnx.SparseTensorProto:
    """Return `[[0, 3, 0], [0, 0, 5]]` as a sparse tensor."""
    values = numpy_helper.from_array(np.array([3, 5], np.float32), "w")
    indices = numpy_helper.from_array(np.array([1, 5], np.int64), "w_indices")
    made: onnx.SparseTensorProto = helper.make_sparse_tensor(values, indices, [2, 3])
    return made


def sparse_initializers() -> onnx.ModelProto:
    model = plain_model(nodes=[node("Add", ["x", "w"], ["y"])])
    model.graph.sparse_initializer.append(sparse_tensor())
    return model


def sparse_attributes() -> onnx.ModelProto:
    constant = node("Constant", [], ["w"], sparse_value=sparse_tensor())
    return plain_model(nodes=[constant, node("Add", ["x", "w"], ["y"])])


def quantization_annotations() -> onnx.ModelProto:
    model = plain_model()
    annotation = model.graph.quantization_annotation.add(tensor_name="h")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="x")
    return model


def training() -> onnx.ModelProto:
    model = standalone_initializers()
    info = model.training_info.add()
    info.algorithm.name = "step"
    info.algorithm.node.append(node("Neg", ["w"], ["better"]))
    info.algorithm.output.append(helper.make_tensor_value_info("better", TensorProto.FLOAT, [2, 3]))
    info.update_binding.add(key="w", value="better")
    return model


def function(name: str = "Leak", **more: Any) -> FunctionProto:
    """Return a LeakyRelu function with its slope as an attribute."""
    leak = node("LeakyRelu", ["a"], ["b"])
    leak.attribute.add(name="alpha", ref_attr_name="alpha", type=onnx.AttributeProto.FLOAT)
    made: FunctionProto = helper.make_function(
        "local", name, ["a"], ["b"], [leak], [helper.make_opsetid("", OPSET)], **more
    )
    return made


def functions() -> onnx.ModelProto:
    model = plain_model(nodes=[node("Leak", ["x"], ["y"], "local", alpha=0.25)])
    model.functions.append(function(attributes=["alpha"]))
    return model


def attribute_defaults() -> onnx.ModelProto:
    calls = [node("Leak", ["x"], ["h"], "local"), node("Leak", ["h"], ["y"], "local", alpha=0.25)]
    model = plain_model(nodes=calls)
    model.functions.append(function(attribute_protos=[helper.make_attribute("alpha", 0.5)]))
    return model


def overloads() -> onnx.ModelProto:
    calls = [node("Leak", ["x"], ["h"], "local", alpha=0.25), node("Leak", ["h"], ["y"], "local")]
    calls[1].overload = "double"
    model = plain_model(nodes=calls)
    model.functions.append(function(attributes=["alpha"]))
    double = node("Add", ["a", "a"], ["b"])
    model.functions.append(helper.make_function("local", "Leak", ["a"], ["b"], [double], model.opset_import))
    model.functions[1].overload = "double"
    return model


def function_values() -> onnx.ModelProto:
    model = functions()
    model.functions[0].value_info.append(helper.make_tensor_value_info("b", TensorProto.FLOAT, [2, 3]))
    return model


def metadata() -> onnx.ModelProto:
    model = standalone_initializers()
    model.metadata_props.add(key="author", value="me")
    graph = model.graph
    graph.value_info.append(helper.make_tensor_value_info("unused", TensorProto.FLOAT, [2, 3]))
    for each in (graph, graph.node[0], graph.input[0], graph.value_info[0], graph.initializer[0]):
        each.metadata_props.add(key="namespace", value=type(each).__name__)
    return model


def device_configurations() -> onnx.ModelProto:
    model = plain_model()
    model.configuration.add(name="two", num_devices=2)
    model.graph.node[0].device_configurations.add(configuration_id="two")
    return model


def optional_types() -> onnx.ModelProto:
    model = plain_model()
    optional = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    model.graph.input.append(helper.make_value_info("maybe", optional))
    return model


def type_attributes() -> onnx.ModelProto:
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    optional = node("Optional", [], ["maybe"], type=tensor)
    return plain_model(nodes=[optional, node("Neg", ["x"], ["y"])])


def sparse_types() -> onnx.ModelProto:
    model = plain_model()
    model.graph.input.append(helper.make_sparse_tensor_value_info("rare", TensorProto.FLOAT, [2, 3]))
    return model


def opaque_types() -> onnx.ModelProto:
    model = plain_model()
    model.graph.input.append(onnx.ValueInfoProto(name="rare", type=TypeProto(opaque_type={"name": "Handle"})))
    return model


def model_with_type(name: str) -> onnx.ModelProto:
    """Return a model with a Cast to an element type."""
    number = TensorProto.DataType.Value(name.upper())
    model = plain_model(25, [node("Cast", ["x"], ["h"], to=number), node("Cast", ["h"], ["y"], to=1)])
    model.graph.value_info.append(helper.make_tensor_value_info("h", number, [2, 3]))
    model.ir_version = 14
    return model


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "standalone_initializers": standalone_initializers,
    "external_data": external_data,
    "sparse_types": sparse_types,
    "opaque_types": opaque_types,
    "quantization_annotations": quantization_annotations,
    "sparse_initializers": sparse_initializers,
    "sparse_attributes": sparse_attributes,
    "training": training,
    "functions": functions,
    "optional_types": optional_types,
    "type_attributes": type_attributes,
    "attribute_defaults": attribute_defaults,
    "overloads": overloads,
    "function_values": function_values,
    "metadata": metadata,
    "device_configurations": device_configurations,
}
