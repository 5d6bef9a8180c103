"""Rules for the declared and inferred types of the inputs and outputs of nodes."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

from opshift.adapters.node import Node as View
from opshift.converter.inference import infer_types
from opshift.converter.legality.findings import ERROR, WARNING
from opshift.converter.legality.rules import Flaws, rule
from opshift.converter.legality.subjects import Node
from opshift.registry.models import OperatorVersion, Parameter
from opshift.registry.names import DEFAULT_DOMAIN

SIGNATURE = "IR: Nodes; the operator's definition"
CAST = "cast the value, or correct its declared type"


class Bound(NamedTuple):
    """A value of known type, and the formal parameter that it is bound to."""

    formal: Parameter
    name: str
    type: str


class Typed:
    """A node of a known operator, with the known types of its inputs and outputs.

    Attributes:
        inputs, outputs: an element type such as `float16`, a type string, or `None` if the type is unknown.
    """

    def __init__(self, node: Node, operator: OperatorVersion) -> None:
        element_type = node.container.scope.element_type
        self.node = node
        self.operator = operator
        self.inputs = [element_type(name) if name else None for name in node.inputs]
        self.outputs = [element_type(name) if name else None for name in node.outputs]

    @property
    def place(self) -> str:
        """The graph or function, and the node in it."""
        return self.node.place

    @property
    def form(self) -> Hashable:
        """Cache key: operator and types; `None` if the rules read more than these."""
        # The rules for heterogeneous outputs and type attributes also read subgraphs and attributes.
        if not all(output.homogeneous and not output.type_attribute for output in self.operator.outputs):
            return None
        return (id(self.operator), *self.inputs, "->", *self.outputs)

    def bound(self) -> tuple[list[Bound], list[Bound]]:
        """Return the inputs and the outputs of known type, bound to the operator's parameters."""
        node, operator = self.node, self.operator
        inputs = list(_bind(operator.inputs, node.inputs, self.inputs))
        return inputs, list(_bind(operator.outputs, node.outputs, self.outputs))


@rule("type.input", ERROR, source=SIGNATURE, remedy=CAST)
def input_type(typed: Typed) -> Flaws:
    """An input of a node must have a type that its operator accepts."""
    for formal, name, actual in typed.bound()[0]:
        if actual not in typed.operator.types_of(formal):
            yield f"input {formal.name!r}, {name!r}, is {actual}, which {typed.operator.id} does not accept"


@rule("type.output", ERROR, source=SIGNATURE, remedy="correct the declared type of the value")
def output_type(typed: Typed) -> Flaws:
    """An output of a node must have a type that its operator can produce."""
    if not _is_old_constant(typed.operator):
        yield from _invalid_outputs(typed)


@rule("type.constant", WARNING, source=SIGNATURE, remedy="make it an initializer, or raise the opset to 9")
def old_constant(typed: Typed) -> Flaws:
    """A Constant should be floating-point before opset 9; exporters and runtimes support more types."""
    if _is_old_constant(typed.operator):
        yield from _invalid_outputs(typed)


@rule("type.variable", ERROR, source=SIGNATURE, remedy=CAST)
def variable(typed: Typed) -> Flaws:
    """All values bound to a type variable of the operator must have the same type."""
    first: dict[str, Bound] = {}
    inputs, outputs = typed.bound()
    for value in (*inputs, *outputs):
        if value.formal.homogeneous and value.formal.type in typed.operator.type_constraints:
            other = first.setdefault(value.formal.type, value)
            if other.type != value.type:
                yield (
                    f"{other.name!r} is {other.type} and {value.name!r} is {value.type};"
                    f" {value.formal.type} of {typed.operator.id} requires the same type for both"
                )


@rule("type.named", ERROR, source=SIGNATURE, remedy="correct the attribute, or the declared type")
def named(typed: Typed) -> Flaws:
    """An output must have the type that an attribute of its node specifies."""
    formals = [output for output in typed.operator.outputs if output.type_attribute]
    if formals:
        view = View.of(typed.node.proto)
        inferred = infer_types(view, typed.operator, typed.node.container.scope)
        rows = zip(typed.operator.outputs, typed.node.outputs, typed.outputs, inferred, strict=False)
        for formal, name, actual, expected in rows:
            if formal in formals and actual and expected and actual != expected:
                yield f"{name!r} is {actual}; attribute {formal.type_attribute!r} specifies {expected}"


def _invalid_outputs(typed: Typed) -> Iterator[str]:
    for formal, name, actual in typed.bound()[1]:
        if actual not in typed.operator.types_of(formal):
            yield f"output {formal.name!r}, {name!r}, is {actual}, which {typed.operator.id} cannot produce"


def _is_old_constant(operator: OperatorVersion) -> bool:
    return (operator.domain, operator.name) == (DEFAULT_DOMAIN, "Constant") and operator.since_version < 9


def _bind(formals: Sequence[Parameter], names: Sequence[str], types: Sequence[str | None]) -> Iterator[Bound]:
    last = len(formals) - 1
    for position, (name, value_type) in enumerate(zip(names, types, strict=True)):
        if value_type is not None and last >= 0:
            # Only the last parameter can be variadic; it is bound to all remaining values.
            yield Bound(formals[min(position, last)], name, _type_string(value_type))


def _type_string(value_type: str) -> str:
    """Return the type string of a tensor for an element type; type strings are unchanged."""
    return value_type if "(" in value_type else f"tensor({value_type})"
