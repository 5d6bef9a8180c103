"""Conversion of sparse tensors to dense ones."""

from __future__ import annotations

import math
from typing import Any

from opshift.adapters.node import Tensor
from opshift.adapters.tensors import read_tensor

LARGEST = 4096
"""Maximum number of elements of the dense tensor; bounds the memory for a mostly empty tensor."""


def read_sparse(proto: Any) -> Tensor | None:
    """Return the value of a SparseTensorProto; `None` if it is large, stored externally, or invalid."""
    dims = tuple(proto.dims)
    size = math.prod(dims)
    values, indices = read_tensor(proto.values), read_tensor(proto.indices)
    if values is None or indices is None or not 0 <= size <= LARGEST:
        return None
    positions = indices.values if len(indices.dims) == 1 else _flat_positions(indices, dims)
    if len(positions) != len(values.values) or not all(0 <= position < size for position in positions):
        return None
    zero: Any = b"" if values.element_type == "string" else type(values.values[0])() if positions else 0
    dense = [zero] * size
    for position, value in zip(positions, values.values, strict=True):
        dense[position] = value
    return Tensor(values.element_type, dims, tuple(dense))


def _flat_positions(indices: Tensor, dims: tuple[int, ...]) -> list[int]:
    """Convert coordinates, one row per value, to positions in row-major order."""
    rank = len(dims)
    rows = [indices.values[start : start + rank] for start in range(0, len(indices.values), rank or 1)]
    flat = []
    for row in rows:
        position = 0
        for coordinate, size in zip(row, dims, strict=True):
            position = position * size + coordinate
        flat.append(position)
    return flat
