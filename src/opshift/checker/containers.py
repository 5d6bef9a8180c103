"""Views of graphs and functions that checker rules read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import NamedTuple

from opshift.checker.checked_model import CheckedModel, PassedFacts, attribute_names
from opshift.inference.call_facts import CallFacts
from opshift.inference.function_scope import CallScope
from opshift.inference.scope import Scope
from opshift.model.declarations import named_dims
from opshift.model.graphs import ContainerProto, is_graph
from opshift.model.messages import FunctionProto, GraphProto, NodeProto, TypeProto
from opshift.model.node_key import NodeKey
from opshift.model.operator_ids import (
    LocalFunction,
    canonical_domain,
    declared_opsets,
    function_id,
    function_label,
)
from opshift.model.types import Shape
from opshift.registry.errors import ResolveError
from opshift.registry.models import OperatorVersion


class NodeDefinition(NamedTuple):
    """Operator version or called function of a node, or the resolution error; all `None` if unknown."""

    operator: OperatorVersion | None = None
    function: FunctionProto | None = None
    error: ResolveError | None = None


class Claim(NamedTuple):
    """Output of a node, with the shape that the model declares and the shape that is inferred."""

    name: str
    declared: Shape
    inferred: Shape


class CheckedContainer:
    """A graph or function.

    Attributes:
        location: the name of the container in messages.
        imports: the opset imports in hashable form, for cache keys.
        is_top: whether this is the main graph or a training graph, not an attribute of a node.
        scope: the values; `scope.defined_names` has the outputs of the nodes that are checked so far.
        may_not_run: whether the container is in a branch of an If node, which may be for inputs of other
            shapes, or in a function that is not in `CheckedModel.certain_calls`.
        key: the key of the function, also for graphs in the function; `None` outside of functions.
        read_names: the names that nodes of the container and of nested graphs read.
        is_invalid: whether types and shapes are unreliable, because an earlier node of the container, or of a
            nested or enclosing graph, breaks a rule, or because `model.function_table` is `None`.
    """

    def __init__(
        self,
        proto: ContainerProto,
        location: str,
        model: CheckedModel,
        opsets: Mapping[str, int],
        parent: CheckedContainer | None = None,
        *,
        owner: NodeProto | None = None,
        is_top: bool = False,
    ) -> None:
        self.proto = proto
        self.location = location
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
            else model.new_scope(proto, opsets)
        )
        self.scope.owner = owner
        is_branch = owner is not None and owner.op_type == "If"
        self.may_not_run: bool = is_branch or (parent is not None and parent.may_not_run)
        self.read_names: set[str] = set()
        self.is_invalid: bool = parent.is_invalid if parent else model.function_table is None
        # Nested graphs share the cache of the outermost container, because they have its opset imports.
        self._resolved: dict[tuple[str, str, str], NodeDefinition] = (
            {} if parent is None else parent._resolved
        )

    def with_enclosing(self) -> Iterator[CheckedContainer]:
        """Yield this container and the enclosing ones, from the inside outwards."""
        current: CheckedContainer | None = self
        while current is not None:
            yield current
            current = current.parent

    def mark_invalid(self) -> None:
        """Record that a node breaks a rule: types inferred later, here or in outer graphs, are unreliable."""
        for container in self.with_enclosing():
            container.is_invalid = True

    @cached_property
    def wrong_claims(self) -> Sequence[Claim]:
        """The node outputs whose declared and inferred shapes differ; empty without a `function_table`."""
        found: list[Claim] = []
        scope = self.scope
        for name in () if self.model.function_table is None else scope.declared_positions:
            if name in scope.producing_records:
                declared, inferred = scope.claimed_shape(name), scope.symbolic_shape(name)
                if declared is not None and inferred is not None and declared != inferred:
                    found.append(Claim(name, declared, inferred))
        return found

    @cached_property
    def produced(self) -> frozenset[str]:
        """The names of the outputs of all nodes, also of nodes that are not checked yet."""
        return frozenset(name for record in self.scope.node_records for name in record[4] if name)

    @cached_property
    def inputs(self) -> frozenset[str]:
        """The names of the graph or function inputs."""
        return frozenset(each if isinstance(each, str) else each.name for each in self.proto.input)

    @cached_property
    def passed_nodes(self) -> dict[NodeKey, PassedFacts]:
        """The entries of `CheckedModel.passed_nodes` for nodes of this container."""
        return self.model.passed_nodes[self.imports, self.key is None]

    def resolve(self, domain: str, op_type: str, overload: str) -> NodeDefinition:
        """Return the definition of a node, cached by domain, operator name and overload."""
        key = domain, op_type, overload
        if key not in self._resolved:
            self._resolved[key] = self._resolve_uncached(
                LocalFunction(canonical_domain(domain), op_type, overload)
            )
        return self._resolved[key]

    def _resolve_uncached(self, key: LocalFunction) -> NodeDefinition:
        function = self.model.functions.get(key)
        domain, op_type, _ = key
        if function is not None:
            return NodeDefinition(function=function)
        registry, opset = self.model.registry, self.opsets.get(domain)
        # No error: rules report missing imports and unknown opsets, and open domains may lack definitions.
        if opset is None or registry.is_undefined(op_type, opset, domain):
            return NodeDefinition()
        if opset > registry.newest_opset(domain):
            return NodeDefinition()
        try:
            return NodeDefinition(registry.get_schema(op_type, opset, domain))
        except ResolveError as error:
            # A cached error with a traceback would keep the stack frames alive.
            return NodeDefinition(error=error.with_traceback(None))


class CheckedGraph(CheckedContainer):
    """A GraphProto."""

    proto: GraphProto

    @cached_property
    def initializers(self) -> list[str]:
        """The names of the dense and sparse initializers."""
        sparse = (tensor.values.name for tensor in self.proto.sparse_initializer)
        return [*(tensor.name for tensor in self.proto.initializer), *sparse]

    @cached_property
    def declared_types(self) -> Mapping[str, TypeProto]:
        """The declared TypeProto of each value; inputs override outputs, which override `value_info`."""
        values = (*self.proto.value_info, *self.proto.output, *self.proto.input)
        return {value.name: value.type for value in values}

    @cached_property
    def input_variables(self) -> frozenset[str]:
        """The dimension variables (`dim_param`) of the inputs, also inside of sequences and optionals."""
        return frozenset(dim.dim_param for value in self.proto.input for dim in named_dims(value.type))


class CheckedFunction(CheckedContainer):
    """A FunctionProto."""

    proto: FunctionProto

    def __init__(self, proto: FunctionProto, position: int, model: CheckedModel) -> None:
        opsets = declared_opsets(proto.opset_import)
        super().__init__(proto, f"function {function_label(proto)}", model, opsets)
        self.key = function_id(proto)
        self.may_not_run = self.key not in model.certain_calls
        if isinstance(self.scope, CallScope):
            self.scope.call_facts = CallFacts(self.scope.functions, position, model.call_sites[self.key])

    @cached_property
    def attribute_names(self) -> Set[str]:
        """The names of the attributes, with and without a default."""
        return frozenset(attribute_names(self.proto))
