"""Nodes of a model as a runtime executes them, with local functions inlined, and facts about these nodes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Final

from opshift.checker.ir_features.contents import FIRST_IR_WITH_STANDALONE_INITIALIZERS
from opshift.inference.call_facts import MAX_CALL_DEPTH
from opshift.inference.facts import InferenceScope, OperatorStatus
from opshift.inference.function_scope import FunctionTable
from opshift.inference.infer_types import parameter_at
from opshift.inference.scope import Scope
from opshift.inference.survey import survey
from opshift.model.element_types import NAME_BY_NUMBER, type_string
from opshift.model.errors import CannotConvert, InvalidModel
from opshift.model.graphs import (
    ContainerProto,
    add_values,
    graphs_of,
    initializer_inputs,
    is_graph,
    node_place,
    require_graph,
)
from opshift.model.messages import ModelProto, NodeProto, TensorProto, TypeProto
from opshift.model.node import Node, Tensor
from opshift.model.node_key import require_utf8_names
from opshift.model.operator_ids import (
    DEFAULT_DOMAIN,
    OperatorId,
    canonical_domain,
    function_label,
    model_domain,
    opset_imports,
)
from opshift.model.tensors import can_pack_tensor, write_tensor
from opshift.model.types import InputFacts, declared_dims, element_type_of
from opshift.registry.models import OperatorVersion
from opshift.registry.onnx_defs import onnx_defs
from opshift.registry.registry import Registry
from opshift.runtimes.called_functions import (
    NODES_PER_GRAPH,
    CalledFunction,
    FunctionCall,
    limit_error,
    max_inlined_nodes,
)
from opshift.runtimes.constant_values import ConstantValues, Unfolded
from opshift.runtimes.node_group import NodeGroup, group_nodes
from opshift.runtimes.value_origins import ValueOrigins

UNCHECKED: Final = "__"
"""Prefix of attributes that schemas do not check."""

MAX_CONSTANT = 64
"""Maximum number of elements of a constant input from which the function body of a node may be built."""

TYPE_ATTRIBUTES: Final = ("to", "dtype", "output_dtype")
"""Attributes for output types of Cast, random and quantizing operators; declared types must equal these."""


class ModelNode:
    """Node of a graph, a subgraph or a called local function.

    Attributes:
        place: its place for messages.
        node: the node, with the attributes that the call of its function provides.
        scope: the values of its graph or function.
        domain: canonical domain of its operator.
        operator: its operator version; `None` if the registry does not have it.
        constants: the values of the model that are the same in every run.
        origins: search for the operators that compute values of the model.
        body: the nodes of its function body, or the reason why they are unknown; `None` before the first use.
        definition_problem: why its definition does not allow the node, or empty; `None` before the first use.
    """

    body: ModelNodes | CannotConvert | None = None
    definition_problem: str | None = None

    def __init__(
        self, place: str, node: Node, scope: Scope, constants: ConstantValues, origins: ValueOrigins
    ) -> None:
        require_utf8_names(node.attributes)
        self.place = place
        self.constants = constants
        self.origins = origins
        self.node = node
        self.scope = scope
        self.domain = canonical_domain(node.domain)
        self.operator: OperatorVersion | None = scope.operator(node.op_type, node.domain)

    def parameters(self) -> Iterator[tuple[str, str, str]]:
        """Yield value name, parameter name, and type variable or type of each input and output."""
        if self.operator is not None:
            for formals, names in (
                (self.operator.inputs, self.node.inputs),
                (self.operator.outputs, self.node.outputs),
            ):
                for position, name in enumerate(names):
                    formal = parameter_at(formals, position)
                    if name and formal is not None:
                        yield name, formal.name, formal.type

    @cached_property
    def values(self) -> Mapping[str, str]:
        """Value names by name of the input or output parameter; for a variadic parameter, its last value."""
        return {name: value for value, name, _ in self.parameters()}

    def values_of(self, parameter: str) -> list[str]:
        """Return the value names of an input or output parameter; a variadic parameter may have several."""
        return [value for value, name, _ in self.parameters() if name == parameter]

    def with_constants(self, unfolded: Unfolded) -> ModelNode:
        """Return the same node with the constants of a runtime that does not compute some of them."""
        other = copy(self)
        other.constants = self.constants.without(unfolded)
        return other

    @cached_property
    def input_types(self) -> frozenset[str | None]:
        """Element types of the inputs; `None` for an unknown type."""
        return frozenset(map(self.scope.element_type, filter(None, self.node.inputs)))

    @cached_property
    def output_types(self) -> frozenset[str | None]:
        """Element types of the outputs; `None` for an unknown type."""
        return frozenset(map(self.scope.element_type, filter(None, self.node.outputs)))

    @cached_property
    def operator_id(self) -> OperatorId | None:
        """The operator version; `None` for an undefined operator."""
        # The domain of the node, because the definition of a nonstandard operator has a different one.
        return self.operator.id._replace(domain=self.domain) if self.operator is not None else None

    @cached_property
    def has_usable_body(self) -> bool:
        """Whether the operator has a function body that newer releases of onnxruntime use.

        Unless the body depends on the node, the opset of the model must not be older than the opset of the
        body, and the operators in the body must have the same versions at both opsets.
        """
        version, registry = self.operator, self.scope.registry
        if version is None or not version.has_function or registry.is_open(self.domain):
            return False
        if version.body is None:
            return True
        opsets, body_opset = self.scope.opsets, self._body_opset
        written = {**opsets, version.domain: body_opset or 1}
        return body_opset is not None and all(
            registry.known_at(each.op_type, written.get(each.domain, 1), each.domain)
            == registry.known_at(each.op_type, opsets.get(each.domain, 1), each.domain)
            for each in version.body.nodes
        )

    @cached_property
    def has_fixed_body(self) -> bool:
        """Whether the function body exists, is the same for all nodes, and is not for a newer opset."""
        return self._body_opset is not None

    @cached_property
    def _body_opset(self) -> int | None:
        """Newest opset up to that of the node for which the ONNX library has a fixed body, or `None`."""
        version = self.operator
        if version is None or version.body is None:
            return None
        listed = onnx_defs().function_opsets.get(str(version.id), (version.since_version,))
        opset = self.scope.opsets.get(version.domain, 1)
        return max((each for each in listed if each <= opset), default=None)

    @cached_property
    def types(self) -> tuple[tuple[str, str | None], ...]:
        """Types such as `tensor(float)`, by type variable and by parameter; `None` for an unknown type."""
        found: dict[str, str | None] = {}
        for value, name, variable in self.parameters():
            element = self.scope.element_type(value)
            for each in (variable, name):
                found[each] = found.get(each) or (type_string(element) if element else None)
        return tuple(found.items())

    @cached_property
    def unknown_attributes(self) -> frozenset[str]:
        """Names of the attributes that no version of the operator has, and that schemas check."""
        given = self.node.attributes.keys()
        if self.operator is None or given <= self.operator.attributes.keys():
            return frozenset()
        operator = self.scope.registry.operator(self.operator.name, self.operator.domain)
        assert operator is not None
        known = {name for each in operator.versions for name in each.attributes}
        return frozenset(each for each in given - known if not each.startswith(UNCHECKED))

    @cached_property
    def key(self) -> Hashable:
        """Key of the function body: nodes with equal keys have the same body."""
        attributes = tuple(each.SerializeToString() for each in self.node.attributes.values())
        facts = tuple(map(self._input_facts, self.node.inputs))
        outputs = tuple(map(bool, self.node.outputs))
        return self.node.op_type, self.domain, self.scope.opset_of(""), attributes, facts, outputs

    @cached_property
    def schema_key(self) -> Hashable:
        """Key for checks by schemas: nodes with equal keys have equal results."""
        scope, (inputs, outputs) = self.scope, (self.node.inputs, self.node.outputs)
        counts = len(inputs), len(outputs)
        if self.operator is not None:  # values without a parameter are only counted
            inputs, outputs = inputs[: self.operator.max_input], outputs[: self.operator.max_output]
        values = (*inputs, "->", *outputs)
        types = tuple(each and (scope.element_type(each), scope.declared_type(each)) for each in values)
        found = self.node.attributes
        attributes = tuple((name, getattr(each, "type", 0)) for name, each in found.items())
        declared = tuple(self.node.attribute(name) for name in TYPE_ATTRIBUTES if name in found)
        return self.operator, self.domain, attributes, declared, counts, types

    def _input_facts(self, name: str) -> Hashable:
        shape = self.scope.shape(name) if name else None
        return name and (self.scope.element_type(name), shape, self._constant(name))

    def _constant(self, name: str) -> Tensor | None:
        """Return a constant that is small enough to build a function body from, or `None`."""
        found = self.scope.constant(name)
        is_small = found is not None and len(found.values) <= MAX_CONSTANT and can_pack_tensor(found)
        return found if is_small else None

    def expanded(self, registry: Registry) -> ModelProto:
        """Return a model with only this node, as a call of its function body.

        Raises:
            CannotConvert: the body depends on an unknown fact.
        """
        assert self.operator is not None
        node = self.node
        call = NodeProto(
            op_type=node.op_type,
            domain=node.domain,
            name=node.op_type,
            input=node.inputs,
            output=node.outputs,
        )
        for each in node.attributes.values():
            call.attribute.add().ParseFromString(each.SerializeToString())
        facts = {name: self._known_input(name) for name in filter(None, node.inputs)}
        inputs = [facts.get(name) for name in node.inputs]
        # Nodes of a body that is the same for all nodes get the opset of the model, as after inlining.
        opset = None if self.operator.body else self.scope.opset_of("")
        function = self.operator.function_body(call, inputs, opset=opset, registry=registry)
        del function.opset_import[:]
        model = ModelProto(functions=[function])
        for domain, opset in self.scope.opsets.items():
            model.opset_import.add(domain=model_domain(domain), version=opset)
        model.graph.node.append(call)
        add_values(model.graph, {name: each for name, each in facts.items() if each is not None}, ())
        return model

    def _known_input(self, name: str) -> InputFacts | None:
        constant = self._constant(name)
        if constant is not None:
            proto = TensorProto()
            write_tensor(proto, constant, name)
            return proto
        element = self.scope.element_type(name)
        return (element, self.scope.shape(name)) if element else None


def constant_of(node: NodeProto) -> TensorProto | None:
    """Return the tensor of a Constant node; `None` for other nodes, and without the attribute `value`."""
    if node.op_type != "Constant" or canonical_domain(node.domain) != DEFAULT_DOMAIN:
        return None
    return next((each.t for each in node.attribute if each.name == "value"), None)


class ModelNodes:
    """The nodes of a model.

    Attributes:
        opsets: opset imports, by domain.
        ir_version: IR version.
        unranked_inputs: names of the inputs of the model that are tensors without a declared rank.
        unsized_inputs: names of the inputs of the model that are tensors without all sizes declared.
        input_types: element types of the inputs of the model.
        overridable: element types of the initializers that callers can override, by name.
        scope: scope of the main graph.
        graphs: the main graph and all subgraphs, with their places.
        nodes: the nodes of all graphs and called local functions, except calls of local functions.
        calls: the calls of each local function, by its label.
        unimported: the places of nodes in graphs and functions that do not import their domain, by the
            domain and the operator or function.

    Raises:
        InvalidModel: names or the order of nodes are invalid, or calls of functions are too deep or too many.
    """

    def __init__(self, model: ModelProto, registry: Registry) -> None:
        self.opsets = opset_imports(model.opset_import, model.ir_version)
        self.ir_version = model.ir_version
        self.unranked_inputs = [
            each.name
            for each in model.graph.input
            if each.type.HasField("tensor_type") and declared_dims(each.type) is None
        ]
        self.unsized_inputs = [
            each.name
            for each in model.graph.input
            if each.type.HasField("tensor_type") and not _declares_sizes(each.type)
        ]
        self.input_types = frozenset(element_type_of(each.type) for each in model.graph.input)
        has_defaults = model.ir_version >= FIRST_IR_WITH_STANDALONE_INITIALIZERS
        defaults = initializer_inputs(model.graph) if has_defaults else ()
        self.overridable = {
            each.name: NAME_BY_NUMBER.get(each.data_type, "")
            for each in (model.graph.initializer if defaults else ())
            if each.name in defaults
        }
        self.nodes: list[ModelNode] = []
        self.calls: defaultdict[str, list[FunctionCall]] = defaultdict(list)
        self.unimported: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        self._max_nodes = max_inlined_nodes(model)
        self._inlined_nodes = 0
        self._registry = registry
        self._functions = FunctionTable(model, registry)
        self._constants = ConstantValues(has_defaults=has_defaults)
        self._origins = ValueOrigins()
        self._visited: set[Scope] = set()
        self._called: list[CalledFunction] = []
        self.graphs: list[tuple[str, ContainerProto]] = []
        self._bodies: dict[Hashable, ModelNodes | CannotConvert] = {}
        self.scope: Scope = self._functions.scope(model.graph, self.opsets, registry, {})
        self._add(self.scope, "graph", 0)

    def with_ir_version(self, ir_version: int) -> ModelNodes:
        """Return the nodes of the same model with another IR version; cached answers are shared."""
        other = copy(self)
        other.ir_version = ir_version
        return other

    def has_closed_domain(self, call: FunctionCall) -> bool:
        """Return whether the registry defines all operators in the domain of the called function."""
        return not self._registry.is_open(call.domain)

    @property
    def tensors(self) -> Iterator[tuple[str, TensorProto]]:
        """The place and the tensor of each initializer and Constant node of the main graph and subgraphs."""
        for path, graph in self.graphs:
            for tensor in graph.initializer if is_graph(graph) else ():
                yield f"{path}, initializer {tensor.name!r}", tensor
            for node in graph.node:
                value = constant_of(node)
                if value is not None:
                    yield node_place(path, node), value

    @cached_property
    def groups(self) -> Mapping[Hashable, NodeGroup]:
        """Groups of nodes with the same operator version and types, by a key for both."""
        return group_nodes(self.nodes)

    @property
    def has_functions(self) -> bool:
        """Whether the model has local functions."""
        return bool(self._functions.protos)

    @cached_property
    def computed_constants(self) -> Sequence[ModelNode]:
        """Nodes that optimizers may compute before the first run, except Constant nodes."""
        return [
            each
            for each in self.nodes
            if each.node.op_type != "Constant" and self._has_constant(each.scope, each.node.outputs)
        ]

    @cached_property
    def constant_calls(self) -> Sequence[tuple[CalledFunction, Sequence[ModelNode]]]:
        """Calls that optimizers may compute before the first run, each with the nodes of the function."""
        return [
            (each, self._nodes_of.get(each.body, ()))
            for each in self._called
            if self._has_constant(each.scope, each.outputs)
        ]

    def _has_constant(self, scope: Scope, names: Sequence[str]) -> bool:
        """Return whether one of the values would be constant if runtimes had kernels for all nodes."""
        constants = self._constants.without(frozenset())
        return any(constants.contain(scope, each) for each in filter(None, names))

    def nodes_in(self, body: Scope) -> Iterator[tuple[ModelNode, bool]]:
        """Yield the nodes of a subgraph and its nested subgraphs, and whether each is in a nested one."""
        pending = [body]
        for scope in pending:  # the loop appends nested subgraphs to this list
            pending += self._scopes_in.get(scope, ())
            yield from ((each, scope is not body) for each in self._nodes_of.get(scope, ()))

    @cached_property
    def _nodes_of(self) -> Mapping[Scope, Sequence[ModelNode]]:
        found: defaultdict[Scope, list[ModelNode]] = defaultdict(list)
        for each in self.nodes:
            found[each.scope].append(each)
        return found

    @cached_property
    def _scopes_in(self) -> Mapping[InferenceScope, Sequence[Scope]]:
        found: defaultdict[InferenceScope, list[Scope]] = defaultdict(list)
        for scope in self._nodes_of:
            if scope.parent is not None:
                found[scope.parent].append(scope)
        return found

    @cached_property
    def unknown_attributes(self) -> Mapping[str, set[str]]:
        """Names of attributes that no version of their operator has, by operator such as `ai.onnx.If`."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for each in self.nodes:
            if each.unknown_attributes:
                found[f"{each.domain}.{each.node.op_type}"] |= each.unknown_attributes
        return found

    @cached_property
    def repeated_names(self) -> list[tuple[str, str]]:
        """Pairs of the place of a graph, and a name that several nodes of the graph share."""
        found: list[tuple[str, str]] = []
        for place, graph in self.graphs:
            counts = Counter(each.name for each in graph.node if each.name)
            found += ((place, name) for name, count in counts.items() if count > 1)
        return found

    def body(self, node: ModelNode) -> ModelNodes | CannotConvert:
        """Return the nodes of the function body of a node, or the error if the body is unknown."""
        if node.body is None:
            if node.key not in self._bodies:
                try:
                    self._bodies[node.key] = ModelNodes(node.expanded(self._registry), self._registry)
                except CannotConvert as error:
                    self._bodies[node.key] = error
            node.body = self._bodies[node.key]
        return node.body

    def _add(self, scope: Scope, path: str, depth: int) -> None:
        """Add the nodes of a graph or function, unless a call with the same facts added them."""
        if scope in self._visited:
            return
        self._visited.add(scope)
        if depth and (depth > MAX_CALL_DEPTH or self._inlined_nodes > self._max_nodes):
            raise limit_error(path, depth, self._max_nodes)
        for each in survey(scope, path, _status, keeps_records=True).walk():
            if depth == 0:
                self.graphs.append((each.path, each.scope.container))
            self._inlined_nodes += len(each.candidates) + NODES_PER_GRAPH
            for record in each.candidates:
                proto = each.scope.proto_of(record)
                place = node_place(each.path, proto)
                if not each.scope.opset_of(proto.domain):
                    self._add_unimported(proto.domain, proto.op_type, place)
                if not self._functions.has_name(proto.op_type, proto.domain):
                    self.nodes.append(
                        ModelNode(
                            place, each.scope.node_of(record), each.scope, self._constants, self._origins
                        )
                    )
                elif (call := self._functions.find_call(proto, each.scope)) is not None:
                    function = self._functions.protos[call[0]]
                    label, domain = function_label(function), canonical_domain(function.domain)
                    self.calls[label].append(
                        FunctionCall(place, domain, len(proto.output), len(function.output))
                    )
                    if each.scope.opset_of(domain) and domain not in self.opsets:
                        self._add_unimported(domain, proto.op_type, place)
                    body = self._functions.scope_of_call(call[0], proto, each.scope)
                    self._called.append(CalledFunction(each.scope, tuple(filter(None, proto.output)), body))
                    self._add(body, f"{place}, function {label}", depth + 1)

    def _add_unimported(self, domain: str, op_type: str, place: str) -> None:
        domain = canonical_domain(domain)
        self.unimported[domain, f"{domain}.{op_type}"].append(place)


def ordered(model: ModelProto, registry: Registry) -> tuple[ModelProto, ModelNodes]:
    """Return the model, or a copy with repairs such as sorted nodes, and its nodes.

    Raises:
        InvalidModel: no repair helps, the graph is missing, or a list is too long, see `require_graph`.
    """
    require_graph(model)
    try:
        return model, ModelNodes(model, registry)
    except InvalidModel as error:
        from opshift.inference.repair import repaired_copy  # imported here: few models need repairs

        model, _ = repaired_copy(model, error, registry)
        return model, ModelNodes(model, registry)


def _declares_sizes(declared: TypeProto) -> bool:
    dims = declared_dims(declared)
    return dims is not None and all(isinstance(each, int) for each in dims)


def _status(proto: NodeProto, scope: Scope) -> OperatorStatus:
    """Return a status with which a survey visits every node, and its subgraphs."""
    return OperatorStatus(has_step=True, has_graphs=any(graphs_of(proto)))
