"""Nodes as they were read: to ask a message takes longer than what is done with the answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Line = tuple[Any, str, str, tuple[str, ...], tuple[str, ...]]
"""A NodeProto, its domain and op_type, and the names of its inputs and outputs."""


def read_lines(container: Any) -> Iterator[Line]:
    """The nodes of a GraphProto or FunctionProto, one after the other."""
    once: dict[str, str] = {}
    """Each op_type, to hold none more than once."""
    # A slice of a repeated field is read at twice the speed of the field itself.
    for node in container.node:
        op_type = node.op_type
        op_type = once.setdefault(op_type, op_type)
        yield node, node.domain, op_type, tuple(node.input[:]), tuple(node.output[:])
