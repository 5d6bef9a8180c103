"""What a shape rule is told of a node, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from opshift.registry.models import OperatorVersion

Shape = tuple[int | None, ...]
"""A known rank; a dimension that is not known is `None`."""


class ShapeContext(Protocol):
    """A node as a rule sees it."""

    @property
    def version(self) -> OperatorVersion:
        """The operator version the node means."""

    @property
    def inputs(self) -> Sequence[Shape | None]:
        """By position; `None` where the rank is unknown, the input left out, or the value no tensor."""

    @property
    def input_count(self) -> int:
        """How many inputs the node lists."""

    @property
    def output_count(self) -> int:
        """How many outputs the node lists."""

    def attribute(self, name: str) -> Any:
        """A Python value (bytes for a string, a tuple for a list, a message otherwise), or the default."""

    def constant(self, position: int) -> tuple[Any, ...] | None:
        """The values of an input known in advance, in row-major order; a value in it may be `None`."""

    def body_output_shape(self, attribute: str, position: int) -> Shape | None:
        """The shape of a subgraph's output, under input shapes that hold in every iteration."""


Rule = Callable[[ShapeContext], Sequence[Shape | None]]
"""Gives one entry an output, or fewer; the outputs that have none are unknown."""
