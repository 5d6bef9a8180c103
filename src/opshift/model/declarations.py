"""Declarations of values in graphs and functions, and the named dimensions in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from opshift.model.graphs import is_graph
from opshift.model.types import nested_types

if TYPE_CHECKING:
    from opshift.model.graphs import ContainerProto
    from opshift.model.messages import TensorShapeProto, TypeProto, ValueInfoProto


def declarations_in(container: ContainerProto) -> Iterator[ValueInfoProto]:
    """Yield the declarations of values of a graph or function, but not those in its subgraphs."""
    # The message classes of an older `onnx` have no declarations in functions.
    yield from getattr(container, "value_info", ())
    if is_graph(container):
        yield from chain(container.input, container.output)


def named_dims(proto: TypeProto) -> list[TensorShapeProto.Dimension]:
    """Return the named dimensions of a dense or sparse tensor type, also inside of other types."""
    # Try dense tensors first: most types are dense, and the check of a model reads every type.
    if proto.HasField("tensor_type"):
        return [dim for dim in proto.tensor_type.shape.dim if dim.dim_param]
    inner = nested_types(proto)[-1]
    found = inner.sparse_tensor_type if inner.HasField("sparse_tensor_type") else inner.tensor_type
    return [dim for dim in found.shape.dim if dim.dim_param]


def rename_dimensions(values: Iterable[ValueInfoProto], new_name: Callable[[str], str]) -> None:
    """Rename the named dimensions in the types of values."""
    for value in values:
        for dim in named_dims(value.type):
            dim.dim_param = new_name(dim.dim_param)
