"""Constants in forms that a runtime reads correctly: with elements, or as raw bytes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from opshift.model.attributes import TENSOR
from opshift.model.element_types import BY_NAME, INTEGER_FIELDS, NAME_BY_NUMBER, byte_size, element_bits
from opshift.model.graphs import nested_containers, remove_messages, root_graphs, sort_by_keys
from opshift.model.messages import GraphProto, ModelProto, TensorProto
from opshift.model.node import Tensor
from opshift.model.offloaded_tensors import model_tensors
from opshift.model.operator_ids import DEFAULT_DOMAIN, opset_imports
from opshift.model.tensors import write_tensor
from opshift.registry.runtimes.runtime import Runtime
from opshift.rewriting.workspace import FreshNames
from opshift.runtimes.constant_values import has_typed_field, is_misread
from opshift.runtimes.model_nodes import constant_of

FIRST_OPSET: Final = 9
"""Opset that introduced ConstantOfShape."""


def compute_empty_constants(model: ModelProto, runtime: Runtime) -> None:
    """Compute constants that a runtime misreads with ConstantOfShape, unless callers can override them.

    A model with an opset before ConstantOfShape is unchanged.
    """
    if runtime.reads_empty_constants and not runtime.raw_types:
        return
    if opset_imports(model.opset_import, model.ir_version).get(DEFAULT_DOMAIN, 0) < FIRST_OPSET:
        return
    names = FreshNames()
    names.avoid(*root_graphs(model))
    for graph in nested_containers(root_graphs(model)):
        _replace_nodes(graph, names, runtime)
        _replace_initializers(graph, names, runtime)


def _is_computed(tensor: TensorProto, runtime: Runtime) -> bool:
    """Return whether ConstantOfShape replaces a constant.

    Vectors of int64 are included: runtimes that misread constants read them correctly as sizes only.
    """
    is_empty = not runtime.reads_empty_constants and 0 in tensor.dims and tensor.data_type in NAME_BY_NUMBER
    return is_empty or is_misread(tensor, runtime)


def _replace_nodes(graph: GraphProto, names: FreshNames, runtime: Runtime) -> None:
    for node in graph.node:
        tensor = constant_of(node)
        if tensor is not None and _is_computed(tensor, runtime):
            node.input.append(_shape_of(tensor, graph, names))
            node.op_type = "ConstantOfShape"
            _write_zero(tensor)


def _replace_initializers(graph: GraphProto, names: FreshNames, runtime: Runtime) -> None:
    inputs = {each.name for each in graph.input}
    found = [each for each in graph.initializer if _is_computed(each, runtime) and each.name not in inputs]
    if not found:
        return
    keys = [1] * len(graph.node)
    for each in found:
        shape = _shape_of(each, graph, names)
        node = graph.node.add(op_type="ConstantOfShape", input=[shape], output=[each.name])
        value = node.attribute.add(name="value", type=TENSOR).t
        value.CopyFrom(each)
        _write_zero(value)
        keys.append(0)
    sort_by_keys(graph.node, keys)
    replaced = {each.name for each in found}
    remove_messages(graph.initializer, [each.name in replaced for each in graph.initializer])


def _shape_of(tensor: TensorProto, graph: GraphProto, names: FreshNames) -> str:
    """Add an initializer with the shape of a tensor, and return its name."""
    name = names.fresh("shape")
    sizes = tuple(tensor.dims)
    write_tensor(graph.initializer.add(), Tensor("int64", (len(sizes),), sizes), name)
    return name


def _write_zero(tensor: TensorProto) -> None:
    """Turn a tensor into the `value` of ConstantOfShape: one zero of its element type."""
    name = NAME_BY_NUMBER[tensor.data_type]
    tensor.Clear()
    # Zero bytes are a number of every type, and the result has no elements that could differ.
    write_tensor(tensor, Tensor(name, (1,), ()), payload=bytes(byte_size(BY_NAME[name], 1)))


def write_raw_constants(model: ModelProto, element_types: Collection[str]) -> None:
    """Store initializers and tensor attributes of some element types as raw bytes.

    Each element must be stored as one integer of whole bytes: integers, float16, bfloat16 and float8 types.
    """
    for tensor in model_tensors(model):
        name = NAME_BY_NUMBER.get(tensor.data_type, "")
        if name in element_types and has_typed_field(tensor):
            size = element_bits(BY_NAME[name]) // 8
            numbers = [each for field in INTEGER_FIELDS for each in getattr(tensor, field)]
            for field in INTEGER_FIELDS:
                tensor.ClearField(field)
            # A field may hold negative numbers, or more bits than an element has: mask them.
            tensor.raw_data = b"".join((each % 256**size).to_bytes(size, "little") for each in numbers)
