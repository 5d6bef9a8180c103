"""Rules for the graphs of If, Loop, Scan and SequenceMap against the nodes that run them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from opshift.converter.legality.findings import ERROR
from opshift.converter.legality.rules import Flaws, rule
from opshift.converter.legality.subjects import Attribute
from opshift.converter.legality.typed import Typed
from opshift.registry.models import OperatorVersion
from opshift.registry.names import DEFAULT_DOMAIN

SOURCE = "the definitions of If, Loop, Scan and SequenceMap"


class Body(NamedTuple):
    """How a graph belongs to its node.

    Attributes:
        unread: how many of the node's first inputs the graph is not given; `None` if it is given none.
        added: how many inputs it gets before those.
        kept: how many of its first outputs are none of the node's.
        is_exact: whether it returns no more than those and the node's outputs.
        is_elementwise: whether it gets and returns elements of what the node does.
    """

    unread: int | None = 0
    added: int = 0
    kept: int = 0
    is_exact: bool = True
    is_elementwise: bool = False


BODIES = {
    ("If", "then_branch"): Body(unread=None),
    ("If", "else_branch"): Body(unread=None),
    ("Loop", "body"): Body(unread=2, added=2, kept=1, is_exact=False),
    ("Scan", "body"): Body(is_exact=False),
    ("SequenceMap", "body"): Body(is_elementwise=True),
}
BATCHED_SCAN = Body(unread=1, is_exact=False)
"""Scan-8 has the lengths of its sequences first."""


@rule("body.inputs", ERROR, source=SOURCE, remedy="give the graph the inputs that the operator gives it")
def inputs(attribute: Attribute) -> Flaws:
    """The graph of a node has the inputs that the node gives it."""
    body = _body(attribute.node.operator, attribute.proto)
    if body is not None:
        given = 0 if body.unread is None else max(len(attribute.node.inputs) - body.unread, 0)
        found, wanted = len(_parameters(attribute.proto.g)), given + body.added
        if found != wanted:
            yield f"the graph has {found} inputs; the node gives it {wanted}"


@rule("body.outputs", ERROR, source=SOURCE, remedy="return what the node is to make")
def outputs(attribute: Attribute) -> Flaws:
    """The graph of a node returns what the node makes."""
    body = _body(attribute.node.operator, attribute.proto)
    if body is not None:
        found, wanted = len(attribute.proto.g.output), len(attribute.node.outputs) + body.kept
        if found < wanted or (body.is_exact and found > wanted):
            yield f"the graph has {found} outputs; the node needs {wanted}"


@rule("type.body-input", ERROR, source=SOURCE, remedy="cast the value, or correct the type that is stated")
def body_input(typed: Typed) -> Flaws:
    """The graph of a node states the types of what the node gives it."""
    for name, body, graph in _bodies(typed):
        if body.unread is not None and not body.is_elementwise:
            inner = typed.node.container.scope.child(graph)
            for found, value in zip(typed.inputs[body.unread :], graph.input[body.added :], strict=False):
                wanted = inner.element_type(value.name)
                if found and wanted and found != wanted:
                    yield f"{name} takes {value.name!r} as {wanted}, and is given {found}"


@rule("type.body-output", ERROR, source=SOURCE, remedy="cast the value in the graph")
def body_output(typed: Typed) -> Flaws:
    """The graphs of a node return values of the types that the node makes."""
    for name, body, graph in _bodies(typed):
        if not body.is_elementwise:
            inner = typed.node.container.scope.child(graph)
            for wanted, value in zip(typed.outputs, graph.output[body.kept :], strict=False):
                found = inner.element_type(value.name)
                if found and wanted and found != wanted:
                    yield f"{name} returns {value.name!r}, {found}, where the node makes {wanted}"


def _bodies(typed: Typed) -> Iterator[tuple[str, Body, Any]]:
    for attribute in typed.node.proto.attribute:
        body = _body(typed.operator, attribute)
        if body is not None:
            yield attribute.name, body, attribute.g


def _body(operator: OperatorVersion | None, attribute: Any) -> Body | None:
    """How the graph in an attribute belongs to a node of the operator; `None` if there is none."""
    if operator is None or operator.domain != DEFAULT_DOMAIN or not attribute.HasField("g"):
        return None
    is_batched = operator.name == "Scan" and operator.since_version == 8
    return BATCHED_SCAN if is_batched else BODIES.get((operator.name, attribute.name))


def _parameters(graph: Any) -> list[str]:
    """The inputs that the node gives: those without an initializer."""
    initialized = {each.name for each in graph.initializer}
    return [each.name for each in graph.input if each.name not in initialized]
