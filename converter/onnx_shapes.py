"""Shapes that the `onnx` package infers, declared in a copy of the model for planning."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from importlib.util import find_spec
from itertools import chain

from opshift.checker.ir_features.contents import FIRST_IR_WITH_STANDALONE_INITIALIZERS
from opshift.converter.functions.inlining import inlined_size
from opshift.converter.options import Options
from opshift.converter.plan.changes import Plan
from opshift.inference.facts import InferenceScope
from opshift.inference.root_scopes import add_call_facts, nested_scopes, root_scopes
from opshift.model.declarations import declarations_in
from opshift.model.element_types import BY_NAME
from opshift.model.files import read_bytes
from opshift.model.graphs import MAX_NODES, graphs_of, is_graph, nested_containers
from opshift.model.messages import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto
from opshift.model.types import MAX_RANK, Shape, dims_of, element_type_of, fill_type, has_shape
from opshift.registry.registry import Registry

MAX_ELEMENTS = 64
"""Maximum number of elements of a tensor whose data are passed to onnx: sizes and axes are small tensors.

Larger data may still be in the source file of a streaming conversion, and could exceed the 2 GiB limit of
a serialized message.
"""

HIDDEN = "opshift.hidden"
"""Domain without operators, for the nodes that onnx must not visit."""

UNSAFE_OPERATORS = frozenset({"DictVectorizer", "EyeLike", "LabelEncoder", "RegexFullMatch"})
"""Operators for which onnx ends the process if it does not know the type of an input."""

USED = "model: shapes that onnx infers were used"

ModelPlanner = Callable[[ModelProto, Options], Plan]


def has_onnx() -> bool:
    """Return whether the optional package `onnx` is installed."""
    try:
        return find_spec("onnx") is not None
    except ValueError:  # `sys.modules` contains a substitute without `__spec__`
        return False


def plan_with_onnx_shapes(model: ModelProto, plan: Plan, options: Options, new_plan: ModelPlanner) -> Plan:
    """Plan again with the shapes that onnx infers, and return the plan with fewer refusals."""
    copy = with_onnx_shapes(model, options.registry)
    new = plan if copy is None else new_plan(copy, options)
    # A plan refers to nodes only by position, so the plan of the copy also applies to the original model.
    return replace(new, repairs=(*new.repairs, USED)) if len(new.refusals) < len(plan.refusals) else plan


def with_onnx_shapes(model: ModelProto, registry: Registry) -> ModelProto | None:
    """Return a copy of a model that declares the shapes that onnx infers; `None` without new shapes."""
    inferred = _infer_with_onnx(model, registry)
    if inferred is None:
        return None
    copy = deepcopy(model)
    scope, *_ = next(root_scopes(model, copy, registry))
    return copy if _add_claims(scope, model.graph, inferred.graph, copy.graph) else None


def _infer_with_onnx(model: ModelProto, registry: Registry) -> ModelProto | None:
    # onnx visits the nodes of a function once for each call, and copies shapes of any rank: limit both.
    if inlined_size(model) > MAX_NODES or _largest_rank(model) > MAX_RANK:
        return None
    try:
        from onnx.shape_inference import infer_shapes
    except ImportError:
        return None
    copy = _without_weights(model)
    _hide_untyped_nodes(copy, registry)
    try:
        result = infer_shapes(copy.SerializeToString(), data_prop=True)
        return read_bytes(result.SerializeToString())
    # For models that it does not accept, onnx raises errors of many classes; the plan without onnx remains.
    except Exception:
        return None


def _largest_rank(model: ModelProto) -> int:
    graphs = [*nested_containers([model.graph])]
    values = chain.from_iterable(map(declarations_in, graphs))
    declared = (len(each.type.tensor_type.shape.dim) for each in values)
    return max(chain(declared, (len(each.dims) for graph in graphs for each in graph.initializer)), default=0)


def _without_weights(model: ModelProto) -> ModelProto:
    """Return a copy with the fields that onnx reads, without the data of large tensors in the main graph."""
    copy, graph = type(model)(), model.graph
    # below this IR version, onnx ignores initializers that are not graph inputs
    copy.ir_version = max(model.ir_version, FIRST_IR_WITH_STANDALONE_INITIALIZERS)
    copy.opset_import.extend(model.opset_import)
    copy.functions.extend(model.functions)
    copy.graph.name = graph.name
    copy.graph.node.extend(graph.node)
    copy.graph.input.extend(graph.input)
    copy.graph.output.extend(graph.output)
    copy.graph.value_info.extend(graph.value_info)
    for tensor in graph.initializer:
        if math.prod(tensor.dims) > MAX_ELEMENTS:
            _write_placeholder(copy.graph.initializer.add(), tensor)
        else:
            copy.graph.initializer.add().CopyFrom(tensor)
    for node in copy.graph.node:
        for attribute in node.attribute:
            if math.prod(attribute.t.dims) > MAX_ELEMENTS:
                attribute.t.ClearField("raw_data")
                attribute.t.data_location = attribute.t.EXTERNAL
    return copy


def _hide_untyped_nodes(model: ModelProto, registry: Registry) -> None:
    """Move nodes for which onnx may end the process to the domain `HIDDEN`, and declare the known types.

    In graphs, these are nodes without subgraphs that read a value of unknown type. In functions, onnx ignores
    declared types, and may infer fewer types than opshift, so all nodes of `UNSAFE_OPERATORS` are hidden.
    """
    scopes = [scope for scope, _, _ in root_scopes(model, model, registry)]
    add_call_facts(scopes)
    hidden: list[NodeProto] = []
    known: list[tuple[GraphProto, str, str]] = []
    for root in scopes:
        for scope, _ in nested_scopes(root, ""):
            graph = scope.container
            for node in graph.node:
                if root.is_function:
                    is_hidden = node.op_type in UNSAFE_OPERATORS
                else:
                    is_untyped = any(name and scope.element_type(name) is None for name in node.input)
                    is_hidden = is_untyped and not any(graphs_of(node))
                if is_hidden:
                    hidden.append(node)
            if is_graph(graph):
                declared = {each.name for each in declarations_in(graph)}
                results = {name for node in graph.node for name in node.output} - declared - {""}
                types_of = ((name, scope.element_type(name)) for name in sorted(results))
                known += [(graph, name, each) for name, each in types_of if each and each in BY_NAME]
    for graph, name, element_type in known:
        fill_type(graph.value_info.add(name=name).type, element_type, None)
    for node in hidden:
        node.domain = HIDDEN
    for imports in (model.opset_import, *(each.opset_import for each in model.functions)):
        imports.add(domain=HIDDEN, version=1)


def _write_placeholder(placeholder: TensorProto, tensor: TensorProto) -> None:
    """Write a tensor without data, marked as external, because onnx does not read external data."""
    placeholder.name, placeholder.data_type = tensor.name, tensor.data_type
    placeholder.dims.extend(tensor.dims)
    placeholder.data_location = placeholder.EXTERNAL


def _add_claims(scope: InferenceScope, graph: GraphProto, inferred: GraphProto, copy: GraphProto) -> bool:
    """Add the shapes of an inferred graph to a copy of the graph; return whether the copy changed."""
    declared = {value.name: value for value in (*copy.value_info, *copy.output)}
    inputs = {value.name for value in copy.input}
    is_changed = False
    for value in (*inferred.value_info, *inferred.output):
        if has_shape(value.type) and value.name not in inputs:
            claim = declared.get(value.name) or _add_value(copy, value, scope)
            dims = dims_of(value.type.tensor_type.shape)
            is_changed |= claim is not None and _complete_sizes(claim.type, dims)
    for nodes in zip(graph.node, inferred.node, copy.node, strict=True):
        for inner, inferred_inner, inner_copy in zip(*map(graphs_of, nodes), strict=True):
            is_changed |= _add_claims(scope.child(inner), inner, inferred_inner, inner_copy)
    return is_changed


def _add_value(graph: GraphProto, value: ValueInfoProto, scope: InferenceScope) -> ValueInfoProto | None:
    """Declare the element type of a value, without a shape; return `None` if no type is inferred.

    The type that opshift infers takes precedence over that of onnx.
    """
    element_type = scope.element_type(value.name) or element_type_of(value.type)
    if element_type is None:
        return None
    added = graph.value_info.add()
    added.name = value.name
    fill_type(added.type, element_type, None)
    return added


def _complete_sizes(proto: TypeProto, dims: Shape) -> bool:
    """Fill in the unknown sizes of a tensor type, and return whether the type changed."""
    known = dims_of(proto.tensor_type.shape) if has_shape(proto) else (None,) * len(dims)
    if proto.WhichOneof("value") != "tensor_type" or len(known) != len(dims) or len(dims) > MAX_RANK:
        return False
    is_changed = not has_shape(proto)
    shape = proto.tensor_type.shape
    shape.SetInParent()
    for position, (old, new) in enumerate(zip(known, dims, strict=True)):
        dim = shape.dim[position] if position < len(shape.dim) else shape.dim.add()
        if old is None and new is not None:
            dim.dim_value, is_changed = new, True
    return is_changed
