"""Check a function body against the signature of its operator.

The operators of its nodes are not looked up, because that takes a registry.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from opshift.registry.function_bodies import Body, BodyNode, FromAttribute
from opshift.registry.models import OperatorVersion


class BodyFlaw(NamedTuple):
    """A problem in a function body; `node` is a 0-based index, or `None` if the whole body is concerned."""

    node: int | None
    reason: str


def body_flaws(version: OperatorVersion) -> Iterator[BodyFlaw]:
    """Yield the problems in the function body of an operator version.

    These are reads of undefined values, values defined twice, outputs without a producer, variadic
    parameters, domains without an opset import and references to undeclared attributes.
    """
    if version.body is None:
        return
    yield from _variadic_problems(version)
    defined = {formal.name for formal in version.inputs}
    for position, node in enumerate(version.body.nodes):
        yield from (
            BodyFlaw(position, reason) for reason in _node_problems(node, defined, version, version.body)
        )
        defined.update(filter(None, node.outputs))
    produced = {name for node in version.body.nodes for name in node.outputs}
    for formal in version.outputs:
        if formal.name not in produced:
            yield BodyFlaw(None, f"no node produces the output {formal.name!r}")


def _variadic_problems(version: OperatorVersion) -> Iterator[BodyFlaw]:
    for formal in (*version.inputs, *version.outputs):
        if formal.option == "variadic":
            yield BodyFlaw(None, f"{formal.name!r} is variadic, and a function body cannot name its values")


def _node_problems(node: BodyNode, defined: set[str], version: OperatorVersion, body: Body) -> Iterator[str]:
    if node.domain not in body.opset_imports:
        yield f"{node.op_type} belongs to domain {node.domain!r}, which is missing from opset_imports"
    for name in node.inputs:
        if name and name not in defined:
            yield f"{node.op_type} reads {name!r}, which no input or earlier node defines"
    for name in node.outputs:
        if name and name in defined:
            yield f"{node.op_type} produces {name!r}, which is already defined"
    for value in node.attributes.values():
        if isinstance(value, FromAttribute) and value.attribute not in version.attributes:
            yield f"{node.op_type} refers to {value.attribute!r}, which is not an attribute of the operator"
