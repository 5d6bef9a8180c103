"""Build the function body of an operator version for a node, which is expanded into other operators."""

from collections.abc import Sequence

from opshift.inference.scope import Scope
from opshift.model.errors import CannotConvert, UsageError, require_type
from opshift.model.graphs import (
    Container,
    add_values,
    captured_names,
    graphs_of,
    nested_containers,
    node_label,
)
from opshift.model.message_text import count_text
from opshift.model.messages import FunctionProto, GraphProto, NodeProto
from opshift.model.node import Node
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.model.types import InputFacts, SerializableMessage
from opshift.registry.errors import require_node
from opshift.registry.function_protos import add_imports, function_proto
from opshift.registry.models import OperatorVersion, Parameter
from opshift.registry.registry import Registry, registry_or_default
from opshift.rewriting.constant_nodes import add_constant_node
from opshift.rewriting.expanding_router import ExpandingRouter
from opshift.rewriting.result import values_read
from opshift.rewriting.rewrite_node import rewrite_node
from opshift.rewriting.routes import LazyAdapterTable
from opshift.rewriting.validation import validate_node
from opshift.rewriting.workspace import Allowances, FreshNames, Workspace


def function_body(
    version: OperatorVersion,
    node: SerializableMessage | None,
    input_types: Sequence[InputFacts | None],
    opset: int | None,
    registry: Registry | None,
) -> FunctionProto:
    """Return the function body of a version; see `OperatorVersion.function_body`."""
    registry = registry_or_default(registry)
    if version.body is not None and opset is None:
        return function_proto(version, registry.at)
    if not version.has_function:
        raise UsageError(f"{version.id} is not a function", remedy="check has_function first")
    if node is None:
        at_opset = f" at opset {opset}" if opset else ""
        reason = f"the function body of {version.id}{at_opset} depends on the node"
        raise UsageError(reason, remedy="pass a NodeProto and the types of its inputs")
    require_node(node)
    require_type("input_types", input_types, Sequence, "a list of facts in the order of the inputs")
    return _build(version, node, input_types, opset, registry)


def _build(
    version: OperatorVersion,
    node: SerializableMessage,
    input_types: Sequence[InputFacts | None],
    opset: int | None,
    registry: Registry,
) -> FunctionProto:
    opsets = {DEFAULT_DOMAIN: opset or registry.newest_opset()}
    if opset is None or version.domain != DEFAULT_DOMAIN:
        opsets[version.domain] = version.since_version
    if registry.known_at(version.name, opsets[version.domain], version.domain) != version:
        remedy = f"pass an opset from {version.since_version} up to its next version"
        raise UsageError(f"{version.id} is not in effect at opset {opset}", remedy=remedy)
    graph = GraphProto()
    call = graph.node.add()
    call.ParseFromString(node.SerializeToString())
    _validate(call, version)
    names = FreshNames()
    names.sources.append(lambda: map(_names_in, nested_containers(graphs_of(call))))
    function = FunctionProto(name=version.name, domain=version.domain, doc_string=version.description)
    # Values in subgraphs keep their names, so a parameter with such a name gets a number.
    function.input.extend(map(names.fresh, _formal_names(version.inputs, len(call.input))))
    function.output.extend(map(names.fresh, _formal_names(version.outputs, len(call.output))))
    call.input[:] = [new if old else "" for new, old in zip(function.input, call.input, strict=False)]
    call.output[:] = function.output
    if len(input_types) > len(call.input):
        given = count_text(len(input_types), "input type")
        reason = f"got {given}, but the node has {count_text(len(call.input), 'input')}"
        raise UsageError(reason, remedy="pass at most one for each input, or None")
    known = zip(call.input, input_types, strict=False)
    add_values(graph, {name: facts for name, facts in known if name and facts is not None}, ())

    scope = Scope(graph, opsets, registry, {})
    workspace = Workspace(scope, names, Allowances())
    router = ExpandingRouter(
        registry, LazyAdapterTable(), opsets, frozenset({f"{version.domain}.{version.name}"})
    )
    result = rewrite_node(Node.from_proto(call), version.since_version, scope, workspace, router)
    workspace.keep_constants(values_read(result.nodes))
    for name, tensor in workspace.kept_constants().items():
        add_constant_node(function, name, tensor)
    protos = [function.node.add() for _ in result.nodes]
    protos[result.replacement_index].CopyFrom(call)
    result.write(protos)
    add_imports(function, {each.domain: opsets[each.domain] for each in result.operators})
    return function


def _validate(call: NodeProto, version: OperatorVersion) -> None:
    """Raise UsageError or CannotConvert if a node cannot be replaced by a function body of the version."""
    if (canonical_domain(call.domain), call.op_type) != (version.domain, version.name):
        label = node_label(call.name, call.op_type, call.output)
        reason = f"node {label} is {call.op_type}, not {version.name}"
        raise UsageError(reason, remedy=f"pass a node of {version.id}")
    validate_node(Node.from_proto(call), version)
    captured = next((name for graph in graphs_of(call) for name in captured_names(graph)), None)
    if captured is not None:
        reason = f"its subgraph reads {captured!r} of the enclosing graph, which a function cannot read"
        remedy = "convert the node in its model with convert_version"
        raise CannotConvert(reason, "function.capture", remedy=remedy)


def _names_in(graph: GraphProto) -> set[str]:
    values = (name for node in graph.node for name in (*node.input, *node.output))
    return Container(graph).predefined_names().union(values)


def _formal_names(formals: Sequence[Parameter], count: int) -> list[str]:
    """Return the first `count` names of parameters; a variadic parameter yields numbered names."""
    names = [each.name for each in formals]
    if formals and formals[-1].option == "variadic":
        last = names.pop()
        names += [f"{last}_{index}" for index in range(count - len(names))]
    return names[:count]
