"""A model with every part of the format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import FunctionProto, GraphProto, NodeProto, TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT
UNKNOWN_FIELD = b"\xc0\x3e\x07"
"""Field 1000 with value 7, which no version of ONNX defines."""
CHANGED_OPERATORS = ("Squeeze", "Unsqueeze", "Softmax")
"""Operators that change between opsets 11 and 13; all other nodes stay."""


def node(
    op_type: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    name: str,
    domain: str = "",
    **attributes: Any,
) -> NodeProto:
    made: NodeProto = helper.make_node(
        op_type, inputs, outputs, name, doc_string=f"on {name}", domain=domain, **attributes
    )
    made.metadata_props.add(key="of", value=name)
    return made


def annotated(message: Any) -> Any:
    """Add metadata and a doc string, where supported, and an unknown field to a message."""
    if hasattr(message, "metadata_props"):
        message.metadata_props.add(key="k", value="v")
    if hasattr(message, "doc_string") and not message.doc_string:
        message.doc_string = "a note"
    message.MergeFromString(UNKNOWN_FIELD)
    return message


def value(name: str, shape: Sequence[int | str] = (1, "n", 4)) -> onnx.ValueInfoProto:
    made = helper.make_tensor_value_info(
        name, FLOAT, shape, shape_denotation=["BATCH"] + [""] * (len(shape) - 1)
    )
    made.type.denotation = "TENSOR"
    annotated(made.type)
    return annotated(made)


def sparse(name: str) -> onnx.SparseTensorProto:
    values = helper.make_tensor(name, FLOAT, [2], [1.0, 2.0])
    indices = helper.make_tensor("", TensorProto.INT64, [2], [0, 3])
    return helper.make_sparse_tensor(values, indices, [4])


def squeeze(data: str, output: str, name: str, opset: int) -> NodeProto:
    """Return a Squeeze; since opset 13 its axes are an input."""
    if opset < 13:
        return node("Squeeze", [data], [output], name, axes=[0])
    return node("Squeeze", [data, "axes"], [output], name)


def unsqueeze(data: str, output: str, name: str, opset: int) -> NodeProto:
    """Return an Unsqueeze like `squeeze`."""
    changed = squeeze(data, output, name, opset)
    changed.op_type = "Unsqueeze"
    return changed


def full_model(opset: int = 11) -> onnx.ModelProto:
    """Return the model at opset 11 or 13; some nodes of each graph and function differ."""
    bodies = [branch(name, opset) for name in ("then", "else", "body")]
    nodes = [
        node("Relu", ["x"], ["a"], "first"),
        squeeze("a", "b", "second", opset),
        node("Mul", ["b", "w"], ["c"], "third"),
        node("Softmax", ["a"], ["d"], "fourth", axis=1),
        node("If", ["yes"], ["e"], "fifth", then_branch=bodies[0], else_branch=bodies[1]),
        node("Add", ["c", "e"], ["f"], "sixth"),
        node("FastConv", ["f", "sparse"], ["g"], "seventh", "com.acme", alpha=0.5, body=bodies[2]),
        node("Scaler", ["g"], ["h"], "eighth", "ai.onnx.ml", offset=[0.0], scale=[1.0]),
        node("Cut", ["h"], ["y"], "last", "local", slope=0.5),
        node("Constant", [], ["unread"], "constant", sparse_value=sparse("")),
    ]
    for each in nodes:
        for attribute in each.attribute:
            annotated(attribute)
        annotated(each)
    nodes[1].overload = "third kind"
    nodes[1].device_configurations.add(configuration_id="two gpus", pipeline_stage=1)
    yes = helper.make_tensor_value_info("yes", TensorProto.BOOL, [])
    inputs = [value("x"), yes, value("given", (4,))]
    graph = helper.make_graph(
        nodes, "main", inputs, [value("y"), value("d")], _weights(opset), "of the graph"
    )
    graph.value_info.extend([value("a"), value("b", ("n", 4)), value("h")])
    graph.sparse_initializer.append(sparse("sparse"))
    annotation = graph.quantization_annotation.add(tensor_name="a")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="w")
    annotated(graph)
    imports = {"com.acme": 2, "": opset, "ai.onnx.ml": 1, "local": 1}
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid(*each) for each in imports.items()],
        functions=[_function(opset)],
        ir_version=14,
        producer_name="somebody",
        producer_version="1.2",
        domain="org.example",
        model_version=42,
    )
    for each in (*model.opset_import, *model.functions[0].opset_import):
        each.MergeFromString(UNKNOWN_FIELD)
    model.configuration.add(name="two gpus", num_devices=2, device=["0", "1"])
    _train(model, opset)
    return annotated(model)


def branch(name: str, opset: int) -> GraphProto:
    """Return a graph with one node that changes and one that does not."""
    nodes = [
        node("Relu", ["a"], [f"{name}_r"], f"{name}.relu"),
        squeeze(f"{name}_r", f"{name}_s", f"{name}.squeeze", opset),
    ]
    return annotated(
        helper.make_graph(nodes, name, [], [value(f"{name}_s", ("n", 4))], value_info=[value(f"{name}_r")])
    )


def _weights(opset: int) -> list[TensorProto]:
    """Return initializers: used, unused, with an input as default, and with external data."""
    external = TensorProto(name="elsewhere", data_type=FLOAT, dims=[1000], data_location=TensorProto.EXTERNAL)
    external.external_data.add(key="location", value="weights.bin")
    axes = [numpy_helper.from_array(np.array([0]), "axes")] if opset >= 13 else []
    return [
        annotated(numpy_helper.from_array(np.ones((1, 4), np.float32), "w")),
        numpy_helper.from_array(np.arange(3), "unused"),
        helper.make_tensor("given", FLOAT, [4], [1.0] * 4),
        external,
        *axes,
    ]


def _function(opset: int) -> FunctionProto:
    nodes = [node("LeakyRelu", ["a"], ["r"], "in.leaky"), squeeze("r", "s", "in.squeeze", opset)]
    nodes[0].attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    if opset >= 13:
        axes = numpy_helper.from_array(np.array([0]), "axes")
        nodes.insert(0, node("Constant", [], ["axes"], "in.axes", value=axes))
    made = helper.make_function(
        "local", "Cut", ["a"], ["s"], nodes, [helper.make_opsetid("", opset)], attributes=["slope"]
    )
    made.attribute_proto.append(annotated(helper.make_attribute("bias", 0.5)))
    made.value_info.append(value("r"))
    return annotated(made)


def _train(model: onnx.ModelProto, opset: int) -> None:
    info = model.training_info.add()
    start = [node("Constant", [], ["zero"], "start", value=helper.make_tensor("", FLOAT, [1, 4], [0.0] * 4))]
    info.initialization.CopyFrom(helper.make_graph(start, "initialization", [], [value("zero", (1, 4))]))
    nodes = [
        squeeze("w", "flat", "train.squeeze", opset),
        unsqueeze("flat", "new", "train.unsqueeze", opset),
    ]
    info.algorithm.CopyFrom(helper.make_graph(nodes, "algorithm", [], [value("new", (1, 4))]))
    info.initialization_binding.add(key="w", value="zero")
    info.update_binding.add(key="w", value="new")
    annotated(info.algorithm)


def containers(model: Any) -> Iterator[Any]:
    """Yield every graph and function of a model, each before its nested graphs."""
    graphs = (g for info in model.training_info for g in (info.initialization, info.algorithm))
    pending = [model.graph, *graphs, *model.functions]
    while pending:
        container = pending.pop()
        yield container
        pending += [a.g for each in container.node for a in each.attribute if a.HasField("g")]
