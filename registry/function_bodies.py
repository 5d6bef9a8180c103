"""A function body as a definition states it."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from opshift.registry.names import DEFAULT_DOMAIN
from opshift.registry.steps import Literals


class FromAttribute(BaseModel):
    """In a body: the value that the node's own attribute has, stated or by default."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    attribute: str


class BodyNode(BaseModel):
    """One node of a body."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    op_type: str
    domain: str = DEFAULT_DOMAIN
    inputs: tuple[str, ...] = ()
    outputs: Annotated[tuple[str, ...], Field(min_length=1)]
    attributes: dict[str, Literals | FromAttribute] = {}


class Body(BaseModel):
    """A function body: nodes from the operator's inputs to its outputs, which they name as it does."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    opset_imports: Annotated[dict[str, Annotated[int, Field(ge=1)]], Field(min_length=1)]
    """What the nodes are written for, by domain."""
    nodes: Annotated[tuple[BodyNode, ...], Field(min_length=1)]
    """In order."""
