"""Inputs and outputs of a graph, as callers see them."""

from collections.abc import Set
from dataclasses import dataclass
from typing import Literal

from opshift.model.messages import GraphProto, SparseTensorProto, TensorProto, TypeProto
from opshift.model.types import Dim, declared_dims, type_to_string

Role = Literal["INPUT", "OUTPUT"]


@dataclass(frozen=True)
class SignatureValue:
    """Input or output of a graph; undeclared properties are empty, or `None` for the dimensions."""

    role: Role
    name: str
    position: int
    type: str
    dims: tuple[Dim, ...] | None
    denotations: tuple[str, ...]
    """Denotations of the type and of each dimension."""
    default: bytes | None
    """Serialized initializer of an input; `None` if it has no default."""

    @property
    def place(self) -> str:
        """Name of the value in messages."""
        return f"{self.role.lower()} {self.name!r}"


def values_of(graph: GraphProto, role: Role) -> dict[str, SignatureValue]:
    """Return the inputs or outputs of a graph by name, in order."""
    named = {value.name for value in graph.input} if role == "INPUT" else frozenset()
    defaults = initializer_values(graph, named)
    values = {}
    for position, value in enumerate(graph.input if role == "INPUT" else graph.output):
        kind, name, content = value.type, value.name, defaults.get(value.name)
        type_text, dims = type_to_string(kind) or "", declared_dims(kind)
        values[name] = SignatureValue(role, name, position, type_text, dims, _denotations(kind), content)
    return values


def initializer_values(graph: GraphProto, names: Set[str] | None = None) -> dict[str, bytes]:
    """Return the serialized initializers by name; by default, all of them."""
    tensors: dict[str, TensorProto | SparseTensorProto] = {
        each.values.name: each for each in graph.sparse_initializer
    }
    tensors |= {each.name: each for each in graph.initializer}
    return {
        name: tensor.SerializeToString(deterministic=True)
        for name, tensor in tensors.items()
        if names is None or name in names
    }


def _denotations(kind: TypeProto) -> tuple[str, ...]:
    tensor = kind.sparse_tensor_type if kind.HasField("sparse_tensor_type") else kind.tensor_type
    return (kind.denotation, *(each.denotation for each in tensor.shape.dim))
