"""Types of the values of a graph during a conversion of element types."""

from __future__ import annotations

from dataclasses import dataclass, field

from opshift.converter.element_types.integer_bounds import Bounds
from opshift.converter.element_types.requested_types import INTEGERS
from opshift.inference.scope import Scope


@dataclass
class TypedValue:
    """Value of a graph whose type can change.

    Attributes:
        old: its element type, or the type string of a sequence or optional.
        new: the same with the new element type.
        kept: the type in nodes that do not get the new one: the old one, or a wider one of more runtimes.
        stored: type of the value; `None` until the readers determine it.
        can_change: whether all of its elements are in the range of the new type.
        needed: types that readers need.
        is_result: whether the graph returns it.
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
        # the bounds of integers that a loop carries are unknown
        return self.can_change and self.old != INTEGERS[0]

    def settle(self) -> None:
        """Determine the type by the readers: a cast from the type that is kept loses least."""
        if self.stored is None:
            others = self.needed - {self.new}
            self.stored = self.new if self.can_change and not others else self.kept
            if self.old in others:
                self.stored = self.old


@dataclass
class NodeTypes:
    """Types of a node's inputs and outputs with changeable types, by position.

    An output without a type gets the one that its readers need.
    """

    inputs: dict[int, str] = field(default_factory=dict)
    outputs: dict[int, str | None] = field(default_factory=dict)


@dataclass
class GraphTypes:
    """Types of the values of a graph, and of those that its nodes need, by position of the node."""

    scope: Scope
    path: str
    parent: GraphTypes | None
    values: dict[str, TypedValue] = field(default_factory=dict)
    nodes: dict[int, NodeTypes] = field(default_factory=dict)
    children: dict[int, GraphTypes] = field(default_factory=dict)
    """By identity of the subgraph."""
    bounds: dict[str, Bounds] = field(default_factory=dict)
    """Known bounds of int64 values."""
    sizes: set[str] = field(default_factory=set)
    """Values that depend on sizes of dimensions and on constants alone."""

    def find(self, name: str) -> TypedValue | None:
        """Return a value of this graph or of an enclosing one; `None` if its type does not change."""
        graph: GraphTypes | None = self
        while graph is not None:
            if name in graph.values or graph.scope.is_local(name):
                return graph.values.get(name)
            graph = graph.parent
        return None

    def bounds_of(self, name: str) -> Bounds | None:
        """Return the bounds of an int64 value of this graph or of an enclosing one, if they are known."""
        if name in self.bounds or self.parent is None or self.scope.is_local(name):
            return self.bounds.get(name)
        return self.parent.bounds_of(name)

    def is_size(self, name: str) -> bool:
        """Return whether a value depends on sizes alone."""
        return name in self.sizes or (self.parent is not None and self.parent.is_size(name))

    def settle(self) -> None:
        """Determine the types that readers determine, also in subgraphs."""
        for value in self.values.values():
            value.settle()
        for each in self.children.values():
            each.settle()
