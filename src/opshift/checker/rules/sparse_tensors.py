"""Rules for sparse tensors: the values have one dimension, and each value has an index."""

from itertools import pairwise

from opshift.checker.checked_nodes import CheckedSparseTensor
from opshift.checker.findings import ERROR
from opshift.checker.rule_table import Problems, rule
from opshift.model.tensors import count_elements, read_tensor, sparse_positions

SOURCE = "onnx.proto: SparseTensorProto"

INT64 = 7
"""`TensorProto.INT64`."""


@rule("sparse.values", ERROR, SOURCE, "provide the values as a tensor of one dimension")
def values(sparse: CheckedSparseTensor) -> Problems:
    """The values of a sparse tensor must be a tensor of one dimension."""
    if not sparse.proto.HasField("values"):
        yield "has no values"
    elif len(sparse.proto.values.dims) != 1:
        yield f"has values of the shape {list(sparse.proto.values.dims)}; expected one dimension"


@rule("sparse.dims", ERROR, SOURCE, "set dims to the shape of the dense tensor")
def dims(sparse: CheckedSparseTensor) -> Problems:
    """A sparse tensor must have at least one dimension, and all dimensions must be positive."""
    shape = list(sparse.proto.dims)
    if not shape or min(shape) <= 0:
        yield f"has the shape {shape}; expected positive dimensions"


@rule("sparse.indices", ERROR, SOURCE, "provide one index, or one row of coordinates, for each value")
def indices(sparse: CheckedSparseTensor) -> Problems:
    """Each value of a sparse tensor must have an index or a row of coordinates, of type int64."""
    proto, count = sparse.proto, _value_count(sparse)
    if not proto.HasField("indices"):
        if count:
            yield f"has {count} values and no indices"
        return
    if proto.indices.data_type != INT64:
        yield "has indices that are not int64"
    shape = list(proto.indices.dims)
    if count is not None and shape not in ([count], [count, len(proto.dims)]):
        yield f"has indices of the shape {shape} for {count} values in {len(proto.dims)} dimensions"


@rule("sparse.order", ERROR, SOURCE, "sort the values by index, and keep each index once")
def order(sparse: CheckedSparseTensor) -> Problems:
    """The indices of a sparse tensor must be in its shape, and strictly ascending."""
    tensor, dims = read_tensor(sparse.proto.indices), sparse.proto.dims
    if tensor is None or tensor.element_type != "int64":
        return
    if len(tensor.dims) == 1 or (dims and tensor.dims[1:] == (len(dims),)):
        positions = sparse_positions(tensor, dims)
        size = count_elements(dims)
        if not all(0 <= position < size for position in positions):
            yield "has an index outside its shape"
        elif any(one >= other for one, other in pairwise(positions)):
            yield "has indices that are not strictly ascending"


def _value_count(sparse: CheckedSparseTensor) -> int | None:
    shape = sparse.proto.values.dims
    return shape[0] if len(shape) == 1 else None
