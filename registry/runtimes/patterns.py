"""Patterns of nodes that an optimizer replaces together."""

from __future__ import annotations

from dataclasses import field
from functools import cache
from typing import Annotated

from opshift.model.errors import InvalidModel
from opshift.model.node import Node
from opshift.registry.attribute_values import Scalar
from opshift.registry.record import Checked, Record
from opshift.registry.runtimes.field_types import Sizes, Types


@cache
def pattern_nodes(text: str) -> tuple[Node, ...]:
    """Return the nodes of a pattern in ONNX's syntax.

    Raises:
        InvalidModel: the text does not consist of nodes.
    """
    # most uses of runtimes read no pattern, and need no protobuf
    from opshift.model.messages import GraphProto
    from opshift.model.onnx_text.read import read_text

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
    """Nodes that an optimizer replaces together.

    Names stand for any values, equal names for the same value. Nodes may have more inputs than the pattern
    lists; the last one that it lists for a variadic operator stands for these, too.
    """

    nodes: Annotated[str, Checked(_nodes_text)]
    """The nodes in ONNX's syntax."""
    attributes: dict[str, tuple[AttributeValue, ...]] = field(default_factory=dict)
    """Values of attributes of all nodes that may have them; `null` for an absent one."""
    node: str = ""
    """The output of the node with the condition that the last node reads; by default it is the last node."""
    ranks: dict[str, Sizes] = field(default_factory=dict)
    """Ranks of inputs of the nodes."""
    types: dict[str, Types] = field(default_factory=dict)
    """Types of inputs of the nodes."""
    shared: tuple[str, ...] = ()
    """Values between the nodes that other nodes may read, too."""
    scalars: tuple[str, ...] = ()
    """Inputs of the nodes that must be constants with one element."""
    skips: tuple[str, ...] = ()
    """Operators of the default domain that may be between the nodes of the pattern."""
