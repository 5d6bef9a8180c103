"""Metadata of graphs, nodes, values, tensors and functions (IR version 10).

Models have metadata in all IR versions: the entries move there, with keys that name their origin.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from opshift.converter.ir.contents import Contents
from opshift.converter.ir.use import Use


def find(contents: Contents) -> Iterator[Use]:
    """Yield the first message with metadata: all metadata can be moved, so that one place is enough."""
    yield from (Use("metadata", place) for place, _ in islice(_described(contents), 1))


def move(contents: Contents) -> None:
    """Move every entry to the model's metadata, with a key such as `graph, node 'conv1': namespace`."""
    props = contents.model.metadata_props
    used_keys = {entry.key for entry in props}
    for place, message in list(_described(contents)):
        for entry in message.metadata_props:
            add_entry(props, used_keys, f"{place}: {entry.key}", entry.value)
        message.ClearField("metadata_props")


def drop(contents: Contents) -> None:
    """Remove all metadata except the model's own."""
    for _, message in list(_described(contents)):
        message.ClearField("metadata_props")


def add_entry(props: Any, used_keys: set[str], key: str, value: str) -> None:
    """Add an entry to the model's metadata, with a number after the key if the key is in use.

    Args:
        props: the model's `metadata_props`.
        used_keys: the keys in use; the new key is added.
        key: the preferred key.
        value: the value of the entry.
    """
    unique_key, number = key, 1
    while unique_key in used_keys:
        number += 1
        unique_key = f"{key} ({number})"
    used_keys.add(unique_key)
    props.add(key=unique_key, value=value)


def _described(contents: Contents) -> Iterator[tuple[str, Any]]:
    """Yield the place of each message with metadata in the model, and the message."""
    yield from ((node.place, node.proto) for node in contents.described)
    # Message classes of an older `onnx` have no such field.
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
