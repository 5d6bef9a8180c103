"""The interface between adapters and a conversion: facts about the model, and emission of nodes."""

from __future__ import annotations

from typing import Any, Protocol

from opshift.model.node import Tensor
from opshift.registry.steps import Allow


class Facts(Protocol):
    """Facts about the values of a model before its conversion, and the effects that an adapter may have."""

    def element_type(self, name: str) -> str | None:
        """Return an element type such as `float16`, or a type string if the value is not a tensor.

        `None` if the type is unknown.
        """

    def shape(self, name: str) -> tuple[int | None, ...] | None:
        """Return the dimensions of a tensor, `None` for each unknown one; `None` if the rank is unknown."""

    def rank(self, name: str) -> int | None:
        """Return the rank of a tensor, or `None` if it is unknown."""

    def nested_shape(self, graph: Any, name: str) -> tuple[int | None, ...] | None:
        """Return the dimensions of a value of a GraphProto held by a node, in the form of `shape`."""

    def constant(self, name: str) -> Tensor | None:
        """Return the value if it is the same in every run, else `None`."""

    def is_used(self, name: str) -> bool:
        """Return whether a node reads the value or the graph returns it."""

    def fresh(self, hint: str) -> str:
        """Return a name that is not used in the model, derived from `hint`."""

    def add_constant(self, tensor: Tensor) -> str:
        """Return the name of a constant with this value; equal constants share one name."""

    def allow(self, kind: Allow, reason: str) -> bool:
        """Return whether the caller allows a deviation; if so, record the reason for the plan."""
