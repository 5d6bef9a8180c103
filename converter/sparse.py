"""Sparse initializers as the dense tensors that nodes read."""

from __future__ import annotations

import math
from typing import Any

from opshift.adapters.node import Tensor
from opshift.adapters.tensors import read_tensor

LARGEST = 4096
"""Elements of a tensor that is written out."""


def read_sparse(proto: Any) -> Tensor | None:
    """The value of a SparseTensorProto; `None` if it is large, elsewhere, or not sound."""
    dims = tuple(proto.dims)
    size = math.prod(dims)
    values, indices = read_tensor(proto.values), read_tensor(proto.indices)
    if values is None or indices is None or not 0 <= size <= LARGEST:
        return None
    places = indices.values if len(indices.dims) == 1 else _flat(indices, dims)
    if len(places) != len(values.values) or not all(0 <= place < size for place in places):
        return None
    zero: Any = b"" if values.element_type == "string" else type(values.values[0])() if places else 0
    dense = [zero] * size
    for place, value in zip(places, values.values, strict=True):
        dense[place] = value
    return Tensor(values.element_type, dims, tuple(dense))


def _flat(indices: Tensor, dims: tuple[int, ...]) -> list[int]:
    """Coordinates, a row for each value, as positions in row-major order."""
    rank = len(dims)
    rows = [indices.values[start : start + rank] for start in range(0, len(indices.values), rank or 1)]
    flat = []
    for row in rows:
        place = 0
        for coordinate, size in zip(row, dims, strict=True):
            place = place * size + coordinate
        flat.append(place)
    return flat
