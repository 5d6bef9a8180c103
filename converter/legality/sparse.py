"""Rules for sparse tensors: values in a row, and where in the whole they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from opshift.adapters.tensors import read_tensor
from opshift.converter.legality.findings import ERROR
from opshift.converter.legality.rules import Flaws, rule
from opshift.converter.legality.subjects import SparseTensor

SOURCE = "onnx.proto: SparseTensorProto"
INT64 = 7


@rule("sparse.values", ERROR, source=SOURCE, remedy="give the values as a tensor of one dimension")
def values(sparse: SparseTensor) -> Flaws:
    """The values are a tensor of one dimension."""
    if not sparse.proto.HasField("values"):
        yield "has no values"
    elif len(sparse.proto.values.dims) != 1:
        yield f"has values of the shape {list(sparse.proto.values.dims)}"


@rule("sparse.dims", ERROR, source=SOURCE, remedy="state the shape of the whole tensor")
def dims(sparse: SparseTensor) -> Flaws:
    """A sparse tensor has at least one dimension, and none is empty."""
    found = list(sparse.proto.dims)
    if not found or min(found) <= 0:
        yield f"has the shape {found}"


@rule(
    "sparse.indices", ERROR, source=SOURCE, remedy="give one index, or one row of coordinates, for each value"
)
def indices(sparse: SparseTensor) -> Flaws:
    """For each value there is an index, or a row of coordinates, of type int64."""
    proto, count = sparse.proto, _count(sparse)
    if not proto.HasField("indices"):
        if count:
            yield f"has {count} values and no indices"
        return
    if proto.indices.data_type != INT64:
        yield "has indices that are not int64"
    shape = list(proto.indices.dims)
    if count is not None and shape not in ([count], [count, len(proto.dims)]):
        yield f"has indices of the shape {shape} for {count} values in {len(proto.dims)} dimensions"


@rule("sparse.order", ERROR, source=SOURCE, remedy="sort the values by their indices, each index once")
def order(sparse: SparseTensor) -> Flaws:
    """Indices lie within the shape, and ascend."""
    places = _places(sparse.proto)
    if places is not None:
        whole = math.prod(sparse.proto.dims)
        if any(place is None or not 0 <= place < whole for place in places):
            yield "has an index outside its shape"
        elif any(one >= other for one, other in pairwise(places) if one is not None and other is not None):
            yield "has indices that do not ascend"


def _count(sparse: SparseTensor) -> int | None:
    shape = sparse.proto.values.dims
    return shape[0] if len(shape) == 1 else None


def _places(proto: Any) -> Sequence[int | None] | None:
    """The flat position of each index, `None` for those outside; `None` if the indices cannot be read."""
    found = read_tensor(proto.indices) if proto.HasField("indices") else None
    if found is None or found.element_type != "int64":
        return None
    if len(found.dims) == 1:
        return found.values
    rank = len(proto.dims)
    if len(found.dims) != 2 or found.dims[1] != rank or not rank:
        return None
    rows = (found.values[start : start + rank] for start in range(0, len(found.values), rank))
    return [_flat(row, proto.dims) for row in rows]


def _flat(row: Sequence[int], dims: Sequence[int]) -> int | None:
    place = 0
    for index, dim in zip(row, dims, strict=True):
        if not 0 <= index < dim:
            return None
        place = place * dim + index
    return place
