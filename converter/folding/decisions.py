"""Decide which nodes of a graph or function are folded, before anything changes."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from hashlib import blake2b
from typing import NamedTuple, TypeAlias

from opshift.converter.folding.no_ops import reshaped_source, unchanged_input
from opshift.inference.constants import INTEGER_RANGES
from opshift.inference.evaluator.rule_table import EVALUATED, SMALL_SIZE
from opshift.inference.scope import Scope
from opshift.inference.symbols import is_symbol
from opshift.model.element_types import BY_NAME
from opshift.model.errors import CannotConvert
from opshift.model.graphs import ContainerProto, NodeRecord, graphs_of
from opshift.model.messages import AttributeProto, NodeProto
from opshift.model.node import Tensor
from opshift.model.offloaded_tensors import MIN_EXTRACTED_TENSOR, serialize
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.model.tensors import can_pack_tensor, element_count, has_inexact_nan, pack_tensor
from opshift.rewriting.constant_nodes import needs_cast
from opshift.rewriting.rewrite_node import INVALID_NODE_ERRORS

MAX_BYTES = 4 << 20
"""Maximum total size of the folded values that are strings or have more than 64 elements."""


Key: TypeAlias = Hashable

COMPARED_TYPES = frozenset((*INTEGER_RANGES, "bool"))
"""Element types of values that `EqualValues` compares by elements; for floats, 0.0 would equal -0.0."""


class Budget:
    """Number of bytes that are left for large folded values."""

    def __init__(self, size: int = MAX_BYTES) -> None:
        self._left = size

    def spend(self, tensor: Tensor) -> bool:
        """Return whether a value is small, or fits in the budget; in the second case, subtract its size."""
        is_string = tensor.element_type == "string"
        if len(tensor.values) <= SMALL_SIZE and not is_string:
            return True
        size = sum(map(len, tensor.values)) if is_string else _size_of(tensor)
        if size > self._left:
            return False
        self._left -= size
        return True


def _size_of(tensor: Tensor) -> int:
    itemsize = {"b": 1, "B": 1, "?": 1, "h": 2, "H": 2, "e": 2, "i": 4, "I": 4, "f": 4}
    return len(tensor.values) * itemsize.get(BY_NAME[tensor.element_type].code or "q", 8)


class Decisions(NamedTuple):
    """Decisions about the nodes of one graph or function.

    Attributes:
        container: the graph or function.
        constants: values that become constants, by name; all outputs of a node, or none, become constants.
        aliases: names of values, each with the equal value that replaces it.
        reshaped: the value that replaces the first input of a Reshape, by the position of the Reshape.
        nested: decisions about the subgraphs of the nodes.
    """

    container: ContainerProto
    constants: dict[str, Tensor]
    aliases: dict[str, str]
    reshaped: dict[int, str]
    nested: list[Decisions]


class Rules(NamedTuple):
    """Rules for all nodes of a graph or function and its subgraphs.

    Attributes:
        fixed: names whose producers remain, such as graph outputs.
        repeated: names with several definitions, in different subgraphs.
        budget: budget of large values.
        takes_initializers: whether constants of the main graph become initializers, which can have any type.
        is_ordered: whether every value is produced before it is read.
        has_training: whether the model has training graphs, where Dropout may drop elements.
        has_devices: whether nodes have device configurations, which contain names of tensors.
    """

    fixed: Set[str]
    repeated: Set[str]
    budget: Budget
    takes_initializers: bool
    is_ordered: bool
    has_training: bool
    has_devices: bool

    def can_alias(self, names: Sequence[str], sources: Sequence[str]) -> bool:
        """Return whether the values `sources` can replace the values `names`."""
        is_free = self.fixed.isdisjoint(filter(None, names)) and self.repeated.isdisjoint((*names, *sources))
        return is_free and not self.has_devices


def decide(scope: Scope, rules: Rules) -> Decisions:
    """Return the decisions about a graph or function and its subgraphs."""
    found = Decisions(scope.container, {}, {}, {}, [])
    equal_values = EqualValues(scope, found.aliases)
    for record in scope.node_records:
        if not any(record[4]):
            continue
        values = _constant_outputs(record, scope, rules)
        if values is not None:
            found.constants.update(zip(record[4], values, strict=True))
        else:
            aliases = _aliases_of(record, scope, rules, equal_values)
            found.aliases.update(aliases)
            source = None if aliases else _reshaped_source(record, scope, rules)
            if source is not None:
                found.reshaped[record[0]] = source
    found.nested.extend(decide(child, rules) for child in _subgraph_scopes(scope))
    return found


def define_node_outputs(scope: Scope) -> None:
    """Add node outputs to `defined_names` of a scope and its subgraph scopes; set `owner` of the latter."""
    scope.defined_names.update(name for record in scope.node_records for name in record[4])
    for record in scope.node_records:
        proto = scope.proto_of(record)
        for graph in graphs_of(proto):
            child = scope.child(graph)
            child.owner = proto
            define_node_outputs(child)


def _subgraph_scopes(scope: Scope) -> Iterator[Scope]:
    for node in scope.container.node:
        yield from map(scope.child, graphs_of(node))


def _constant_outputs(record: NodeRecord, scope: Scope, rules: Rules) -> list[Tensor] | None:
    """Return the constant values of all outputs of a node or call; `None` if one cannot be folded."""
    _, domain, op_type, _, outputs = record
    is_evaluated = op_type in EVALUATED and canonical_domain(domain) == DEFAULT_DOMAIN
    if not (is_evaluated or scope.is_call(record)) or not all(outputs):
        return None
    values = []
    for name in outputs:
        value = _foldable_constant(name, scope)
        if value is None or not can_pack_tensor(value) or has_inexact_nan(value):
            return None
        if not _has_place(name, value, scope, rules):
            return None
        values.append(value)
    return values if all(map(rules.budget.spend, values)) else None


def _foldable_constant(name: str, scope: Scope) -> Tensor | None:
    try:
        return scope.constant(name)
    except (CannotConvert, *INVALID_NODE_ERRORS):  # the node is invalid, which the plan reports
        return None


def _has_place(name: str, value: Tensor, scope: Scope, rules: Rules) -> bool:
    """Return whether an initializer or a Constant node can hold a value."""
    is_initializer = rules.takes_initializers and scope.parent is None and not scope.is_function
    return (is_initializer and name not in rules.fixed) or not needs_cast(value, scope.opset_of(""))


def _aliases_of(record: NodeRecord, scope: Scope, rules: Rules, equal_values: EqualValues) -> dict[str, str]:
    """Return the outputs of a node that equal values can replace, each with its replacement."""
    outputs = record[4]
    try:
        source = _unchanged_input(record, scope, rules)
        if source is not None and rules.can_alias(outputs, [source]):
            return {outputs[0]: source}
        found = equal_values.find(record) if rules.is_ordered else None
    except (CannotConvert, *INVALID_NODE_ERRORS):  # the node is invalid, which the plan reports
        return {}
    if found is None or not rules.can_alias(outputs, found):
        return {}
    # A Gradient differentiates with respect to one of the values: folding would remove the dependence on it.
    if not scope.variables.isdisjoint(found):
        return {}
    return {name: source for name, source in zip(outputs, found, strict=True) if name}


def _reshaped_source(record: NodeRecord, scope: Scope, rules: Rules) -> str | None:
    """Return the value that a Reshape can read without the reshaping nodes before it, or `None`."""
    _, domain, op_type, _, _ = record
    if op_type != "Reshape" or canonical_domain(domain) != DEFAULT_DOMAIN or scope.is_call(record):
        return None
    try:
        source = reshaped_source(scope.node_of(record), scope)
    except (CannotConvert, *INVALID_NODE_ERRORS):  # the node is invalid, which the plan reports
        return None
    return source if source is not None and rules.can_alias((), (source,)) else None


def _unchanged_input(record: NodeRecord, scope: Scope, rules: Rules) -> str | None:
    """Return the input that a node returns unchanged, or `None`."""
    _, domain, op_type, _, _ = record
    is_standard = canonical_domain(domain) == DEFAULT_DOMAIN and not scope.is_call(record)
    if not is_standard or (rules.has_training and op_type == "Dropout"):
        return None
    return unchanged_input(scope.node_of(record), scope)


class EqualValues:
    """Search for equal values in one graph or function, whose nodes are visited in order.

    `aliases` maps values to their replacements; the caller adds entries.
    """

    def __init__(self, scope: Scope, aliases: Mapping[str, str]) -> None:
        self._scope = scope
        self._aliases_of = aliases
        self._outputs: dict[Key, tuple[str, ...]] = {}
        self._identities: dict[str, Key] = {}

    def find(self, record: NodeRecord) -> tuple[str, ...] | None:
        """Return the equal outputs of an earlier node; otherwise store this node and return `None`."""
        outputs = record[4]
        for key in (self._elements_key(record), self._node_key(record)):
            if key is not None:
                found = self._outputs.setdefault(key, outputs)
                if found is not outputs:
                    return found
        return None

    def _elements_key(self, record: NodeRecord) -> Key:
        """Return the elements of a small integer or boolean output as a key, or `None`."""
        _, domain, op_type, _, outputs = record
        if len(outputs) != 1 or op_type not in EVALUATED or canonical_domain(domain) != DEFAULT_DOMAIN:
            return None
        elements = self._scope.elements(outputs[0])
        if elements is None or len(elements.values) > SMALL_SIZE or None in elements.values:
            return None
        if elements.element_type not in COMPARED_TYPES:
            return None
        return elements, tuple(map(is_symbol, elements.values))

    def _node_key(self, record: NodeRecord) -> Key:
        """Return operator, inputs and attributes of a deterministic node as a key, or `None`.

        Constants, calls, nodes with subgraphs and unknown operators have no key.
        """
        _, domain, op_type, inputs, outputs = record
        operator = self._scope.operator(op_type, domain)
        if operator is None or operator.determinism != "deterministic" or self._scope.is_call(record):
            return None
        proto = self._scope.proto_of(record)
        if op_type == "Constant" or any(graphs_of(proto)):
            return None
        names = tuple(map(self._identity_key, inputs))
        return canonical_domain(domain), op_type, names, tuple(map(bool, outputs)), _attributes_key(proto)

    def _identity_key(self, name: str) -> Key:
        while name in self._aliases_of:
            name = self._aliases_of[name]
        if name not in self._identities:
            value = self._small_constant(name)
            is_exact = value is not None and not has_inexact_nan(value)
            self._identities[name] = (*value[:2], pack_tensor(value)) if value and is_exact else name
        return self._identities[name]

    def _small_constant(self, name: str) -> Tensor | None:
        """Return the value of a small constant, else `None`; large constants are not decoded."""
        scope = self._scope
        stored, record = scope.initializer(name), scope.producing_records.get(name)
        if record is not None:
            attributes = scope.proto_of(record).attribute
            stored = next((each.t for each in attributes if each.name == "value"), None)
            if record[2] != "Constant" and record[2] not in EVALUATED:
                return None
        elif stored is None:
            return None
        if stored is not None and (element_count(stored) or 0) > SMALL_SIZE:
            return None
        value = scope.constant(name)
        return None if value is None or len(value.values) > SMALL_SIZE else value


def _attributes_key(proto: NodeProto) -> tuple[tuple[str, bytes], ...]:
    # sorted, because the order of attributes has no meaning
    return tuple(sorted((each.name, _value_key(each)) for each in proto.attribute))


def _value_key(attribute: AttributeProto) -> bytes:
    """Return an attribute with its payload as bytes, or their digest: keys must not keep large tensors."""
    data = serialize(attribute)
    return data if len(data) < MIN_EXTRACTED_TENSOR else blake2b(data).digest()
