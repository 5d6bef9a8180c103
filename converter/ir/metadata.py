"""Metadata of graphs, nodes, values, tensors and functions, from IR version 10 on.

The model's own metadata is older, so the entries move there, each under the name of what it belongs to.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from opshift.converter.ir.contents import Contents
from opshift.converter.ir.use import Use


def find(contents: Contents) -> Iterator[Use]:
    """The first message with metadata."""
    yield from (Use("metadata", place) for place, _ in islice(_described(contents), 1))


def move(contents: Contents) -> None:
    """Move every entry to the model's metadata, as `graph, node 'conv1': namespace`."""
    props = contents.model.metadata_props
    taken = {each.key for each in props}
    for place, message in list(_described(contents)):
        for entry in message.metadata_props:
            add_entry(props, taken, f"{place}: {entry.key}", entry.value)
        message.ClearField("metadata_props")


def drop(contents: Contents) -> None:
    """Take all of it out."""
    for _, message in list(_described(contents)):
        message.ClearField("metadata_props")


def add_entry(props: Any, taken: set[str], key: str, value: str) -> None:
    """Add an entry under a key that is not taken: a key occurs once."""
    free, number = key, 1
    while free in taken:
        number += 1
        free = f"{key} ({number})"
    taken.add(free)
    props.add(key=free, value=value)


def _described(contents: Contents) -> Iterator[tuple[str, Any]]:
    """Every message below the model that has metadata, and its place."""
    yield from ((each.place, each.proto) for each in contents.described)
    if not hasattr(contents.model.graph, "metadata_props"):
        return
    for path, container in (*contents.graphs, *contents.functions):
        if container.metadata_props:
            yield path, container
    for path, value in contents.values:
        if value.metadata_props:
            yield f"{path}, value {value.name!r}", value
    for holder, tensor in contents.tensors:
        if tensor.metadata_props:
            yield holder.place, tensor
