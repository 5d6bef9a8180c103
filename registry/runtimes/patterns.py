"""Patterns of nodes that an optimizer replaces together."""

from __future__ import annotations

from dataclasses import field
from functools import cache
from typing import Annotated

from opshift.model.errors import InvalidModel
from opshift.model.messages import GraphProto
from opshift.model.node import Node
from opshift.model.onnx_text.read import read_text
from opshift.registry.attribute_values import Scalar
from opshift.registry.record import Checked, Record


@cache
def pattern_nodes(text: str) -> tuple[Node, ...]:
    """Return the nodes of a pattern in ONNX's syntax.

    Raises:
        InvalidModel: the text does not consist of nodes.
    """
    graph = read_text(text)
    if not isinstance(graph, GraphProto):
        raise InvalidModel("the text is a model", remedy="write only its nodes")
    return tuple(map(Node.from_proto, graph.node))


def _nodes_text(text: object) -> object:
    if isinstance(text, str):
        try:
            pattern_nodes(text)
        except InvalidModel as error:
            raise ValueError(f"{error.reason}; {error.remedy}") from error
    return text


AttributeValue = Scalar | tuple[Scalar, ...] | None


class Pattern(Record):
    """Nodes that an optimizer replaces together, the node with the condition last.

    Names stand for any values, equal names for the same value. Nodes may have more inputs than the pattern
    lists; the last one that it lists for a variadic operator stands for these, too.
    """

    nodes: Annotated[str, Checked(_nodes_text)]
    """The nodes in ONNX's syntax."""
    attributes: dict[str, tuple[AttributeValue, ...]] = field(default_factory=dict)
    """Values of attributes of all nodes that may have them; `null` for an absent one."""
    shared: tuple[str, ...] = ()
    """Values between the nodes that other nodes may read, too."""
    scalars: tuple[str, ...] = ()
    """Inputs of the nodes that must be constants with one element."""
    skips: tuple[str, ...] = ()
    """Operators of the default domain whose nodes may stand between those of the pattern."""
