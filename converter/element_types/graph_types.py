"""Types of the values of a graph during a conversion of element types, and bounds of integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from opshift.converter.element_types.requested_types import INTEGERS
from opshift.inference.constants import INTEGER_RANGES
from opshift.inference.infer_types import parameter_at
from opshift.inference.scope import Scope
from opshift.model.node import Node
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.model.tensors import read_tensor
from opshift.registry.models import OperatorVersion


@dataclass
class TypedValue:
    """Value of a graph whose type the caller wants to change.

    Attributes:
        old: original element type, or type string of a sequence or optional.
        new: `old` with the new element type.
        kept: type in nodes that do not get the new type: `old`, or a wider type that more runtimes support.
        stored: type of the value in the result; `None` until its readers determine it.
        can_change: whether the value can get the new type; an int64 value only if int32 has all its numbers.
        needed: types in which nodes and graph outputs read the value.
        is_result: whether the value is an output of the graph.
    """

    old: str
    new: str
    kept: str
    stored: str | None
    can_change: bool = True
    needed: set[str] = field(default_factory=set)
    is_result: bool = False

    @property
    def passes_subgraphs(self) -> bool:
        """Whether the value can have the new type as an input or output of a subgraph."""
        # int64 stays in subgraphs, because the bounds of integers that a loop carries are unknown
        return self.can_change and self.old != INTEGERS[0]

    def settle(self) -> None:
        """Set `stored` if unset: the new type if all readers need it, else the old or the kept type."""
        if self.stored is None:
            others = self.needed - {self.new}
            self.stored = self.new if self.can_change and not others else self.kept
            if self.old in others:
                self.stored = self.old


@dataclass
class NodeTypes:
    """Types of a node's inputs and outputs with changeable types, by position.

    An input with `None` has the type in which the value is stored. An output with `None` gets the type that
    its readers need.
    """

    inputs: dict[int, str | None] = field(default_factory=dict)
    outputs: dict[int, str | None] = field(default_factory=dict)


@dataclass
class GraphTypes:
    """Types of the values of a graph, by name, and types that its nodes need, by node position.

    `parent` has the types of the enclosing graph; it is `None` for the main graph.
    """

    scope: Scope
    path: str
    parent: GraphTypes | None
    values: dict[str, TypedValue] = field(default_factory=dict)
    nodes: dict[int, NodeTypes] = field(default_factory=dict)
    children: dict[int, GraphTypes] = field(default_factory=dict)
    """Types in each subgraph, by `id` of its GraphProto."""
    bounds: dict[str, Bounds] = field(default_factory=dict)
    """Known bounds of int64 values."""
    sizes: set[str] = field(default_factory=set)
    """Values that depend on sizes of dimensions and on constants alone."""

    def find(self, name: str) -> TypedValue | None:
        """Return the entry of a value in this graph or an enclosing one.

        Return `None` if no requested change applies to the type of the value.
        """
        graph: GraphTypes | None = self
        while graph is not None:
            if name in graph.values or graph.scope.is_local(name):
                return graph.values.get(name)
            graph = graph.parent
        return None

    def bounds_of(self, name: str) -> Bounds | None:
        """Return the bounds of an int64 value of this graph or of an enclosing one; `None` if unknown."""
        if name in self.bounds or self.parent is None or self.scope.is_local(name):
            return self.bounds.get(name)
        return self.parent.bounds_of(name)

    def is_size(self, name: str) -> bool:
        """Return whether a value depends on sizes of dimensions and on constants alone."""
        return name in self.sizes or (self.parent is not None and self.parent.is_size(name))

    def settle(self) -> None:
        """Set the types of values whose readers determine the type, also in subgraphs."""
        for value in self.values.values():
            value.settle()
        for each in self.children.values():
            each.settle()


class Bounds(NamedTuple):
    """Least and greatest possible element of an integer value, both included."""

    low: int
    high: int

    @property
    def fits(self) -> bool:
        """Whether both bounds are in the range of int32."""
        return self.low >= INT32.low and self.high <= INT32.high


INT32 = Bounds(-(2**31), 2**31 - 1)

Find = Callable[[str], Bounds | None]

SUMS: Mapping[str, Callable[[Bounds, Bounds], tuple[int, ...]]] = {
    "Add": lambda a, b: (a.low + b.low, a.high + b.high),
    "Sub": lambda a, b: (a.low - b.high, a.high - b.low),
    "Mul": lambda a, b: (a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high),
}
"""By operator: function of the operands' bounds; the minimum and maximum of its numbers bound the result."""


def bounds_of_output(
    node: Node, operator: OperatorVersion, position: int, scope: Scope, find: Find
) -> Bounds | None:
    """Return the bounds of an int64 output; `None` if they are unknown.

    `find` returns the bounds of an input by its name.
    """
    name = node.outputs[position]
    known = scope.constant(name) or scope.uniform_element(name)
    if known is not None:
        return _bounds_of(known.values)
    if not operator.min_input <= len(node.inputs) <= operator.max_input:
        return None  # the plan reports the invalid node
    if operator.name == "Cast":
        source = scope.element_type(node.inputs[0])
        if source == "bool":
            return Bounds(0, 1)
        numbers = INTEGER_RANGES.get(source or "") if source != "int64" else None
        return Bounds(numbers[0], numbers[-1]) if numbers else find(node.inputs[0])
    if operator.name in SUMS:
        one, other = map(find, node.inputs)
        return _bounds_of(SUMS[operator.name](one, other)) if one and other else None
    formal = parameter_at(operator.outputs, position)
    if operator.bridge != "order" or formal is None:
        return None
    # bridge `order`: outputs contain only zeros and elements of inputs with the same type variable
    found = [
        find(each)
        for place, each in enumerate(node.inputs)
        if each and (given := parameter_at(operator.inputs, place)) and given.type == formal.type
    ]
    if not found or None in found:
        return None
    return _bounds_of([0, *(limit for each in found if each for limit in each)])


def bounds_of_stored(name: str, scope: Scope) -> Bounds | None:
    """Return the bounds of an initializer; `None` if it is sparse or cannot be read."""
    tensor = scope.initializer(name)
    values = read_tensor(tensor) if tensor is not None else None
    return None if values is None else _bounds_of(values.values)


def _bounds_of(numbers: tuple[int, ...] | list[int]) -> Bounds:
    return Bounds(min(numbers, default=0), max(numbers, default=0))


def is_standard(operator: OperatorVersion, *names: str) -> bool:
    """Return whether an operator belongs to the default domain and has one of `names`."""
    return operator.domain == DEFAULT_DOMAIN and operator.name in names
