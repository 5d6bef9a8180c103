"""Walk over all tensors of a model."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from opshift.model.attributes import tensors_in
from opshift.model.graphs import ContainerProto, is_graph, nested_containers, root_graphs
from opshift.model.messages import ModelProto, TensorProto


def model_tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Yield the initializers and the tensors in attributes of all graphs and functions.

    They include values and indices of sparse tensors, and default values of attributes of functions.
    """
    roots: list[ContainerProto] = [*root_graphs(model), *model.functions]
    for container in nested_containers(roots):
        if is_graph(container):
            yield from container.initializer
            for sparse in container.sparse_initializer:
                yield from (sparse.values, sparse.indices)
        attributes = (attribute for node in container.node for attribute in node.attribute)
        yield from chain.from_iterable(map(tensors_in, attributes))
    # releases of onnx before IR version 9 lack the field
    defaults = (attribute for each in model.functions for attribute in getattr(each, "attribute_proto", ()))
    yield from chain.from_iterable(map(tensors_in, defaults))
