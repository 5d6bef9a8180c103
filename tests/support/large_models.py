"""Models with a large tensor in every position that can hold one, and in every data field."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import onnx
from onnx import AttributeProto, GraphProto, ModelProto, TensorProto, helper

COUNT = 64
"""Number of elements of each tensor, large enough for streaming to copy the data from the file."""
RAW = struct.pack(f"<{COUNT}f", *range(COUNT))


def raw(name: str = "w", data: bytes = RAW) -> TensorProto:
    """Return a tensor of floats in `raw_data`."""
    return TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[len(data) // 4], raw_data=data)


def typed(element_type: int, field: str, name: str = "w") -> TensorProto:
    """Return a tensor with its elements in the field for their type."""
    found = TensorProto(name=name, data_type=element_type, dims=[COUNT])
    getattr(found, field).extend(range(1000, 1000 + COUNT))
    return found


def with_unknown_fields() -> TensorProto:
    """Return a tensor with fields after its elements, some of them unknown."""
    found = raw()
    found.doc_string = "after the elements"
    found.metadata_props.add(key="k", value="v")
    found.MergeFromString(bytes([0x7A, 3]) + b"?!?" + b"\xa8\x06\x01")  # fields 15 and 101
    return found


TENSORS: dict[str, Callable[[], TensorProto]] = {
    "raw_data": raw,
    "float_data": lambda: typed(TensorProto.FLOAT, "float_data"),
    "double_data": lambda: typed(TensorProto.DOUBLE, "double_data"),
    "int32_data": lambda: typed(TensorProto.FLOAT16, "int32_data"),
    "int64_data": lambda: typed(TensorProto.INT64, "int64_data"),
    "uint64_data": lambda: typed(TensorProto.UINT64, "uint64_data"),
    "one text": lambda: TensorProto(name="w", data_type=TensorProto.STRING, dims=[], string_data=[RAW]),
    "raw_data and more": with_unknown_fields,
}


def model(
    nodes: list[onnx.NodeProto] | None = None,
    initializers: list[TensorProto] | None = None,
    functions: list[onnx.FunctionProto] | None = None,
) -> ModelProto:
    """Return a model from x to y with a Clip that an upgrade from opset 9 changes."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [COUNT]) for name in "xy"]
    clip = helper.make_node("Clip", ["x"], ["y"], name="clip", min=0.0, max=6.0)
    graph = helper.make_graph([clip, *(nodes or [])], "g", values[:1], values[1:], initializers or [])
    imports = [helper.make_opsetid("", 9), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=imports, functions=functions or [], ir_version=8)


def constant_node(tensor: TensorProto, output: str = "c") -> onnx.NodeProto:
    """Return a Constant node."""
    return helper.make_node("Constant", [], [output], name=output, value=tensor)


def graph_with(tensor: TensorProto) -> GraphProto:
    """Return a subgraph that outputs the tensor, its only initializer."""
    output = helper.make_tensor_value_info(tensor.name, tensor.data_type, None)
    return helper.make_graph([], "inner", [], [output], [tensor])


def sparse_with(tensor: TensorProto) -> onnx.SparseTensorProto:
    """Return a sparse tensor with these values."""
    indices = TensorProto(name="i", data_type=TensorProto.INT64, dims=[COUNT], int64_data=range(COUNT))
    return helper.make_sparse_tensor(tensor, indices, [COUNT])


def in_function(tensor: TensorProto) -> ModelProto:
    node = helper.make_node("Identity", ["c"], ["z"])
    body = helper.make_function(
        "local", "F", [], ["z"], [constant_node(tensor), node], [helper.make_opsetid("", 9)], []
    )
    return model([helper.make_node("F", [], ["f"], domain="local")], functions=[body])


def as_attribute_default(tensor: TensorProto) -> ModelProto:
    node = onnx.NodeProto(op_type="Constant", output=["z"])
    node.attribute.add(name="value", ref_attr_name="t", type=AttributeProto.TENSOR)
    body = helper.make_function("local", "F", [], ["z"], [node], [helper.make_opsetid("", 9)], [])
    body.attribute_proto.append(helper.make_attribute("t", tensor))
    return model([helper.make_node("F", [], ["f"], domain="local")], functions=[body])


def in_training(tensor: TensorProto) -> ModelProto:
    found = model()
    found.training_info.add().initialization.CopyFrom(graph_with(tensor))
    return found


def in_branches(tensor: TensorProto) -> ModelProto:
    condition = TensorProto(name="yes", data_type=TensorProto.BOOL, dims=[], raw_data=b"\1")
    branch = graph_with(tensor)
    node = helper.make_node("If", ["yes"], ["f"], name="if", then_branch=branch, else_branch=branch)
    return model([node], [condition])


def in_nested_branches(tensor: TensorProto) -> ModelProto:
    inner = in_branches(tensor)
    output = helper.make_tensor_value_info("f", tensor.data_type, None)
    branch = helper.make_graph(inner.graph.node[1:], "outer", [], [output])
    node = helper.make_node("If", ["yes"], ["g"], name="outer", then_branch=branch, else_branch=branch)
    return model([node], list(inner.graph.initializer))


def as_sparse_initializer(tensor: TensorProto) -> ModelProto:
    found = model()
    found.graph.sparse_initializer.append(sparse_with(tensor))
    return found


def in_custom_operator(name: str, value: object) -> ModelProto:
    return model([helper.make_node("Op", [], ["f"], domain="local", **{name: value})])


LOCATIONS: dict[str, Callable[[TensorProto], ModelProto]] = {
    "initializer": lambda tensor: model(initializers=[tensor]),
    "several initializers": lambda tensor: model(
        initializers=[raw("a"), tensor, raw("b", RAW * 9), raw("c")]
    ),
    "Constant": lambda tensor: model([constant_node(tensor)]),
    "initializer of a subgraph": in_branches,
    "initializer of a nested subgraph": in_nested_branches,
    "Constant in a function": in_function,
    "default of a function's attribute": as_attribute_default,
    "training graph": in_training,
    "sparse initializer": as_sparse_initializer,
    "sparse Constant": lambda tensor: model(
        [helper.make_node("Constant", [], ["f"], sparse_value=sparse_with(tensor))]
    ),
    "list of tensors": lambda tensor: in_custom_operator("tensors", [tensor, tensor]),
    "list of graphs": lambda tensor: in_custom_operator("graphs", [graph_with(tensor), graph_with(tensor)]),
    "list of sparse tensors": lambda tensor: in_custom_operator("several", [sparse_with(tensor)] * 2),
}


def save(model_proto: ModelProto, path: Path) -> bytes:
    """Write a model to a file and return the content."""
    data = bytes(model_proto.SerializeToString())
    path.write_bytes(data)
    return data
