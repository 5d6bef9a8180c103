"""Matching of patterns with the nodes of a graph, from the node that computes the first output backwards."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from opshift.converter.recognition.expansion import ExactNode, ValueName, node_slots
from opshift.converter.recognition.patterns import (
    FUNCTIONS,
    AnyValue,
    Constant,
    Element,
    Hole,
    InputRef,
    NodeRef,
    Pattern,
    PatternNode,
    solved,
)
from opshift.inference.scope import Scope
from opshift.model.element_types import round_to_float32
from opshift.model.errors import CannotConvert
from opshift.model.graphs import NodeRecord
from opshift.model.messages import TensorProto
from opshift.model.node import Tensor
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.model.tensors import pack_tensor, read_tensor, write_tensor
from opshift.registry.models import OperatorVersion

COMMUTATIVE = frozenset(
    ("Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Max", "Min", "Mul", "Or", "Sum", "Xor")
)
"""Operators with two inputs whose order does not matter."""

AXES = ("axes", "axis")
"""Slots with axes, which may be negative."""

MAX_STEPS = 2_000
"""Maximum number of comparisons of values in one match; bounds the alternatives of commutative operands."""

TOLERANCE = {"float16": 2e-3, "bfloat16": 1e-2}
"""Relative difference of constants that are equal up to rounding, by element type; for others 2e-6."""

FLOATS = ("float", "float16", "bfloat16", "double")

LARGEST_CONSTANT = 4096
"""Maximum number of elements of a constant that a pattern compares."""


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


class GraphView:
    """Nodes of one graph or function as patterns see them."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._slots: dict[int, dict[str, Any] | None] = {}

    def producer(self, name: str) -> NodeRecord | None:
        """Return the node that computes a value; `None` for inputs, and for values of enclosing graphs."""
        return self.scope.producing_records.get(name)

    def slots(self, record: NodeRecord) -> dict[str, Any] | None:
        """Return the values and attributes of a node by slot, see `node_slots`."""
        position = record[0]
        if position not in self._slots:
            if self.scope.is_call(record):
                self._slots[position] = None
            else:
                self._slots[position] = node_slots(self.scope.node_of(record), self.scope)
        return self._slots[position]

    def constant(self, name: str) -> Tensor | None:
        """Return the value if it is the same in every run."""
        try:
            return self.scope.constant(name)
        except (CannotConvert, ValueError, TypeError, LookupError):  # its node is invalid
            return None

    def number(self, name: str, depth: int = 6) -> Tensor | None:
        """Return a constant, or a rounded function of constant numbers, such as the root of a size."""
        found = self.constant(name)
        record = None if found is not None or not depth else self.producer(name)
        if record is None or record[2] not in ROOTS or record[1] not in ("", DEFAULT_DOMAIN):
            return found
        operands = [self.number(each, depth - 1) for each in record[3]]
        element_type = self.scope.element_type(name)
        if element_type not in FLOATS or not all(each and len(each.values) == 1 for each in operands):
            return None
        try:
            value = ROOTS[record[2]](*(float(each.scalar) for each in operands if each))
        except (ArithmeticError, ValueError, TypeError):
            return None
        rounded = _rounded(value, element_type)
        dims = max((each.dims for each in operands if each), key=len)
        return None if rounded is None else Tensor(element_type, dims, (rounded,))


ROOTS: dict[str, Callable[..., float]] = {
    "Sqrt": math.sqrt,
    "Pow": math.pow,
    "Reciprocal": lambda value: 1 / value,
    "Div": lambda one, other: one / other,
    "Mul": lambda one, other: one * other,
    "Cast": float,
}
"""Functions of constant numbers that the evaluator of constants does not know, because they are rounded."""


class _State:
    """Partial match; copied where operands can be swapped."""

    __slots__ = ("attributes", "inputs", "nodes")

    def __init__(
        self, nodes: dict[int, NodeRecord], inputs: dict[int, str], attributes: dict[str, Any]
    ) -> None:
        self.nodes, self.inputs, self.attributes = nodes, inputs, attributes

    def copy(self) -> _State:
        return _State(dict(self.nodes), dict(self.inputs), dict(self.attributes))


Goal = tuple[Any, str]
"""Reference of a pattern, and the value that it has to match."""


class Matcher:
    """Matcher of a pattern or an expansion with a graph.

    A pattern of a definition has to describe the nodes completely: it is `strict` about attributes.
    """

    def __init__(
        self,
        view: GraphView,
        nodes: Sequence[PatternNode | ExactNode],
        outputs: Mapping[int, NodeRef],
        operator: OperatorVersion,
        *,
        strict: bool,
        is_close: bool = False,
    ) -> None:
        self._view = view
        self._nodes = nodes
        self._outputs = outputs
        self._operator = operator
        self._strict = strict
        self._is_close = is_close
        self._steps = 0
        self.is_relaxed = False
        """Whether a constant of one element has dimensions that the pattern does not have."""

    def match(self, anchor: str, inputs: Mapping[int, str] | None = None) -> Match | None:
        """Return the match that computes a value as first output; `inputs` are known inputs."""
        state = self._solve([(self._outputs[0], anchor)], _State({}, dict(inputs or {}), {}))
        return Match(state.nodes, state.inputs, state.attributes) if state else None

    def extended(self, match: Match, ref: NodeRef, record: NodeRecord) -> Match | None:
        """Return a match with one more node, for an output that the first one does not depend on."""
        if ref.output >= len(record[4]):
            return None
        state = _State(dict(match.nodes), dict(match.inputs), dict(match.attributes))
        found = self._solve([(ref, record[4][ref.output])], state)
        return None if found is None else Match(found.nodes, found.inputs, found.attributes)

    def _solve(self, goals: list[Goal], state: _State) -> _State | None:
        while goals:
            self._steps += 1
            if self._steps > MAX_STEPS:
                return None
            ref, name = goals.pop()
            if isinstance(ref, AnyValue):
                continue
            if isinstance(ref, InputRef):
                if state.inputs.setdefault(ref.position, name) != name:
                    return None
            elif isinstance(ref, NodeRef):
                record = self._view.producer(name)
                if record is None or record[4].index(name) != ref.output:
                    return None
                if ref.node in state.nodes:
                    if state.nodes[ref.node] is not record:
                        return None
                    continue
                found = self._operands(self._nodes[ref.node], record, state)
                if found is None:
                    return None
                state.nodes[ref.node] = record
                if len(found) == 1:
                    goals += found[0]
                    continue
                for operands in found:
                    result = self._solve([*goals, *operands], state.copy())
                    if result is not None:
                        return result
                return None
            elif not self._matches_constant(ref, name, state):
                return None
        return state

    def _operands(
        self, node: PatternNode | ExactNode, record: NodeRecord, state: _State
    ) -> list[list[Goal]] | None:
        """Return the values that have to match next, in each possible order; `None` if a node differs."""
        if record[2] != node.op_type or canonical_domain(record[1]) != node.domain:
            return None
        actual = self._view.slots(record)
        if actual is None:
            return None
        # The shape of its result alone determines a Reshape to any shape, whatever its attributes are.
        is_free = any(isinstance(ref, AnyValue) for ref in node.slots.values())
        for slot in actual.keys() - node.slots.keys():
            value = actual[slot]
            if isinstance(value, ValueName):
                if self._strict or self._view.constant(value.name) is None:
                    return None
            elif self._strict and not is_free and not self._is_default(record, slot, value):
                return None
        goals: list[Goal] = []
        for slot, ref in node.slots.items():
            value = actual.get(slot)
            if self._strict and slot in AXES and isinstance(ref, Constant) and value is not None:
                if not self._matches_axes(ref, value, record, state):
                    return None
            elif isinstance(value, ValueName):
                goals.append((ref, value.name))
            elif value is None:
                if isinstance(ref, AnyValue):
                    continue
                if isinstance(ref, InputRef | NodeRef) or not self._matches_default(ref, record, slot):
                    return None
            elif isinstance(ref, AnyValue):
                continue
            elif isinstance(ref, InputRef | NodeRef) or not self._matches(ref, value, state, None):
                return None
        goals.sort(key=lambda goal: isinstance(goal[0], InputRef))  # the last one is matched first
        if node.op_type in COMMUTATIVE and len(goals) == 2:
            (one, first), (other, second) = goals
            orders = ([(one, first), (other, second)], [(one, second), (other, first)])
            possible = [each for each in orders if all(map(self._is_possible, each))]
            return possible or None
        goals.reverse()
        return [goals]

    def _matches_axes(self, ref: Constant, value: Any, record: NodeRecord, state: _State) -> bool:
        """Compare axes counted from either end."""
        actual = self._view.constant(value.name) if isinstance(value, ValueName) else value
        rank = self._view.scope.rank(record[3][0]) if record[3] else None
        if actual is None or ref.elements is None:
            return False
        elements = _elements(actual)
        if rank and record[2] == "Unsqueeze":
            rank += len(elements)
        if rank and all(isinstance(each, int) for each in ref.elements):
            return sorted(each % rank for each in elements) == sorted(
                each % rank for each in ref.elements if isinstance(each, int)
            )
        return self._matches(ref, actual, state, None)

    def _is_possible(self, goal: Goal) -> bool:
        """Return whether the operator that computes a value is that of the pattern, for speed."""
        ref, name = goal
        if isinstance(ref, NodeRef):
            record = self._view.producer(name)
            return record is not None and record[2] == self._nodes[ref.node].op_type
        return isinstance(ref, InputRef | AnyValue) or self._view.number(name) is not None

    def _is_default(self, record: NodeRecord, slot: str, value: Any) -> bool:
        operator = self._view.scope.operator(record[2], record[1])
        attribute = operator.attributes.get(slot) if operator else None
        default = attribute.default if attribute else None
        default = default.encode() if isinstance(default, str) else default
        return default is not None and bool(default == value)

    def _matches_default(self, ref: Any, record: NodeRecord, slot: str) -> bool:
        """Return whether an absent attribute or input has the value of a pattern by default."""
        operator = self._view.scope.operator(record[2], record[1])
        attribute = operator.attributes.get(slot) if operator else None
        if attribute is None or attribute.default is None:
            # An absent input, which the pattern has as a constant, or an attribute without a default.
            return not self._strict and isinstance(ref, Constant)
        default = attribute.default
        default = default.encode() if isinstance(default, str) else default
        return self._matches(ref, default, None, None)

    def _matches_constant(self, ref: Any, name: str, state: _State) -> bool:
        tensor = self._view.number(name) if self._is_close else self._view.constant(name)
        if tensor is None or len(tensor.values) > LARGEST_CONSTANT:
            return False
        return self._matches(ref, tensor, state, tensor.element_type)

    def _matches(self, ref: Any, actual: Any, state: _State | None, element_type: str | None) -> bool:
        """Compare a constant of the pattern with a tensor or an attribute, and solve its attributes."""
        if not isinstance(ref, Constant):
            is_scalar = isinstance(actual, Tensor) and len(actual.values) == 1
            self.is_relaxed |= is_scalar and getattr(ref, "dims", None) != actual.dims
            return _is_equal(ref, actual)
        elements = _elements(actual)
        if ref.whole:
            value = tuple(elements)
            return state is not None and self._set(state, ref.whole, value)
        if ref.elements is None:
            return True
        if self._strict and len(elements) != len(ref.elements):
            return False
        for expected, element in zip(ref.elements, elements, strict=False):
            if isinstance(expected, Hole):
                if state is None or not self._solve_hole(expected, element, state, element_type):
                    return False
            elif expected is not None and not self._is_element(expected, element, element_type):
                return False
        return True

    def _is_element(self, expected: Element, element: Any, element_type: str | None) -> bool:
        if isinstance(element, bytes):
            return isinstance(expected, str) and element == expected.encode()
        if isinstance(expected, float) and isinstance(element, float):
            if element_type is not None and _rounded(expected, element_type) == element:
                return True
            if element_type is None and round_to_float32(expected) == element:
                return True
            is_close = self._is_close or not self._strict
            return is_close and math.isclose(
                expected, element, rel_tol=TOLERANCE.get(element_type or "", 2e-6)
            )
        return bool(expected == element)

    def _solve_hole(self, hole: Hole, element: Any, state: _State, element_type: str | None) -> bool:
        attribute = self._operator.attributes.get(hole.attribute)
        if attribute is None or isinstance(element, bytes) or attribute.type not in ("FLOAT", "INT"):
            return False
        value = solved(element, hole.function, attribute.type)
        if value is None:
            return False
        if isinstance(value, float) and not math.isfinite(value):
            return False
        if attribute.type == "FLOAT" and not self._has_element(hole, value, element, element_type):
            return False
        return self._set(state, hole.attribute, value)

    def _has_element(self, hole: Hole, value: float, element: float, element_type: str | None) -> bool:
        """Return whether the solved attribute gives the element again."""
        try:
            again = FUNCTIONS[hole.function].apply(value)
        except (ArithmeticError, ValueError):
            return False
        if element_type is not None and _rounded(again, element_type) == element:
            return True
        return (self._is_close or not self._strict) and math.isclose(again, element, rel_tol=1e-3)

    def _set(self, state: _State, attribute: str, value: Any) -> bool:
        known = state.attributes.setdefault(attribute, value)
        if known == value:
            return True
        is_number = isinstance(known, float) and isinstance(value, float)
        is_close = is_number and (self._is_close or not self._strict)
        return is_close and math.isclose(known, value, rel_tol=1e-6)


def _elements(actual: Any) -> Sequence[Any]:
    if isinstance(actual, Tensor):
        return actual.values
    return actual if isinstance(actual, tuple) else (actual,)


def _rounded(value: float, element_type: str) -> float | None:
    """Return a number rounded to an element type."""
    if element_type == "double":
        return value
    if element_type == "float":
        return round_to_float32(value)
    proto = TensorProto()
    try:
        write_tensor(proto, Tensor(element_type, (), (value,)))
    except CannotConvert:
        return None
    found = read_tensor(proto)
    return None if found is None else float(found.scalar)


def _is_equal(expected: Any, actual: Any) -> bool:
    """Compare constants of an expansion bit by bit; a scalar may also have dimensions of 1."""
    if isinstance(expected, Tensor) and isinstance(actual, Tensor):
        if expected.element_type != actual.element_type or len(expected.values) != len(actual.values):
            return False
        if expected.dims != actual.dims and (len(expected.values) != 1 or len(actual.dims) > 1):
            return False
        return pack_tensor(expected) == pack_tensor(actual)
    if isinstance(expected, Tensor) or isinstance(actual, Tensor):
        # A list that is an attribute of one version, and an input of another one.
        return tuple(_elements(expected)) == tuple(_elements(actual))
    return bool(expected == actual)


def candidates(
    anchors: Mapping[str, Sequence[Pattern]], record: NodeRecord, view: GraphView
) -> Iterator[Pattern]:
    """Yield the patterns whose last nodes have the operators of a node and of the producers of its inputs."""
    own = [view.producer(name) for name in record[3]]
    producers = {each[2] for each in own if each is not None}
    for pattern in anchors.get(record[2], ()):
        anchor = pattern.anchor
        if all(
            not isinstance(ref, NodeRef) or pattern.nodes[ref.node].op_type in producers
            for ref in anchor.slots.values()
        ):
            yield pattern
