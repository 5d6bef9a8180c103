"""Names that emitted nodes define and read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from opshift.converter.reversible.holding import names_read_in
from opshift.converter.rewrite import Written, WrittenGraph


def outputs_of(written: Iterable[Written]) -> tuple[str, ...]:
    """Return the first named output of each node, empty for nodes without one."""
    return tuple(next(filter(None, each.node.outputs), "") for each in written)


def names_read_by(written: Iterable[Written]) -> Iterator[str]:
    """Yield the names that emitted nodes and their subgraphs read."""
    for each in written:
        yield from each.node.inputs
        for value in each.node.attributes.values():
            yield from _names_read_in_attribute(value)


def _names_read_in_attribute(value: Any) -> Iterator[str]:
    # subgraphs are emitted graphs, or attributes of the model that were passed on unchanged
    if isinstance(value, WrittenGraph):
        yield from names_read_by((*value.nodes, *value.after))
        yield from (output.name for output in value.graph.outputs)
        value = value.graph.inner
    if hasattr(value, "ref_attr_name"):
        for graph in (*([value.g] if value.HasField("g") else []), *value.graphs):
            yield from names_read_in(graph)
