"""Match patterns with the nodes of a graph, backwards from the node that computes the first output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from opshift.converter.recognition.constant_comparison import Comparison, elements_of, is_identical
from opshift.converter.recognition.expansion import ExactNode, ValueName
from opshift.converter.recognition.graph_view import GraphView
from opshift.converter.recognition.patterns import (
    AnyValue,
    Constant,
    InputRef,
    NodeRef,
    PatternNode,
)
from opshift.model.graphs import NodeRecord
from opshift.model.node import Tensor
from opshift.model.operator_ids import canonical_domain
from opshift.registry.models import OperatorVersion

COMMUTATIVE: Final = frozenset(
    ("Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Max", "Min", "Mul", "Or", "Sum", "Xor")
)
"""Operators with two inputs that are matched in either order."""

AXES: Final = ("axes", "axis")
"""Slots (inputs or attributes) that hold axes; an axis matches its negative form."""

MAX_STEPS: Final = 2_000
"""Maximum number of comparisons of values in one match; limits the orders of commutative operands to try."""

MAX_ELEMENTS: Final = 65_536
"""Maximum number of elements of a constant that is compared with a pattern."""


class Match(NamedTuple):
    """Nodes of a graph that a pattern matches.

    Attributes:
        nodes: record of each matched node, by position in the pattern.
        inputs: names of the inputs of the operator, by position.
        attributes: attributes that constants determine.
    """

    nodes: Mapping[int, NodeRecord]
    inputs: Mapping[int, str]
    attributes: Mapping[str, Any]


class _State(NamedTuple):
    """Partial match; copied where operands can be swapped."""

    nodes: dict[int, NodeRecord]
    inputs: dict[int, str]
    attributes: dict[str, Any]

    def copy(self) -> _State:
        return _State(dict(self.nodes), dict(self.inputs), dict(self.attributes))


Goal = tuple[Any, str]
"""Content of a slot in the pattern, and the name of the value in the graph that it has to match."""


class Matcher:
    """Match the nodes of a pattern or of an expansion with nodes of a graph.

    Attributes:
        is_relaxed: whether a compared constant has other dimensions than the pattern expects.
    """

    def __init__(
        self,
        view: GraphView,
        nodes: Sequence[PatternNode | ExactNode],
        outputs: Mapping[int, NodeRef],
        operator: OperatorVersion,
        *,
        is_complete: bool,
        is_close: bool = False,
    ) -> None:
        """With `is_complete`, `nodes` have all attributes, and numbers must be equal unless `is_close`."""
        self._view = view
        self._nodes = nodes
        self._outputs = outputs
        self._is_complete = is_complete
        self._reads_rounded = is_complete and is_close
        self._comparison = Comparison(operator, is_complete, is_close or not is_complete)
        self._steps = 0
        self.is_relaxed = False

    def match(self, anchor: str, inputs: Mapping[int, str] | None = None) -> Match | None:
        """Return the match whose first output is `anchor`, or `None`; `inputs` has names of known inputs."""
        state = self._match_goals([(self._outputs[0], anchor)], _State({}, dict(inputs or {}), {}))
        return Match(*state) if state else None

    def extended(self, match: Match, ref: NodeRef, record: NodeRecord) -> Match | None:
        """Return the match extended by `record` for the output `ref`; `None` if it does not match."""
        if ref.output >= len(record[4]):
            return None
        state = _State(dict(match.nodes), dict(match.inputs), dict(match.attributes))
        found = self._match_goals([(ref, record[4][ref.output])], state)
        return Match(*found) if found else None

    def _match_goals(self, goals: list[Goal], state: _State) -> _State | None:
        """Match all goals, the last first; return `None` if one fails, or after too many steps."""
        while goals:
            self._steps += 1
            ref, name = goals.pop()
            if type(ref) is NodeRef:
                orders = self._next_goals(ref, name, state)
                if len(orders) > 1:
                    results = (self._match_goals([*goals, *each], state.copy()) for each in orders)
                    return next((each for each in results if each is not None), None)
                if not orders:
                    return None
                goals += orders[0]
            elif not self._matches_value(ref, name, state):
                return None
        return state if self._steps <= MAX_STEPS else None

    def _matches_value(self, ref: Any, name: str, state: _State) -> bool:
        if isinstance(ref, AnyValue):
            return True
        if isinstance(ref, InputRef):
            return state.inputs.setdefault(ref.position, name) == name
        tensor = self._view.number(name) if self._reads_rounded else self._view.constant(name)
        if tensor is None or len(tensor.values) > MAX_ELEMENTS:
            return False
        return self._matches_constant(ref, tensor, state.attributes)

    def _matches_constant(self, ref: Any, actual: Any, attributes: dict[str, Any] | None) -> bool:
        is_tensor = isinstance(actual, Tensor)
        if isinstance(ref, Constant):
            self.is_relaxed |= is_tensor and len(actual.values) == 1 and actual.dims != ()
            return self._comparison.matches(
                ref, actual, attributes, actual.element_type if is_tensor else None
            )
        self.is_relaxed |= is_tensor and isinstance(ref, Tensor) and actual.dims != ref.dims
        return is_identical(ref, actual)

    def _next_goals(self, ref: NodeRef, name: str, state: _State) -> list[list[Goal]]:
        """Match the node that computes a value; return its operands in each order; `[]` if it differs."""
        record = self._view.producer(name)
        if record is None or record[4].index(name) != ref.output or self._steps > MAX_STEPS:
            return []
        if ref.node in state.nodes:
            return [[]] if state.nodes[ref.node] is record else []
        node = self._nodes[ref.node]
        if record[2] != node.op_type or canonical_domain(record[1]) != node.domain:
            return []
        actual = self._view.slots(record)
        if actual is None or not self._has_no_other_slots(node, actual, record):
            return []
        operands: list[Goal] = []
        for slot, each in node.slots.items():
            value = actual.get(slot)
            is_axis = self._is_complete and slot in AXES and type(each) is Constant
            if type(value) is ValueName and not is_axis:
                operands.append((each, value.name))
            elif not self._matches_setting(each, value, slot, record, state):
                return []
        state.nodes[ref.node] = record
        return self._operand_orders(node, operands)

    def _operand_orders(self, node: PatternNode | ExactNode, operands: list[Goal]) -> list[list[Goal]]:
        if node.op_type in COMMUTATIVE and len(operands) == 2:
            (one, first), (other, second) = operands
            orders = [[(one, first), (other, second)], [(one, second), (other, first)]]
            return [each for each in orders if all(map(self._is_possible, each))]
        if len(operands) > 1:
            # Goals are taken from the end, so operator inputs, which any value matches, are matched last.
            operands.sort(key=_is_no_input)
        return [operands]

    def _is_possible(self, goal: Goal) -> bool:
        """Return whether a goal may match, by a cheap test: the producer's operator, or a constant value."""
        ref, name = goal
        kind = type(ref)
        if kind is NodeRef:
            record = self._view.producer(name)
            return record is not None and record[2] == self._nodes[ref.node].op_type
        return kind is InputRef or kind is AnyValue or self._view.number(name) is not None

    def _has_no_other_slots(
        self, node: PatternNode | ExactNode, actual: Mapping[str, Any], record: NodeRecord
    ) -> bool:
        """Return whether slots that are not in the pattern allow a match.

        For a candidate, inputs must be constants; for a complete match, attributes must have default values,
        and inputs must be omitted.
        """
        others = actual.keys() - node.slots.keys()
        if not others:
            return True
        if not self._is_complete:
            values = (actual[slot] for slot in others)
            return all(
                self._view.constant(each.name) is not None for each in values if isinstance(each, ValueName)
            )
        # `...` is the shape input of a Reshape to a known shape; the attributes of the Reshape do not matter.
        is_free = any(isinstance(ref, AnyValue) for ref in node.slots.values())
        return all(
            not isinstance(actual[slot], ValueName)
            and (is_free or self._view.default(record, slot) == actual[slot])
            for slot in others
        )

    def _matches_setting(self, ref: Any, value: Any, slot: str, record: NodeRecord, state: _State) -> bool:
        """Return whether an attribute, or constant axes, match the pattern."""
        if isinstance(ref, AnyValue):
            return True
        if isinstance(ref, InputRef | NodeRef):
            return False
        if value is None:
            default = self._view.default(record, slot)
            if default is None:
                # The slot is an absent input that is a constant in the pattern, or an attribute without a
                # default.
                return not self._is_complete and isinstance(ref, Constant)
            return self._matches_constant(ref, default, None)
        if self._is_complete and slot in AXES and isinstance(ref, Constant):
            return self._matches_axes(ref, value, record, state)
        return self._matches_constant(ref, value, state.attributes)

    def _matches_axes(self, ref: Constant, value: Any, record: NodeRecord, state: _State) -> bool:
        """Return whether axes match; if the rank is known, ignore their order and resolve negative axes."""
        actual = self._view.constant(value.name) if isinstance(value, ValueName) else value
        if actual is None or ref.elements is None:
            return False
        elements, rank = elements_of(actual), self._view.scope.rank(record[3][0])
        if rank is not None and record[2] == "Unsqueeze":
            rank += len(elements)
        expected = [each for each in ref.elements if isinstance(each, int)]
        if not rank or len(expected) < len(ref.elements):
            return self._matches_constant(ref, actual, state.attributes)
        return sorted(each % rank for each in elements) == sorted(each % rank for each in expected)


def _is_no_input(goal: Goal) -> bool:
    return type(goal[0]) is not InputRef
