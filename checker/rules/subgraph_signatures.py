"""Rules for the subgraphs of If, Loop, Scan and SequenceMap and the signatures of their nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from opshift.checker.checked_nodes import Attribute
from opshift.checker.checked_values import Typed
from opshift.checker.findings import ERROR
from opshift.checker.rule_table import Flaws, rule
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.registry.models import OperatorVersion

SOURCE = "the definitions of If, Loop, Scan and SequenceMap"


class Body(NamedTuple):
    """Correspondence between the signatures of a node and its subgraph.

    Attributes:
        skipped_inputs: the number of leading node inputs that the subgraph does not receive; `None` if it
            receives no node input.
        extra_inputs: the number of subgraph inputs that precede the values of node inputs.
        extra_outputs: the number of leading subgraph outputs that are not outputs of the node.
        is_exact: whether the subgraph may not have further outputs.
        is_elementwise: whether the subgraph processes elements of the node's sequences.
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
"""Scan-8; its first input holds the lengths of the sequences."""


@rule("body.inputs", ERROR, source=SOURCE, remedy="declare the inputs that the operator passes to the graph")
def inputs(attribute: Attribute) -> Flaws:
    """A subgraph must have the inputs that its node passes."""
    body = _body(attribute.node.operator, attribute.proto)
    if body is not None:
        passed = 0 if body.unread is None else max(len(attribute.node.inputs) - body.unread, 0)
        actual, expected = len(_parameters(attribute.proto.g)), passed + body.added
        if actual != expected:
            yield f"the graph has {actual} inputs; the node passes {expected}"


@rule("body.outputs", ERROR, source=SOURCE, remedy="return a value for each output of the node")
def outputs(attribute: Attribute) -> Flaws:
    """A subgraph must return the values that its node outputs."""
    body = _body(attribute.node.operator, attribute.proto)
    if body is not None:
        actual, expected = len(attribute.proto.g.output), len(attribute.node.outputs) + body.kept
        if actual < expected or (body.is_exact and actual > expected):
            yield f"the graph has {actual} outputs; the node requires {expected}"


@rule("type.body-input", ERROR, source=SOURCE, remedy="cast the value, or correct the declared type")
def body_input(typed: Typed) -> Flaws:
    """The inputs of a subgraph must declare the element types of the values that the node passes."""
    for name, body, graph in _bodies(typed):
        if body.unread is not None and not body.is_elementwise:
            inner = typed.node.container.scope.child(graph)
            for passed, value in zip(typed.inputs[body.unread :], graph.input[body.added :], strict=False):
                declared = inner.element_type(value.name)
                if passed and declared and passed != declared:
                    yield f"{name} declares its input {value.name!r} as {declared}, but receives {passed}"


@rule("type.body-output", ERROR, source=SOURCE, remedy="cast the value in the graph")
def body_output(typed: Typed) -> Flaws:
    """The outputs of a subgraph must have the element types of the node's outputs."""
    for name, body, graph in _bodies(typed):
        if not body.is_elementwise:
            inner = typed.node.container.scope.child(graph)
            for expected, value in zip(typed.outputs, graph.output[body.kept :], strict=False):
                actual = inner.element_type(value.name)
                if actual and expected and actual != expected:
                    yield f"{name} returns {value.name!r} as {actual}; the output of the node is {expected}"


def _bodies(typed: Typed) -> Iterator[tuple[str, Body, Any]]:
    for attribute in typed.node.proto.attribute:
        body = _body(typed.operator, attribute)
        if body is not None:
            yield attribute.name, body, attribute.g


def _body(operator: OperatorVersion | None, attribute: Any) -> Body | None:
    """Return the entry for the graph in an attribute; `None` if no rule applies to it."""
    if operator is None or operator.domain != DEFAULT_DOMAIN or not attribute.HasField("g"):
        return None
    is_batched = operator.name == "Scan" and operator.since_version == 8
    return BATCHED_SCAN if is_batched else BODIES.get((operator.name, attribute.name))


def _parameters(graph: Any) -> list[str]:
    """Return the inputs that the node passes: those without an initializer."""
    initialized = {tensor.name for tensor in graph.initializer}
    return [value.name for value in graph.input if value.name not in initialized]
