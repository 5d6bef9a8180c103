"""Inputs and outputs of a graph, as callers see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from opshift.model.messages import GraphProto, SparseTensorProto, TensorProto, TensorShapeProto, TypeProto
from opshift.model.types import type_to_string

Role = Literal["INPUT", "OUTPUT"]

Dim = int | str | None
"""Size or name of a dimension; `None` if it has neither."""


@dataclass(frozen=True)
class SignatureValue:
    """Input or output of a graph.

    Attributes:
        role, name, position: identity of the value.
        type: type such as `tensor(float)`; empty if not declared.
        dims: the dimensions; `None` if the rank is not declared.
        denotations: denotations of the type and of each dimension; empty if not declared.
        default: serialized initializer of an input; `None` if it has no default.
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
        """Name of the value in messages."""
        return f"{self.role.lower()} {self.name!r}"


def values_of(graph: GraphProto, role: Role) -> dict[str, SignatureValue]:
    """Return the inputs or outputs of a graph by name, in order."""
    declared = graph.input if role == "INPUT" else graph.output
    defaults = _defaults(graph) if role == "INPUT" else {}
    return {
        value.name: SignatureValue(
            role,
            value.name,
            position,
            type_to_string(value.type) or "",
            _dims(value.type),
            _denotations(value.type),
            defaults[value.name].SerializeToString(deterministic=True) if value.name in defaults else None,
        )
        for position, value in enumerate(declared)
    }


def _defaults(graph: GraphProto) -> Mapping[str, TensorProto | SparseTensorProto]:
    sparse = {tensor.values.name: tensor for tensor in graph.sparse_initializer}
    return {**sparse, **{tensor.name: tensor for tensor in graph.initializer}}


def _shape(kind: TypeProto) -> TensorShapeProto | None:
    tensor = kind.sparse_tensor_type if kind.HasField("sparse_tensor_type") else kind.tensor_type
    return tensor.shape if tensor.HasField("shape") else None


def _dims(kind: TypeProto) -> tuple[Dim, ...] | None:
    shape = _shape(kind)
    return None if shape is None else tuple(_dim(each) for each in shape.dim)


def _dim(dim: TensorShapeProto.Dimension) -> Dim:
    return dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None


def _denotations(kind: TypeProto) -> tuple[str, ...]:
    shape = _shape(kind)
    return (kind.denotation, *(each.denotation for each in (shape.dim if shape is not None else ())))
