"""A function body as a definition states it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from opshift.registry.names import DEFAULT_DOMAIN
from opshift.registry.record import Checked, Record
from opshift.registry.steps import Literals


@dataclass(frozen=True, kw_only=True)
class FromAttribute(Record):
    """In a body: the value that the node's own attribute has, stated or by default."""

    attribute: str


@dataclass(frozen=True, kw_only=True)
class BodyNode(Record):
    """One node of a body."""

    op_type: str
    domain: str = DEFAULT_DOMAIN
    inputs: tuple[str, ...] = ()
    outputs: Annotated[tuple[str, ...], Checked(min_length=1)]
    attributes: dict[str, Literals | FromAttribute] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Body(Record):
    """A function body: nodes from the operator's inputs to its outputs, which they name as it does."""

    opset_imports: Annotated[dict[str, Annotated[int, Checked(ge=1)]], Checked(min_length=1)]
    """What the nodes are written for, by domain."""
    nodes: Annotated[tuple[BodyNode, ...], Checked(min_length=1)]
    """In order."""
