"""Node records: the fields of a NodeProto, read once, because each access to a protobuf field is slow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Line = tuple[int, str, str, tuple[str, ...], tuple[str, ...]]
"""Record of a node: its position, domain, op_type, and the names of its inputs and outputs.

It does not hold the message: protobuf keeps a table of all messages that Python code references, and slows
down when it grows large.
"""


def read_line(position: int, node: Any) -> Line:
    """Return the record of a NodeProto at a position."""
    return position, node.domain, node.op_type, tuple(node.input), tuple(node.output)


def read_lines(container: Any) -> Iterator[Line]:
    """Yield a record for each node of a GraphProto or FunctionProto, in order."""
    interned: dict[str, str] = {}
    """Interned op_types: each access returns a new string, and a model repeats few of them many times."""
    # Reading a slice of a repeated field is twice as fast as iterating over the field.
    for position, node in enumerate(container.node):
        op_type = node.op_type
        op_type = interned.setdefault(op_type, op_type)
        yield position, node.domain, op_type, tuple(node.input[:]), tuple(node.output[:])
