"""Parts of a model that IR versions changed, each with its place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from opshift.converter.survey import label


class Placed(NamedTuple):
    """A message, and the path of the graph or function that contains it; or a graph or function itself."""

    path: str
    proto: Any

    @property
    def place(self) -> str:
        """The place in messages, for a NodeProto."""
        return f"{self.path}, node {label(self.proto.name, self.proto.op_type, self.proto.output)}"


class Held(NamedTuple):
    """An attribute, its node, and the path of the graph or function that contains the node.

    For the default of a function attribute, `node` is `None`.
    """

    path: str
    node: Any
    attribute: Any

    @property
    def place(self) -> str:
        """The place in messages."""
        owner = self.path if self.node is None else Placed(self.path, self.node).place
        return f"{owner}, attribute {self.attribute.name!r}"


class Initializer(NamedTuple):
    """The tensor with the name of a dense or sparse initializer, and the path of its graph."""

    path: str
    tensor: Any

    @property
    def place(self) -> str:
        """The place in messages."""
        return f"{self.path}, initializer {self.tensor.name!r}"


Holder = Held | Initializer
"""Owner of a tensor."""


def sparse_in(attribute: Any) -> Iterator[Any]:
    """Yield every SparseTensorProto of an attribute."""
    if attribute.HasField("sparse_tensor"):
        yield attribute.sparse_tensor
    yield from attribute.sparse_tensors


def tensors_in(attribute: Any) -> Iterator[Any]:
    """Yield every TensorProto of an attribute, including values and indices of sparse tensors."""
    if attribute.HasField("t"):
        yield attribute.t
    yield from attribute.tensors
    for sparse in sparse_in(attribute):
        yield from (sparse.values, sparse.indices)
