"""Initializers and sparse tensors for older IR versions: before version 4, each initializer is a graph input.

Initializers of the main graph are appended to its inputs. Initializers of a subgraph, whose inputs its node
determines, become Constant nodes. Before opset 9, Constant produces only floating-point tensors: other
initializers move to the main graph, whose values subgraphs can read. If the name of such an initializer is
not unique, or a subgraph output, the subgraph gets a Cast of a double Constant, or an Identity of the renamed
initializer.
"""

import math
import struct
from collections import Counter
from collections.abc import Iterator

from opshift.checker.ir_features.contents import Contents
from opshift.checker.ir_features.finders import has_dense_equivalent, standalone_initializers
from opshift.converter.ir_version.initializer_inputs import add_initializer_inputs
from opshift.model.attributes import TENSOR
from opshift.model.element_types import BY_NUMBER
from opshift.model.graphs import Container, remove_messages, sort_by_keys
from opshift.model.messages import GraphProto, SparseTensorProto, TensorProto
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.model.tensors import read_tensor, sparse_positions
from opshift.rewriting.constant_nodes import (
    ANY_CONSTANT_SINCE,
    CONSTANT_TYPES,
    add_cast_constant,
    add_input_of,
    is_castable,
)
from opshift.rewriting.workspace import FreshNames


def add_initializers_as_inputs(contents: Contents) -> None:
    """Turn initializers into inputs in the main graph, and into Constant nodes in subgraphs."""
    _move_non_floats_to_main_graph(contents)
    names = FreshNames()
    names.avoid(contents.model.graph, *contents.model.functions)
    for path, graph in contents.graphs:
        standalone = list(standalone_initializers(graph))
        if path == "graph":
            add_initializer_inputs(graph, standalone)
        elif standalone:
            _add_constants(graph, standalone, contents, names)


def _default_opset(contents: Contents) -> int:
    opsets = {canonical_domain(entry.domain): entry.version for entry in contents.model.opset_import}
    return opsets.get(DEFAULT_DOMAIN, ANY_CONSTANT_SINCE)


def _move_non_floats_to_main_graph(contents: Contents) -> None:
    if _default_opset(contents) >= ANY_CONSTANT_SINCE:
        return
    main = contents.model.graph
    counts = Counter(name for _, graph in contents.graphs for name in _names_in_graph(graph))
    for _, graph in contents.graphs:
        standalone = {tensor.name for tensor in standalone_initializers(graph)} if graph is not main else ()
        # A subgraph must produce its outputs itself, so initializers that are outputs stay.
        unique = {name for name in standalone if counts[name] == 1}.difference(Container(graph).outputs)
        moved = {
            tensor.name: tensor
            for tensor in reversed(graph.initializer)
            if tensor.name in unique and not _is_floating(tensor)
        }
        main.initializer.extend(moved.values())
        remove_messages(graph.initializer, [tensor.name in moved for tensor in graph.initializer])


def _is_floating(tensor: TensorProto) -> bool:
    kind = BY_NUMBER.get(tensor.data_type)
    return kind is not None and kind.name in CONSTANT_TYPES


def _names_in_graph(graph: GraphProto) -> Iterator[str]:
    yield from (value.name for value in graph.input)
    yield from (tensor.name for tensor in graph.initializer)
    yield from (name for node in graph.node for name in node.output)


def _add_constants(
    graph: GraphProto, initializers: list[TensorProto], contents: Contents, fresh_names: FreshNames
) -> None:
    count, opset = len(graph.node), _default_opset(contents)
    for initializer in initializers:
        if opset >= ANY_CONSTANT_SINCE or _is_floating(initializer):
            node = graph.node.add(op_type="Constant", output=[initializer.name])
            attribute = node.attribute.add(name="value", type=TENSOR, t=initializer)
            attribute.t.ClearField("name")
            continue
        tensor = read_tensor(initializer)
        name = fresh_names.fresh(f"{initializer.name}_value")
        if tensor and is_castable(tensor):
            add_cast_constant(graph, initializer.name, tensor, name, opset)
            if initializer.doc_string:
                graph.node[-1].doc_string = initializer.doc_string
        else:
            main = contents.model.graph
            moved = main.initializer.add()
            moved.CopyFrom(initializer)
            moved.name = name
            add_input_of(main, moved)
            graph.node.add(op_type="Identity", input=[name], output=[initializer.name])
    names = {initializer.name for initializer in initializers}
    remove_messages(graph.initializer, [tensor.name in names for tensor in graph.initializer])
    # The new nodes must precede the nodes that read their outputs.
    sort_by_keys(graph.node, [*range(count), *(-1 for _ in range(len(graph.node) - count))])


def densify_initializers(contents: Contents) -> None:
    """Replace every sparse initializer by a dense one of the same name."""
    for _, graph in contents.graphs:
        for sparse in graph.sparse_initializer:
            _write_dense(sparse, graph.initializer.add())
        graph.ClearField("sparse_initializer")


def densify_attributes(contents: Contents) -> None:
    """Replace the `sparse_value` of Constants by a dense `value`, where `has_dense_equivalent` allows it."""
    for held in contents.attributes:
        if held.proto.HasField("sparse_tensor") and has_dense_equivalent(held, contents):
            _write_dense(held.proto.sparse_tensor, held.proto.t)
            held.proto.ClearField("sparse_tensor")
            held.proto.name, held.proto.type = "value", TENSOR


def _write_dense(sparse: SparseTensorProto, dense: TensorProto) -> None:
    """Fill an empty TensorProto with zeros and the values of a sparse tensor."""
    kind = BY_NUMBER[sparse.values.data_type]
    values, indices = read_tensor(sparse.values), read_tensor(sparse.indices)
    assert values is not None
    assert indices is not None
    width = struct.calcsize(f"<{kind.code}")
    payload = bytearray(math.prod(sparse.dims) * width)
    for position, value in zip(sparse_positions(indices, sparse.dims), values.values, strict=True):
        struct.pack_into(f"<{kind.code}", payload, position * width, value)
    dense.name = sparse.values.name
    if sparse.values.doc_string:
        dense.doc_string = sparse.values.doc_string
    dense.data_type = kind.number
    dense.dims.extend(sparse.dims)
    dense.raw_data = bytes(payload)
