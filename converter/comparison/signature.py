"""A graph's inputs and outputs as callers see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from opshift.converter.types import type_text

Role = Literal["INPUT", "OUTPUT"]
Dim = int | str | None
"""A size, a name, or neither."""


@dataclass(frozen=True)
class Value:
    """An input or output.

    Attributes:
        role, name, position: which it is.
        type: as `tensor(float)`; empty if not stated.
        dims: `None` if the rank is not stated.
        denotations: what the type, and each dimension, stand for; empty if not stated.
        default: of an input the bytes of its initializer.
    """

    role: Role
    name: str
    position: int
    type: str
    dims: tuple[Dim, ...] | None
    denotations: tuple[str, ...]
    default: bytes | None

    @property
    def place(self) -> str:
        """How messages call it."""
        return f"{self.role.lower()} {self.name!r}"


def values_of(graph: Any, role: Role) -> dict[str, Value]:
    """The inputs or outputs by name, in order."""
    declared = graph.input if role == "INPUT" else graph.output
    defaults = _defaults(graph) if role == "INPUT" else {}
    return {
        value.name: Value(
            role,
            value.name,
            position,
            type_text(value.type) or "",
            _dims(value.type),
            _denotations(value.type),
            defaults[value.name].SerializeToString(deterministic=True) if value.name in defaults else None,
        )
        for position, value in enumerate(declared)
    }


def _defaults(graph: Any) -> Mapping[str, Any]:
    sparse = {each.values.name: each for each in graph.sparse_initializer}
    return sparse | {each.name: each for each in graph.initializer}


def _shape(kind: Any) -> Any:
    which = kind.WhichOneof("value")
    if which not in ("tensor_type", "sparse_tensor_type") or not getattr(kind, which).HasField("shape"):
        return None
    return getattr(kind, which).shape


def _dims(kind: Any) -> tuple[Dim, ...] | None:
    shape = _shape(kind)
    return None if shape is None else tuple(_dim(each) for each in shape.dim)


def _dim(dim: Any) -> Dim:
    return int(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or None


def _denotations(kind: Any) -> tuple[str, ...]:
    shape = _shape(kind)
    return (kind.denotation, *(each.denotation for each in (shape.dim if shape is not None else ())))
