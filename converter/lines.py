"""Nodes as they were read: to ask a message takes longer than what is done with the answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Line = tuple[int, str, str, tuple[str, ...], tuple[str, ...]]
"""A node's position, its domain and op_type, and the names of its inputs and outputs.

The message itself is not kept: protobuf finds each thing that it hands out in a table of all that are held,
and slows down when these are many.
"""


def read_line(position: int, node: Any) -> Line:
    """A NodeProto at a position."""
    return position, node.domain, node.op_type, tuple(node.input), tuple(node.output)


def read_lines(container: Any) -> Iterator[Line]:
    """The nodes of a GraphProto or FunctionProto, one after the other."""
    once: dict[str, str] = {}
    """Each op_type, to hold none more than once."""
    # A slice of a repeated field is read at twice the speed of the field itself.
    for position, node in enumerate(container.node):
        op_type = node.op_type
        op_type = once.setdefault(op_type, op_type)
        yield position, node.domain, op_type, tuple(node.input[:]), tuple(node.output[:])
