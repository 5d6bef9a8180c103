"""Initializers, external data and sparse tensors that older IR versions do not support."""

import struct
from collections.abc import Iterator

from opshift.checker.ir_features.contents import Contents
from opshift.checker.ir_features.use import STANDALONE, Use
from opshift.model.attributes import sparse_tensors_in
from opshift.model.element_types import BY_NUMBER
from opshift.model.messages import GraphProto, SparseTensorProto, TensorProto
from opshift.model.offloaded_tensors import EXTERNAL
from opshift.model.tensors import count_elements, read_tensor, sparse_positions


def find_standalone_initializers(contents: Contents) -> Iterator[Use]:
    """Yield the first initializer that is not a graph input."""
    for path, graph in contents.graphs:
        for tensor in standalone_initializers(graph):
            yield Use(STANDALONE, f"{path}, initializer {tensor.name!r}")
            return  # all initializers can be rewritten, so that one place is enough


def find_external_data(contents: Contents) -> Iterator[Use]:
    """Yield the tensors with external data."""
    obstacle = "they must be stored in the model"
    remedy = "store the weights in the model: load it with onnx.load, and save it with onnx.save"
    for holder, tensor in contents.tensors:
        if tensor.data_location == EXTERNAL:
            yield Use("external_data", holder.place, obstacle, remedy)


def standalone_initializers(graph: GraphProto) -> Iterator[TensorProto]:
    """Yield the initializers of a graph that are not also inputs."""
    inputs = {value.name for value in graph.input}
    return (tensor for tensor in graph.initializer if tensor.name not in inputs)


MAX_DENSE_BYTES = 64 * 2**20
"""Maximum size of a dense tensor that replaces a sparse one, because a few values can have a huge shape."""

SPARSE_REMEDY = "replace it by a dense tensor"


def find_sparse_initializers(contents: Contents) -> Iterator[Use]:
    """Yield the sparse initializers."""
    for path, graph in contents.graphs:
        for sparse in graph.sparse_initializer:
            place = f"{path}, initializer {sparse.values.name!r}"
            yield Use("sparse_initializers", place, _obstacle(sparse), SPARSE_REMEDY)


def find_sparse_attributes(contents: Contents) -> Iterator[Use]:
    """Yield the attributes with sparse tensors; only that of Constant has a dense equivalent."""
    for held in contents.attributes:
        for sparse in sparse_tensors_in(held.proto):
            is_constant = held.node is not None and held.proto.name == "sparse_value"
            obstacle = _obstacle(sparse) if is_constant else "the attribute accepts only sparse tensors"
            yield Use("sparse_attributes", held.place, obstacle, SPARSE_REMEDY)


def _obstacle(sparse: SparseTensorProto) -> str:
    kind = BY_NUMBER.get(sparse.values.data_type)
    values, indices = read_tensor(sparse.values), read_tensor(sparse.indices)
    if kind is None or not kind.code or values is None or indices is None:
        return "its values or indices have an unsupported type or are external data"
    count = count_elements(sparse.dims)
    if count * struct.calcsize(f"<{kind.code}") > MAX_DENSE_BYTES:
        return f"as a dense tensor it would have more than {MAX_DENSE_BYTES // 2**20} MiB"
    positions = sparse_positions(indices, sparse.dims)
    is_consistent = len(positions) == len(values.values) and all(0 <= each < count for each in positions)
    return "" if is_consistent else "its values and indices do not fit its shape"
