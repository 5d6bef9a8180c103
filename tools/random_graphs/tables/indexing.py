"""Operators that gather or scatter at indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from random_graphs.draft import Choice, Draft, TensorSpec
from random_graphs.tables.layout import axis
from random_graphs.values import Shape


def _random_indices(n: Draft, shape: Shape, size: int, signed: bool) -> Any:
    return n.graph.random.integers(-size if signed else 0, max(size, 1), shape)


def indices(n: Draft) -> Any:
    """Choose indices along the axis, of any shape."""
    shape = tuple(n.number(1, 3) for _ in range(n.number(0, 2)))
    return _random_indices(n, shape, n.shape[axis(n)], n.graph.opset >= 11 and n.chance(50))


def element_indices(n: Draft) -> Any:
    """Choose an index for each of some elements; scattered positions are distinct."""
    position = axis(n) % n.rank
    shape = [n.number(1, size) if size else 0 for size in n.shape]
    signed = n.version.name != "Scatter" and n.chance(40)
    if n.version.name == "GatherElements":
        return _random_indices(n, tuple(shape), n.shape[position], signed)
    order = np.argsort(n.graph.random.random(n.shape), axis=position)
    selected = order[tuple(slice(0, size) for size in shape)]
    return selected - n.shape[position] if signed else selected


def index_tuples(n: Draft) -> Any:
    """Choose index tuples for leading axes after the batch."""
    batch = n.fact("batch", lambda: n.number(0, n.rank - 1) if _has_attribute(n, "batch_dims") else 0)
    depth = n.number(1, n.rank - batch)
    count = n.number(1, 3)
    columns = [
        _random_indices(n, (*n.shape[:batch], count), n.shape[batch + i], n.chance(40)) for i in range(depth)
    ]
    return np.stack(columns, -1)


def _has_attribute(n: Draft, name: str) -> bool:
    return name in n.version.attributes


def distinct_index_tuples(n: Draft) -> Any:
    """Choose distinct index tuples."""
    depth = n.number(1, n.rank)
    if 0 in n.shape[:depth]:
        return np.zeros((0, depth), np.int64)
    candidates = list(np.ndindex(*n.shape[:depth]))
    chosen = n.graph.draw.distinct(candidates, 1, 3)
    return np.array(chosen) - (np.array(n.shape[:depth]) if n.chance(30) else 0)


def updates(n: Draft) -> TensorSpec:
    """Return the shape of the updates, which depends on the indices and the data."""
    targets = n.inputs["indices"]
    assert targets is not None
    return TensorSpec((*targets.shape[:-1], *n.shape[targets.shape[-1] :]))


def condition(n: Draft) -> Any:
    """Draw the condition of a Compress, along an axis or for all elements."""
    compressed_axis = n.fact("compressed", lambda: n.one_of(None, axis(n)))
    size = int(np.prod(n.shape)) if compressed_axis is None else n.shape[compressed_axis]
    return n.graph.random.integers(0, 2, n.number(0, size)).astype(bool)


def one_hot_axis(n: Draft) -> int | None:
    found: int | None = n.one_of(None, n.number(-n.rank - 1, n.rank))
    return found


CHOICES: dict[str, Choice] = {
    "Gather.indices": indices,
    "GatherElements.indices": element_indices,
    "Scatter.indices": element_indices,
    "ScatterElements.indices": element_indices,
    "Scatter.updates": lambda n: TensorSpec(n.inputs["indices"].shape),  # type: ignore[union-attr]
    "ScatterElements.updates": lambda n: TensorSpec(n.inputs["indices"].shape),  # type: ignore[union-attr]
    "GatherND.indices": index_tuples,
    "GatherND.batch_dims": lambda n: n.facts["batch"],
    "ScatterND.indices": distinct_index_tuples,
    "ScatterND.updates": updates,
    "Compress.condition": condition,
    "Compress.axis": lambda n: n.facts["compressed"],
    "OneHot.indices": lambda n: n.graph.random.integers(-3 if n.since >= 11 else 0, 4, (2, n.number(1, 3))),
    "OneHot.depth": lambda n: n.one_of(3, [4]),
    "OneHot.values": lambda n: TensorSpec((2,)),
    "OneHot.axis": one_hot_axis,
    "TopK.k": lambda n: n.size(n.shape[axis(n)]),
    "TopK.K": lambda n: [n.size(n.shape[axis(n)])],
    "TopK.sorted": lambda n: n.one_of(None, 1),
    "Unique.axis": lambda n: n.one_of(None, axis(n)),
    "CumSum.axis": lambda n: n.one_of(axis(n), axis(n)),
    "CumProd.axis": axis,
    "TensorScatter.past_cache": lambda n: TensorSpec((2, 5, 2)),
    "TensorScatter.update": lambda n: TensorSpec((2, n.number(1, 3), 2)),
    "TensorScatter.write_indices": lambda n: n.one_of(None, [0, 2], [1, 1]),
    "TensorScatter.axis": lambda n: n.one_of(None, -2, 1),
    "MaxUnpool.X": lambda n: TensorSpec((1, 1, 2, 2)),
    "MaxUnpool.I": lambda n: [[[[0, 3], [8, 10]]]],
    "MaxUnpool.kernel_shape": lambda n: [2, 2],
    "MaxUnpool.strides": lambda n: [2, 2],
    "MaxUnpool.pads": lambda n: n.one_of(None, [0, 0, 0, 0]),
    "MaxUnpool.output_shape": lambda n: n.one_of(None, [1, 1, 4, 5]),
}
RANKS: dict[str, tuple[int, int]] = {
    "Gather": (1, 4), "GatherElements": (1, 3), "Scatter": (1, 3), "ScatterElements": (1, 3),
    "GatherND": (1, 4), "ScatterND": (1, 3), "Compress": (1, 3), "CumSum": (1, 3), "CumProd": (1, 3),
    "TopK": (1, 3), "Unique": (1, 3),
}  # fmt: skip
