"""Scopes of models with local functions: facts pass from calls into functions, and back to the calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import count, islice
from typing import Self

from opshift.inference.call_facts import CallFacts, CallSite, NestedCalls
from opshift.inference.fact_kinds import FactKind, InferenceCache
from opshift.inference.facts import Evaluation, FactT, InferenceScope, OperatorStatus, Producer
from opshift.inference.scope import Scope
from opshift.inference.symbols import merge_claim
from opshift.model.errors import InvalidModel
from opshift.model.graphs import ContainerProto, NodeRecord, count_model_nodes, nested_containers, node_label
from opshift.model.indirect_reads import values_named_in_attributes
from opshift.model.messages import AttributeProto, GraphProto, ModelProto, NodeProto
from opshift.model.node import Node, Tensor
from opshift.model.operator_ids import (
    LocalFunction,
    called_function,
    canonical_domain,
    function_id,
    function_label,
    opset_imports,
)
from opshift.model.types import Shape
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry


class FunctionTable:
    """Table of the local functions of one model.

    A function is identified by its domain, name and overload (since IR version 10). It shadows an operator of
    the same name (IR specification, "Functions").

    Attributes:
        evaluation: `Evaluation` that answers queries for facts; all scopes of the model share it.
        exceeds_limit: whether a limit left facts unknown: the limit on nested calls, on inferences, or on
            nodes in function bodies.
        max_inferred_nodes: maximum number of nodes in the function bodies that are inferred for single calls.
        nested_calls: counter of the nested calls through which a fact is being propagated.
        node_counts: numbers of nodes in the functions and their subgraphs.
        undefined_operators: names of operators that neither the registry nor the model defines, by domain.

    Raises:
        InvalidModel: two functions have the same domain, name and overload.
    """

    def __init__(self, model: ModelProto, registry: Registry) -> None:
        self.protos = tuple(model.functions)
        self._model = model
        self._registry = registry
        self._index: dict[LocalFunction, int] = {}
        self._input_positions: dict[int, dict[str, int]] = {}
        self._defaults: dict[int, dict[str, AttributeProto]] = {}
        self._renamed_defaults: defaultdict[int, dict[tuple[str, str], AttributeProto]] = defaultdict(dict)
        self._scopes_by_facts: dict[Hashable, Scope] = {}
        self._scopes_by_call: dict[Hashable, Scope] = {}
        self.nested_calls = NestedCalls()
        self._inferences = 0
        self._inferred_nodes = 0
        self.exceeds_limit = False
        self.node_counts = [sum(len(each.node) for each in nested_containers([root])) for root in self.protos]
        nodes = count_model_nodes(model) if self.protos else 0
        self._max_inferences = MIN_INFERENCES + INFERENCES_PER_NODE * nodes
        self.max_inferred_nodes = MIN_INFERRED_NODES + INFERENCES_PER_NODE * nodes
        self.evaluation = Evaluation()
        self.evaluation.named_values = values_named_in_attributes(model)
        self.undefined_operators: dict[str, set[str]] = {}
        self._copies: set[tuple[str, str]] = set()
        self._copy_numbers: dict[tuple[str, str], Iterator[int]] = {}
        for index, each in enumerate(self.protos):
            if self._index.setdefault(function_id(each), index) != index:
                reason = f"function {function_label(each)} is defined twice"
                raise InvalidModel(reason, remedy="rename one of them")
        self._names = frozenset((each.domain, each.name) for each in self._index)

    def input_positions(self, index: int) -> Mapping[str, int]:
        """Return the positions of the inputs of the function at `index`, by name."""
        if index not in self._input_positions:  # shared by all calls: a function may have many inputs
            names = self.protos[index].input
            self._input_positions[index] = {name: position for position, name in enumerate(names)}
        return self._input_positions[index]

    def defaults(self, index: int) -> Mapping[str, AttributeProto]:
        """Return the attributes with a default of the function at `index`, by name."""
        if index not in self._defaults:  # shared by all calls: a function may have many defaults
            attributes = getattr(self.protos[index], "attribute_proto", ())
            self._defaults[index] = {each.name: each for each in attributes}
        return self._defaults[index]

    def renamed_defaults(self, index: int) -> dict[tuple[str, str], AttributeProto]:
        """Return the copies of defaults of the function at `index`, by the old and the new name.

        All calls share the copies: a default may be a long list.
        """
        return self._renamed_defaults[index]

    def find(self, node: NodeProto | Node) -> int | None:
        """Return the position of the local function that a node calls; `None` if the node is not a call."""
        domain = canonical_domain(node.domain)
        if (domain, node.op_type) not in self._names:
            return None
        return self._index.get(called_function(node))

    def has_function(self, identity: LocalFunction) -> bool:
        """Return whether a function with this domain, name and overload exists."""
        return identity in self._index

    def has_name(self, op_type: str, domain: str) -> bool:
        """Return whether a function with this domain and name exists, with any overload."""
        return (canonical_domain(domain), op_type) in self._names

    def find_call(self, proto: NodeProto, scope: Scope) -> tuple[int, CallSite] | None:
        """Return the position of the called function, and the call; `None` for a node of an operator.

        Raises:
            InvalidModel: neither a function with the node's overload nor an operator exists, or the node has
                more inputs or outputs than the function.
        """
        index = self.find(proto)
        site = f"node {node_label(proto.name, proto.op_type, proto.output)}"
        if index is None:
            opset = scope.opset_of(proto.domain)
            if self._registry.known_or_removed_at(proto.op_type, opset, proto.domain) is None:
                self._raise_unknown(proto, site)
            return None
        function = self.protos[index]
        for kind in ("input", "output"):
            provided, used = getattr(proto, kind), getattr(function, kind)
            if any(provided[len(used) :]):
                expected = f"function {function_label(function)} has {len(used)}"
                reason = f"the call has {len(provided)} {kind}s; {expected}"
                raise InvalidModel(reason, place=site, remedy=f"remove the extra {kind}s from the call")
        return index, CallSite(Node.from_proto(proto), proto, scope)

    def _raise_unknown(self, proto: NodeProto, site: str) -> None:
        named = (canonical_domain(proto.domain), proto.op_type)
        overloads = ", ".join(repr(each.overload) for each in self._index if each[:2] == named)
        reason = f"no function {'.'.join(named)} has overload {proto.overload!r}"
        raise InvalidModel(reason, place=site, remedy=f"use one of the existing overloads: {overloads}")

    def copy_name(self, index: int) -> str:
        """Choose and reserve a name that no operator or function of the domain has, for a function copy."""
        function = self.protos[index]
        domain = canonical_domain(function.domain)
        used = self.undefined_operators.get(domain, ())
        # Continue after the number of the last copy: trying all numbers again takes quadratic time.
        numbers = self._copy_numbers.setdefault((domain, function.name), count(2))
        names = (f"{function.name}_{number}" for number in numbers)
        name = next(
            each
            for each in names
            if each not in used
            and (domain, each) not in self._names
            and (domain, each) not in self._copies
            and not self._registry.operator(each, domain)
        )
        self._copies.add((domain, name))
        return name

    def start_round(self) -> None:
        """Prepare to plan again: clear the names of function copies and the scopes of calls.

        Scopes that are cached by the facts about their inputs stay.
        """
        self._copies.clear()
        self._copy_numbers.clear()
        self._scopes_by_call.clear()
        self._inferences = 0

    def scope(
        self,
        container: ContainerProto,
        opsets: Mapping[str, int],
        registry: Registry,
        operator_statuses: dict[str, OperatorStatus],
        parent: Scope | None = None,
    ) -> CallScope:
        """Create a scope for a graph or function of this model; the arguments are those of `Scope`."""
        scope = CallScope(container, opsets, registry, operator_statuses, parent)
        scope.functions, scope.evaluation = self, self.evaluation
        scope.variables = self.evaluation.named_values.sources
        return scope

    def opsets(self, index: int) -> Mapping[str, int]:
        """Return the opset imports of a function; the model's if the function has none."""
        imports = self.protos[index].opset_import
        return opset_imports(imports) if imports else self._model_opsets

    @cached_property
    def _model_opsets(self) -> Mapping[str, int]:
        return opset_imports(self._model.opset_import, self._model.ir_version)

    def call_facts_of(self, scope: InferenceScope) -> CallFacts | None:
        """Return the call facts of the function that contains a scope; `None` outside of functions."""
        while scope.parent is not None:
            scope = scope.parent
        return scope.call_facts if isinstance(scope, CallScope) else None

    def infer_outputs(
        self, proto: NodeProto, scope: InferenceScope, fact: Callable[[InferenceScope, str], FactT | None]
    ) -> list[FactT | None] | None:
        """Return one fact per output of a call, inferred for this call; `None` for other nodes.

        Beyond the limits on nested calls and on inferences, the list is empty.
        """
        index = self.find(proto)
        if index is None:
            return None
        with self.nested_calls as is_shallow:
            body = self._body_of_call(index, proto, scope) if is_shallow else None
            if body is None:
                self.exceeds_limit = True
                return []
            # Query only the outputs that the call uses: the function may have many more.
            named = zip(proto.output, body.outputs, strict=False)
            return [fact(body, inner) if outer else None for outer, inner in named]

    def infer_output(
        self,
        proto: NodeProto,
        position: int,
        scope: InferenceScope,
        fact: Callable[[InferenceScope, str], FactT | None],
    ) -> FactT | None:
        """Return the fact about an output, inferred for this call, or `None`; see `infer_outputs`."""
        index = self.find(proto)
        if index is None:
            return None
        with self.nested_calls as is_shallow:
            body = self._body_of_call(index, proto, scope) if is_shallow else None
            if body is None:
                self.exceeds_limit = True
                return None
            name = next(islice(body.outputs, position, None), "")
            return fact(body, name) if name else None

    def _body_of_call(self, index: int, proto: NodeProto, scope: InferenceScope) -> Scope | None:
        """Return the scope of a function for one call; `None` beyond the limits on inferences and nodes."""
        self._inferences += 1
        if self._inferences > self._max_inferences:
            return None
        return self._find_scope(index, proto, scope, is_limited=True)

    def scope_of_call(self, index: int, proto: NodeProto, scope: InferenceScope) -> Scope:
        """Return the scope of a function for one call; calls with equal facts share one scope."""
        found = self._find_scope(index, proto, scope, is_limited=False)
        assert found is not None
        return found

    def _find_scope(
        self, index: int, proto: NodeProto, scope: InferenceScope, *, is_limited: bool
    ) -> Scope | None:
        """Return the scope of a function for one call; `None` for a new scope beyond `max_inferred_nodes`."""
        # Value names are unique in a graph, so the name of an output identifies the call.
        name = next(filter(None, proto.output), "")
        if name and (scope, name) in self._scopes_by_call:
            return self._scopes_by_call[scope, name]
        call = CallSite(Node.from_proto(proto), proto, scope)
        callers = CallFacts(self, index, [call])
        # The key has symbolic shapes: calls with equal known sizes may pass different symbols.
        shapes = tuple(map(scope.symbolic_shape, call.node.inputs))
        facts = callers.all_facts(call)
        key = (index, facts, callers.fact_key(call, facts), shapes)
        if key not in self._scopes_by_facts:
            if is_limited and self._inferred_nodes > self.max_inferred_nodes:
                return None
            self._inferred_nodes += self.node_counts[index] if is_limited else 0
            function = self.protos[index]
            new = self.scope(function, self.opsets(index), self._registry, {})
            new.call_facts = callers
            # No symbols for dimension variables: these may differ between calls that share the scope.
            new.variable_prefix = None
            for node in function.node:
                new.defined_names.update(node.output)
            self._scopes_by_facts[key] = new
        found = self._scopes_by_call[scope, name] = self._scopes_by_facts[key]
        return found


class CallScope(Scope):
    """Scope of a function, or of a graph with nodes that may call functions."""

    functions: FunctionTable
    call_facts: CallFacts | None = None
    """Calls for which a function is converted, and the facts on which they agree; `None` for a graph."""

    def child(self, graph: GraphProto) -> Self:
        """Return the scope of a subgraph of a node."""
        found = super().child(graph)
        found.functions = self.functions
        return found

    def is_body_in(self, scope: InferenceScope) -> bool:
        """Extend `InferenceScope.is_body_in` to called functions."""
        calls = self.call_facts.calls if self.call_facts else ()
        return super().is_body_in(scope) or any(each.scope is scope for each in calls)

    def declared_type(self, name: str) -> str | None:
        """Return the declared element type of a value, or the type that calls pass to a function input."""
        found = super().declared_type(name)
        return self.call_facts.element_type(name) if found is None and self.call_facts else found

    def declared_shape(self, name: str) -> Shape | None:
        """Return the declared shape; for a function input, the sizes that calls pass take precedence."""
        if self.call_facts is None or name in self.added_constants:
            return super().declared_shape(name)
        return merge_claim(self.call_facts.shape(name), self.claimed_shape(name))

    def declared_rank(self, name: str) -> int | None:
        """Return the rank of a function input on which all calls agree, otherwise the declared rank."""
        found = self.call_facts.rank(name) if self.call_facts else None
        return super().declared_rank(name) if found is None else found

    def operator(self, op_type: str, domain: str) -> OperatorVersion | None:
        """Return the imported operator version; `None` if unknown, or if a function has its name."""
        return None if self.functions.has_name(op_type, domain) else super().operator(op_type, domain)

    def operator_for_inference(self, op_type: str, domain: str) -> OperatorVersion | None:
        """Return the operator version whose rules infer facts; `None` if a function has its name."""
        is_shadowed = self.functions.has_name(op_type, domain)
        return None if is_shadowed else super().operator_for_inference(op_type, domain)

    def inference_cache(self, kind: FactKind[FactT]) -> InferenceCache:
        """Return the shared inference cache, or a new cache if the model has functions."""
        # The shared cache is keyed by op_type, which may be the name of a function in this model.
        return InferenceCache() if self.functions.protos else super().inference_cache(kind)

    def with_call_facts(self, node: Node) -> Node:
        """Return a node of a function as `CallFacts.resolve_node` does; nodes of graphs are unchanged."""
        callers = self.functions.call_facts_of(self)
        return node if callers is None else callers.resolve_node(node, self)

    @property
    def has_plain_nodes(self) -> bool:
        """Implement `InferenceScope.has_plain_nodes`: False in a function and in its subgraphs."""
        return self.functions.call_facts_of(self) is None

    def arguments(self, name: str) -> Iterable[tuple[InferenceScope, str]]:
        """Implement `InferenceScope.arguments`."""
        return self.call_facts.arguments(name) if self.call_facts else ()

    def is_call(self, record: NodeRecord) -> bool:
        """Return whether a node calls a local function."""
        # Most models have no functions: then, skip the NodeProto.
        return bool(self.functions.protos) and self.functions.find(self.proto_of(record)) is not None

    def infer_call(
        self, record: NodeRecord, fact: Callable[[InferenceScope, str], FactT | None]
    ) -> list[FactT | None] | None:
        """Implement `InferenceScope.infer_call`, see `FunctionTable.infer_outputs`."""
        return self.functions.infer_outputs(self.proto_of(record), self, fact)

    def _find_producer(self, name: str) -> Producer | None:
        record = self.producing_records.get(name)
        if self.call_facts is not None and record is None and self.is_overridable(name):
            constant = self.call_facts.constant(name)
        elif record is not None and self.is_call(record):
            proto, position = self.proto_of(record), self.output_position(record, name)
            constant = self.functions.infer_output(proto, position, self, _constant_of_call)
        else:
            return super()._find_producer(name)
        if constant is None:
            return None
        # Represent a constant that all calls pass, or that this call returns, as the output of a Constant
        # node.
        node = Node("Constant", (), (name,), {"value": constant})
        return Producer(node, 0, self.registry.known_at("Constant", self.opset_of(""), ""))


def _constant_of_call(scope: InferenceScope, name: str) -> Tensor | None:
    return scope.constant(name)


MIN_INFERENCES, INFERENCES_PER_NODE = 2_000, 4
"""Maximum number of inferences of function bodies: the first number, plus the second for each node.

The limit is needed because nested calls can multiply the inferences at each level.
"""

MIN_INFERRED_NODES = 100_000
"""Maximum number of nodes in these function bodies, plus `INFERENCES_PER_NODE` for each node of the model.

The limit is needed because each of many calls may pass other facts to a function with many nodes.
"""
