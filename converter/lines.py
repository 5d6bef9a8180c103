"""The nodes of a model, each read once: to ask a message takes longer than what is done with the answer."""

from __future__ import annotations

from typing import Any

Line = tuple[Any, str, str, list[str], list[str]]
"""A NodeProto, its domain and op_type, and the names of its inputs and outputs."""


class Lines:
    """Of each graph and function that was asked for, the nodes in order.

    It keeps what they are in, and is for as long as nothing in there changes.
    """

    def __init__(self) -> None:
        self._found: dict[int, tuple[Any, list[Line]]] = {}

    def of(self, container: Any) -> list[Line]:
        """The nodes of a GraphProto or FunctionProto."""
        found = self._found.get(id(container))
        if found is None:
            # A slice of a repeated field is read at twice the speed of the field itself.
            lines = [
                (node, node.domain, node.op_type, node.input[:], node.output[:]) for node in container.node
            ]
            found = self._found[id(container)] = (container, lines)
        return found[1]
