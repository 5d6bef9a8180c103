"""What the nodes of a plan make and read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from opshift.converter.reversible.holding import names_read_in
from opshift.converter.rewrite import Written, WrittenGraph


def outputs_of(written: Iterable[Written]) -> tuple[str, ...]:
    """Of each node the first output that has a name, empty if it has none."""
    return tuple(next(filter(None, each.node.outputs), "") for each in written)


def names_read_by(written: Iterable[Written]) -> Iterator[str]:
    """The names that nodes read, themselves and in graphs that they hold."""
    for each in written:
        yield from each.node.inputs
        for value in each.node.attributes.values():
            yield from _read_within(value)


def _read_within(value: Any) -> Iterator[str]:
    if isinstance(value, WrittenGraph):
        yield from names_read_by((*value.nodes, *value.after))
        yield from (output.name for output in value.graph.outputs)
        value = value.graph.inner
    if hasattr(value, "ref_attr_name"):
        for graph in (*([value.g] if value.HasField("g") else []), *value.graphs):
            yield from names_read_in(graph)
