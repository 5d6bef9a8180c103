"""The model, its graphs and its functions, as rules receive them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from opshift.inference.infer_types import parameter_at
from opshift.inference.scope import Scope
from opshift.model.graphs import ContainerProto, is_graph, nested_nodes
from opshift.model.messages import FunctionProto, GraphProto, ModelProto, NodeProto, TypeProto
from opshift.model.operator_ids import (
    LocalFunction,
    called_function,
    declared_opsets,
    function_id,
    function_label,
)
from opshift.model.types import Shape
from opshift.registry.errors import ResolveError
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry


class ModelSource(NamedTuple):
    """Model that could not be read, or only in part."""

    place: str
    error: str = ""
    is_text: bool = True


class CheckedModel:
    """A ModelProto.

    Attributes:
        functions: its functions by key; the first function with a key wins.
        calls: the functions that the body of each function calls; complete after all functions are walked.
        folder: the folder of its external data, if known.
        graph_names: the names of its graphs; complete after all graphs are walked.
        digests: the SHA1 digests of its data files, of those with a checksum.
        passed_keys: cache keys of nodes, attributes and typed nodes that break no rule.
    """

    place = "model"

    def __init__(self, proto: ModelProto, registry: Registry, folder: Path | None = None) -> None:
        self.proto = proto
        self.registry = registry
        self.folder = folder
        self.ir_version: int = proto.ir_version
        self.opsets = declared_opsets(proto.opset_import, self.ir_version)
        self.functions: dict[LocalFunction, FunctionProto] = {}
        for function in proto.functions:
            self.functions.setdefault(function_id(function), function)
        self.calls: dict[LocalFunction, set[LocalFunction]] = {key: set() for key in self.functions}
        self.graph_names: list[str] = []
        self.digests: dict[Path, str] = {}
        self.passed_keys: set[Hashable] = set()

    @cached_property
    def redefines_operators(self) -> bool:
        """Whether a function replaces an operator, so that operator definitions do not imply types."""
        known = (key for key in self.functions if self.registry.has_domain(key.domain))
        return any(self.registry.operator(name, domain) for domain, name, _ in known)

    @cached_property
    def all_opsets(self) -> Mapping[str, int]:
        """The opset imports of the model, and of its functions for domains that the model does not import."""
        opsets = dict(self.opsets)
        for function in self.proto.functions:
            opsets = {**declared_opsets(function.opset_import), **opsets}
        return opsets

    @cached_property
    def device_counts(self) -> Mapping[str, int]:
        """The number of devices of each device configuration, by name."""
        return {entry.name: entry.num_devices for entry in self.proto.configuration}

    @cached_property
    def attribute_types(self) -> Mapping[LocalFunction, Mapping[str, int]]:
        """The types of the attributes of each function: that of the default, or of the first reference."""
        found: dict[LocalFunction, dict[str, int]] = {}
        for key, function in self.functions.items():
            types = found[key] = {each.name: each.type for each in function.attribute_proto}
            for node in nested_nodes(function):
                for attribute in node.attribute:
                    if attribute.ref_attr_name:
                        types.setdefault(attribute.ref_attr_name, attribute.type)
        return found

    @cached_property
    def required_inputs(self) -> Set[tuple[LocalFunction, str]]:
        """The inputs of functions that nodes of the body require, directly or through calls.

        Nodes of subgraphs do not count: they may not run if the input is omitted.
        """
        required: set[tuple[LocalFunction, str]] = set()
        passed_on: dict[tuple[LocalFunction, str], list[tuple[LocalFunction, str]]] = defaultdict(list)
        for key, function in self.functions.items():
            body = CheckedFunction(function, self)
            for node, position, name in body.input_uses():
                operator, called, _ = body.resolve(node)
                parameter = parameter_at(operator.inputs, position) if operator else None
                if parameter is not None and parameter.option != "optional":
                    required.add((key, name))
                elif called is not None and position < len(called.input):
                    passed_on[called_function(node), called.input[position]].append((key, name))
        pending = list(required)
        while pending:
            for caller in passed_on[pending.pop()]:
                if caller not in required:
                    required.add(caller)
                    pending.append(caller)
        return required


class NodeDefinition(NamedTuple):
    """Operator version or called function of a node, or why its operator does not resolve."""

    operator: OperatorVersion | None = None
    function: FunctionProto | None = None
    error: ResolveError | None = None


class Claim(NamedTuple):
    """Output of a node, with the shape that the model declares and the inferred one."""

    name: str
    declared: Shape
    inferred: Shape


class CheckedContainer:
    """A graph or function.

    Attributes:
        place: its name in messages.
        imports: its opset imports as part of cache keys.
        is_top: whether it is the main graph or a training graph, not an attribute of a node.
        scope: its values; `defined_names` has the outputs of the nodes before the current one.
        key: the identity of the function, also for graphs nested in one; `None` outside functions.
        read_names: the names that its nodes and nested graphs read.
        is_invalid: whether a node before the current one, here, in a nested or in an enclosing graph,
            breaks a rule.
    """

    def __init__(
        self,
        proto: ContainerProto,
        place: str,
        model: CheckedModel,
        opsets: Mapping[str, int],
        parent: CheckedContainer | None = None,
        *,
        is_top: bool = False,
    ) -> None:
        self.proto = proto
        self.place = place
        self.model = model
        self.opsets = opsets
        self.imports = frozenset(opsets.items())
        self.parent = parent
        self.is_top = is_top
        self.depth: int = parent.depth + 1 if parent else 0
        self.key: LocalFunction | None = parent.key if parent else None
        self.scope: Scope = (
            parent.scope.child(proto)
            if parent is not None and is_graph(proto)
            else Scope(proto, opsets, model.registry, {})
        )
        self.read_names: set[str] = set()
        self.is_invalid: bool = parent.is_invalid if parent else model.redefines_operators
        # Nested graphs have the opset imports of the outermost one, so that they can share its cache.
        self._resolved: dict[LocalFunction, NodeDefinition] = {} if parent is None else parent._resolved

    def with_enclosing(self) -> Iterator[CheckedContainer]:
        """Yield this container and the enclosing ones, from the inside outwards."""
        current: CheckedContainer | None = self
        while current is not None:
            yield current
            current = current.parent

    def mark_invalid(self) -> None:
        """Record that a node breaks a rule, so that types inferred from here on are unreliable."""
        for container in self.with_enclosing():
            container.is_invalid = True

    @cached_property
    def wrong_claims(self) -> Sequence[Claim]:
        """The node outputs with a declared shape that differs from the inferred one."""
        found: list[Claim] = []
        scope = self.scope
        for name in () if self.model.redefines_operators else scope.declared_positions:
            if name in scope.producing_records:
                declared, inferred = scope.claimed_shape(name), scope.symbolic_shape(name)
                if declared is not None and inferred is not None and declared != inferred:
                    found.append(Claim(name, declared, inferred))
        return found

    @cached_property
    def may_not_run(self) -> bool:
        """Whether this graph is a branch of an If, or in one: a branch for other shapes is not wrong."""
        owners = (container.scope.owner for container in self.with_enclosing())
        return any(owner is not None and owner.op_type == "If" for owner in owners)

    @cached_property
    def produced(self) -> frozenset[str]:
        """The names that its nodes produce, regardless of their order."""
        return frozenset(name for node in self.proto.node for name in node.output[:] if name)

    @cached_property
    def inputs(self) -> frozenset[str]:
        """The names of its inputs."""
        return frozenset(each if isinstance(each, str) else each.name for each in self.proto.input)

    def resolve(self, proto: NodeProto) -> NodeDefinition:
        """Return the definition of a node, cached by domain, operator name and overload."""
        key = called_function(proto)
        if key not in self._resolved:
            self._resolved[key] = self._resolve(key)
        return self._resolved[key]

    def _resolve(self, key: LocalFunction) -> NodeDefinition:
        function = self.model.functions.get(key)
        domain, op_type, _ = key
        if function is not None:
            return NodeDefinition(function=function)
        registry, opset = self.model.registry, self.opsets.get(domain)
        # Other rules report a missing import and an unknown opset, and unknown domains have no definitions.
        if opset is None or not registry.has_domain(domain) or opset > registry.newest_opset(domain):
            return NodeDefinition()
        try:
            return NodeDefinition(registry.get_schema(op_type, opset, domain))
        except ResolveError as error:
            # The error is cached: without its traceback it does not keep the frames alive.
            return NodeDefinition(error=error.with_traceback(None))


class CheckedGraph(CheckedContainer):
    """A GraphProto."""

    proto: GraphProto

    @cached_property
    def initializers(self) -> list[str]:
        """The names of its initializers, dense and sparse."""
        sparse = (tensor.values.name for tensor in self.proto.sparse_initializer)
        return [*(tensor.name for tensor in self.proto.initializer), *sparse]

    @cached_property
    def declared_types(self) -> Mapping[str, TypeProto]:
        """The declared TypeProto of each input, output and `value_info` entry; an input's wins."""
        values = (*self.proto.value_info, *self.proto.output, *self.proto.input)
        return {value.name: value.type for value in values}


class CheckedFunction(CheckedContainer):
    """A FunctionProto."""

    proto: FunctionProto

    def __init__(self, proto: FunctionProto, model: CheckedModel) -> None:
        opsets = declared_opsets(proto.opset_import)
        super().__init__(proto, f"function {function_label(proto)}", model, opsets)
        self.key = function_id(proto)

    def input_uses(self) -> Iterator[tuple[NodeProto, int, str]]:
        """Yield each node that reads an input of the function, with the position and name of the input."""
        for node in self.proto.node:
            for position, name in enumerate(node.input):
                if name in self.inputs:
                    yield node, position, name


def attribute_names(function: FunctionProto) -> list[str]:
    """Return the names of a function's attributes, with and without a default."""
    return [*function.attribute, *(attribute.name for attribute in function.attribute_proto)]
