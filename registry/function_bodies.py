"""Function bodies as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.registry.record import Checked, Record
from opshift.registry.steps import Literals


@dataclass(frozen=True, kw_only=True)
class FromAttribute(Record):
    """In a body: a reference to an attribute of the calling node, or to its default."""

    attribute: str


@dataclass(frozen=True, kw_only=True)
class BodyNode(Record):
    """One node of a function body."""

    op_type: str
    domain: str = DEFAULT_DOMAIN
    inputs: tuple[str, ...] = ()
    outputs: Annotated[tuple[str, ...], Checked(min_length=1)]
    attributes: dict[str, Literals | FromAttribute] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Body(Record):
    """A function body: nodes that compute the operator's outputs from its inputs."""

    opset_imports: Annotated[dict[str, Annotated[int, Checked(ge=1)]], Checked(min_length=1)]
    """Domain to the opset version that the nodes are written for."""
    nodes: Annotated[tuple[BodyNode, ...], Checked(min_length=1)]
    """The nodes in topological order."""
