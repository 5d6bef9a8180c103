"""Store constants as raw bytes: some runtimes misread the fields of some element types."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from opshift.model.element_types import BY_NAME, NAME_BY_NUMBER, element_bits
from opshift.model.graphs import ContainerProto, is_graph, nested_containers, root_graphs
from opshift.model.messages import ModelProto, TensorProto
from opshift.runtimes.constant_values import has_typed_field

INTEGER_FIELDS = ("int32_data", "uint64_data")
"""Fields that hold the bits of elements as integers."""


def write_raw_constants(model: ModelProto, element_types: Collection[str]) -> None:
    """Store initializers and tensor attributes of some element types as raw bytes.

    The element types are those whose elements are the bits of one integer each, in whole bytes.
    """
    for tensor in _tensors(model):
        name = NAME_BY_NUMBER.get(tensor.data_type, "")
        if name in element_types and has_typed_field(tensor):
            size = element_bits(BY_NAME[name]) // 8
            numbers = [each for field in INTEGER_FIELDS for each in getattr(tensor, field)]
            for field in INTEGER_FIELDS:
                tensor.ClearField(field)
            # a field may hold negative numbers, or more bits than an element has
            tensor.raw_data = b"".join((each % 256**size).to_bytes(size, "little") for each in numbers)


def _tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Yield the initializers and the tensor attributes of all graphs and functions."""
    roots: list[ContainerProto] = [*root_graphs(model), *model.functions]
    for container in nested_containers(roots):
        yield from container.initializer if is_graph(container) else ()
        for node in container.node:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    yield attribute.t
                yield from attribute.tensors
