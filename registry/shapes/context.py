"""Interface between shape rules and the inference that calls them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from opshift.registry.models import OperatorVersion

Shape = tuple[int | None, ...]
"""A shape of known rank; an unknown dimension is `None`."""


class ShapeContext(Protocol):
    """The facts about a node that a shape rule may use."""

    @property
    def version(self) -> OperatorVersion:
        """The operator version of the node."""

    @property
    def inputs(self) -> Sequence[Shape | None]:
        """Input shapes; `None` for an unknown rank, an omitted input, or a value that is not a tensor."""

    @property
    def input_count(self) -> int:
        """The number of inputs that the node lists, including omitted ones."""

    @property
    def output_count(self) -> int:
        """The number of outputs that the node lists, including omitted ones."""

    def attribute(self, name: str) -> Any:
        """Return the value of an attribute, or its default.

        Strings are bytes, lists are tuples, and tensors, graphs and types are messages.
        """

    def constant(self, position: int) -> tuple[Any, ...] | None:
        """Return the elements of a constant input in row-major order; unknown elements are `None`."""

    def body_output_shape(self, attribute: str, position: int) -> Shape | None:
        """Return the shape of a subgraph output, inferred from input shapes that every iteration has."""


Rule = Callable[[ShapeContext], Sequence[Shape | None]]
"""Returns the output shapes by position; missing trailing entries are unknown."""
