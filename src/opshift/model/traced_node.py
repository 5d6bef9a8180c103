"""View of a node that records which attribute values its steps read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from opshift.model.node import Node


class Move(NamedTuple):
    """Attribute that a step moved to a constant: its name, and the rank of the constant for a number."""

    attribute: str
    constant: str
    rank: int | None


class Comparison(NamedTuple):
    """Comparison of an attribute with a value by a step, with the result."""

    attribute: str
    value: object
    is_same: bool


class AttributeTrace:
    """Record of the attribute values that the steps of a node read, moved and compared.

    An attribute that a step drops, moves or compares is not read: the same rewrite serves nodes with other
    values, if all comparisons have the same results.
    """

    def __init__(self) -> None:
        self.reads: set[str] = set()
        self.moves: list[Move] = []
        self.comparisons: list[Comparison] = []


class TracedNode(Node):
    """Node that records the use of its attribute values, but not tests for the presence of an attribute."""

    __slots__ = ("_raw", "trace")

    def __init__(self, node: Node, raw: Mapping[str, Any], trace: AttributeTrace) -> None:
        attributes = _TracedAttributes(raw, trace.reads)
        super().__init__(node.op_type, node.inputs, node.outputs, attributes, node.domain, node._proto)
        self._raw = raw
        self.trace = trace

    def with_(self, **changes: Any) -> Node:
        """Return a copy with some fields replaced, which records into the same trace."""
        attributes = changes.setdefault("attributes", self._raw)
        raw = attributes._raw if isinstance(attributes, _TracedAttributes) else attributes
        return TracedNode(super().with_(**changes), raw, self.trace)

    def without(self, *names: str) -> dict[str, Any]:
        """Return the attributes except those named, unread."""
        return {name: value for name, value in self._raw.items() if name not in names}

    def unread_attribute(self, name: str) -> Any:
        """Return an attribute without recording a read."""
        return self._raw.get(name)


class _TracedAttributes(Mapping[str, Any]):
    """Attributes by name. Reads of unchanged attributes of the model are recorded."""

    def __init__(self, raw: Mapping[str, Any], reads: set[str]) -> None:
        self._raw = raw
        self._reads = reads

    def __getitem__(self, name: str) -> Any:
        found = self._raw[name]
        if hasattr(found, "ref_attr_name"):
            self._reads.add(found.name)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._raw

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)
