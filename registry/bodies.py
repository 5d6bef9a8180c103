"""What is wrong with a function body by itself; whether its nodes exist only a registry tells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from opshift.registry.function_bodies import Body, BodyNode, FromAttribute
from opshift.registry.models import OperatorVersion


class BodyFlaw(NamedTuple):
    """One thing that is wrong; the node is counted from 0, and `None` if it is the whole body."""

    node: int | None
    reason: str


def body_flaws(version: OperatorVersion) -> Iterator[BodyFlaw]:
    """Names that nothing gives, outputs that nothing makes, attributes and domains that are not declared."""
    if version.body is None:
        return
    yield from _lists(version)
    known = {formal.name for formal in version.inputs}
    for position, node in enumerate(version.body.nodes):
        yield from (BodyFlaw(position, reason) for reason in _of_node(node, known, version, version.body))
        known.update(filter(None, node.outputs))
    made = {name for node in version.body.nodes for name in node.outputs}
    for formal in version.outputs:
        if formal.name not in made:
            yield BodyFlaw(None, f"no node makes the output {formal.name!r}")


def _lists(version: OperatorVersion) -> Iterator[BodyFlaw]:
    for formal in (*version.inputs, *version.outputs):
        if formal.option == "variadic":
            yield BodyFlaw(None, f"a body cannot name the values of {formal.name!r}, of which there are many")


def _of_node(node: BodyNode, known: set[str], version: OperatorVersion, body: Body) -> Iterator[str]:
    if node.domain not in body.opset_imports:
        yield f"{node.op_type} is of {node.domain}, for which opset_imports states no opset"
    for name in node.inputs:
        if name and name not in known:
            yield f"{node.op_type} reads {name!r}, which nothing before it makes"
    for name in node.outputs:
        if name and name in known:
            yield f"{node.op_type} makes {name!r}, which is there already"
    for value in node.attributes.values():
        if isinstance(value, FromAttribute) and value.attribute not in version.attributes:
            yield f"{node.op_type} takes the attribute {value.attribute!r}, which the operator does not have"
