"""Values of one graph that are equal in every run: equal lists of sizes, and results of equal nodes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeAlias

from opshift.inference.constants import INTEGER_RANGES
from opshift.inference.evaluator.rule_table import EVALUATED, SMALL_SIZE
from opshift.inference.scope import Scope
from opshift.inference.symbols import is_symbol
from opshift.model.graphs import NodeRecord, graphs_of
from opshift.model.messages import NodeProto
from opshift.model.node import Tensor
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.model.tensors import element_count, pack_tensor

Key: TypeAlias = Hashable

COMPARED_TYPES = frozenset((*INTEGER_RANGES, "bool"))
"""Element types of compared elements: floats have no symbols, and 0.0 equals -0.0."""


class EqualValues:
    """Values of one graph or function by what determines them; the nodes are visited in order.

    `aliases` are the values that others replace; the caller adds to it.
    """

    def __init__(self, scope: Scope, aliases: Mapping[str, str]) -> None:
        self._scope = scope
        self._aliases = aliases
        self._outputs: dict[Key, tuple[str, ...]] = {}
        self._identities: dict[str, Key] = {}

    def find(self, record: NodeRecord) -> tuple[str, ...] | None:
        """Return the outputs of an earlier node with equal outputs; otherwise remember this node."""
        outputs = record[4]
        for key in (self._elements_key(record), self._node_key(record)):
            if key is not None:
                found = self._outputs.setdefault(key, outputs)
                if found is not outputs:
                    return found
        return None

    def _elements_key(self, record: NodeRecord) -> Key:
        """Return the elements of an evaluated output, with symbols; `None` if some are unknown."""
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
        """Return what determines the outputs of a deterministic node; `None` for other nodes."""
        _, domain, op_type, inputs, outputs = record
        operator = self._scope.operator(op_type, domain)
        if operator is None or operator.determinism != "deterministic" or self._scope.is_call(record):
            return None
        proto = self._scope.proto_of(record)
        if op_type == "Constant" or any(graphs_of(proto)):
            return None
        names = tuple(map(self._identity, inputs))
        return canonical_domain(domain), op_type, names, tuple(map(bool, outputs)), _attributes_key(proto)

    def _identity(self, name: str) -> Key:
        while name in self._aliases:
            name = self._aliases[name]
        if name not in self._identities:
            value = self._small_constant(name)
            self._identities[name] = name if value is None else (*value[:2], pack_tensor(value))
        return self._identities[name]

    def _small_constant(self, name: str) -> Tensor | None:
        """Return the value of a small constant; large ones are not decoded."""
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
    return tuple(sorted((each.name, each.SerializeToString()) for each in proto.attribute))
