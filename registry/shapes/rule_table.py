"""Interface between shape rules and the inference that calls them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Protocol

from opshift.model.rule_table import RuleTable
from opshift.registry.models import OperatorVersion

Shape = tuple[int | None, ...]
"""A shape of known rank; an unknown dimension is `None`."""


class ShapeContext(Protocol):
    """The facts about a node that a shape rule may use."""

    @property
    def version(self) -> OperatorVersion:
        """The operator version of the node."""
        ...

    @property
    def inputs(self) -> Sequence[Shape | None]:
        """Input shapes; `None` for an unknown rank, an omitted input, or a value that is not a tensor."""
        ...

    @property
    def input_count(self) -> int:
        """The number of inputs that the node lists, including omitted ones."""
        ...

    @property
    def output_count(self) -> int:
        """The number of outputs that the node lists, including omitted ones."""
        ...

    def attribute(self, name: str) -> object:
        """Return the value of an attribute, or its default.

        Strings are bytes, lists are tuples, and tensors, graphs and types are messages.
        """
        ...

    def constant(self, position: int) -> tuple[object, ...] | None:
        """Return the elements of a constant input in row-major order; unknown elements are `None`."""
        ...

    def body_output_shape(self, attribute: str, position: int) -> Shape | None:
        """Return the shape of a subgraph output, inferred from input shapes that every iteration has."""
        ...


ShapeRule = Callable[[ShapeContext], Sequence[Shape | None]]
"""Returns the output shapes by position; missing trailing entries are unknown."""

TABLE: RuleTable[ShapeRule] = RuleTable("opshift.registry.shapes")

SHAPE_RULES = TABLE.registered

KEEPS_RANK: set[str] = set()
"""Rules with the same rank for the first output and the first input, if the output rank is known."""


def rule(name: str, *, keeps_rank: bool = False) -> Callable[[ShapeRule], ShapeRule]:
    """Register a function as the shape rule `name`.

    The result is limited to the outputs of the node, and negative dimensions become unknown.

    Args:
        name: the value of `shape` in definitions.
        keeps_rank: whether the first output has the rank of the first input, if its rank is known.

    Raises:
        DuplicateRule: the name is already registered.
    """

    def register(function: ShapeRule) -> ShapeRule:
        @wraps(function)
        def checked_rule(node: ShapeContext) -> Sequence[Shape | None]:
            return [_without_negative_dims(shape) for shape in function(node)][: node.output_count]

        TABLE.add(name, checked_rule, function)
        if keeps_rank:
            KEEPS_RANK.add(name)
        return checked_rule

    return register


def _without_negative_dims(shape: Shape | None) -> Shape | None:
    for dim in shape or ():
        if dim is not None and dim < 0:
            return tuple(dim if dim is not None and dim >= 0 else None for dim in shape or ())
    return shape
