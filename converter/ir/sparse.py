"""Sparse tensors (IR version 6); for older versions, they are written as dense tensors."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from opshift.adapters.tensors import read_tensor
from opshift.converter.ir.contents import TENSOR, Contents
from opshift.converter.ir.parts import Initializer, sparse_in
from opshift.converter.ir.use import Use
from opshift.registry.element_types import BY_NUMBER

MOST_BYTES = 64 * 2**20
"""Maximum size of a dense tensor that replaces a sparse one, because a few values can have a huge shape."""
TOO_LARGE = f"as a dense tensor it would have more than {MOST_BYTES // 2**20} MiB"
INCONSISTENT = "its values and indices do not fit its shape"
UNREADABLE = "its values or indices have an unsupported type or are external data"
ONLY_CONSTANTS = "the attribute accepts only sparse tensors"
REMEDY = "replace it by a dense tensor"


def find_initializers(contents: Contents) -> Iterator[Use]:
    """Yield the sparse initializers."""
    for path, graph in contents.graphs:
        for sparse in graph.sparse_initializer:
            place = Initializer(path, sparse.values).place
            yield Use("sparse_initializers", place, _obstacle(sparse), REMEDY)


def find_attributes(contents: Contents) -> Iterator[Use]:
    """Yield the attributes with sparse tensors; only that of Constant has a dense equivalent."""
    for held in contents.attributes:
        for sparse in sparse_in(held.attribute):
            is_constant = held.node is not None and held.attribute.name == "sparse_value"
            obstacle = _obstacle(sparse) if is_constant else ONLY_CONSTANTS
            yield Use("sparse_attributes", held.place, obstacle, REMEDY)


def write_initializers(contents: Contents) -> None:
    """Replace every sparse initializer by a dense one of the same name."""
    for _, graph in contents.graphs:
        for sparse in graph.sparse_initializer:
            _write_dense(sparse, graph.initializer.add())
        graph.ClearField("sparse_initializer")


def write_attributes(contents: Contents) -> None:
    """Replace the `sparse_value` of every Constant by a dense `value`."""
    for held in contents.attributes:
        if held.attribute.HasField("sparse_tensor"):
            _write_dense(held.attribute.sparse_tensor, held.attribute.t)
            held.attribute.ClearField("sparse_tensor")
            held.attribute.name, held.attribute.type = "value", TENSOR


def _obstacle(sparse: Any) -> str:
    kind = BY_NUMBER.get(sparse.values.data_type)
    values, indices = read_tensor(sparse.values), read_tensor(sparse.indices)
    if kind is None or not kind.code or values is None or indices is None:
        return UNREADABLE
    count = math.prod(sparse.dims)
    if count * struct.calcsize(f"<{kind.code}") > MOST_BYTES:
        return TOO_LARGE
    rank = 1 if len(indices.dims) == 1 else len(sparse.dims)
    is_complete = len(indices.values) == len(values.values) * rank
    return "" if is_complete and all(0 <= each < count for each in _positions(sparse)) else INCONSISTENT


def _write_dense(sparse: Any, dense: Any) -> None:
    """Fill an empty TensorProto with zeros and the values of a sparse tensor."""
    kind = BY_NUMBER[sparse.values.data_type]
    values = read_tensor(sparse.values)
    assert values is not None
    width = struct.calcsize(f"<{kind.code}")
    payload = bytearray(math.prod(sparse.dims) * width)
    for position, value in zip(_positions(sparse), values.values, strict=True):
        struct.pack_into(f"<{kind.code}", payload, position * width, value)
    dense.name = sparse.values.name
    dense.data_type = kind.number
    dense.dims.extend(sparse.dims)
    dense.raw_data = bytes(payload)


def _positions(sparse: Any) -> Iterator[int]:
    """Yield the row-major position of each value, from flat indices or from coordinates."""
    indices = read_tensor(sparse.indices)
    assert indices is not None
    if len(indices.dims) == 1:
        yield from indices.values
        return
    rank = len(sparse.dims)
    strides = [*accumulate(reversed(sparse.dims[1:]), lambda a, b: a * b, initial=1)][::-1]
    for start in range(0, len(indices.values), rank):
        coordinates = indices.values[start : start + rank]
        yield sum(c * stride for c, stride in zip(coordinates, strides, strict=True))
