"""The parts of a model that IR versions differ in, each with where it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from opshift.converter.survey import label


class Placed(NamedTuple):
    """A message and the graph or function that it is in."""

    path: str
    proto: Any

    @property
    def place(self) -> str:
        """Of a node: how messages name it."""
        return f"{self.path}, node {label(self.proto.name, self.proto.op_type, self.proto.output)}"


class Held(NamedTuple):
    """An attribute, its node (none for a function's default), and the graph or function they are in."""

    path: str
    node: Any
    attribute: Any

    @property
    def place(self) -> str:
        """How messages name it."""
        where = self.path if self.node is None else Placed(self.path, self.node).place
        return f"{where}, attribute {self.attribute.name!r}"


class Initializer(NamedTuple):
    """A dense or sparse initializer, by the TensorProto that has its name, and the graph it is in."""

    path: str
    tensor: Any

    @property
    def place(self) -> str:
        """How messages name it."""
        return f"{self.path}, initializer {self.tensor.name!r}"


Holder = Held | Initializer
"""What holds a tensor."""


def sparse_in(attribute: Any) -> Iterator[Any]:
    """Every SparseTensorProto that an attribute holds."""
    if attribute.HasField("sparse_tensor"):
        yield attribute.sparse_tensor
    yield from attribute.sparse_tensors


def tensors_in(attribute: Any) -> Iterator[Any]:
    """Every TensorProto that an attribute holds, also those that sparse tensors are made of."""
    if attribute.HasField("t"):
        yield attribute.t
    yield from attribute.tensors
    for sparse in sparse_in(attribute):
        yield from (sparse.values, sparse.indices)
