"""Rules for the types of what a node reads and makes, stated or inferred."""

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
CAST = "cast the value, or correct the type that is stated of it"


class Bound(NamedTuple):
    """A value of known type, and the parameter that it stands for."""

    formal: Parameter
    name: str
    type: str


class Typed:
    """A node whose operator is known, with the types of its values as far as they are known.

    Attributes:
        inputs, outputs: an element type such as `float16`, a type string, or `None` if it is not known.
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
        """What the verdict on it depends on; `None` if that is more than the types."""
        if not all(each.homogeneous and not each.type_attribute for each in self.operator.outputs):
            return None
        return (id(self.operator), *self.inputs, "->", *self.outputs)

    def bound(self) -> tuple[list[Bound], list[Bound]]:
        """The inputs and the outputs whose types are known."""
        node, operator = self.node, self.operator
        inputs = list(_bound(operator.inputs, node.inputs, self.inputs))
        return inputs, list(_bound(operator.outputs, node.outputs, self.outputs))


@rule("type.input", ERROR, source=SIGNATURE, remedy=CAST)
def input_type(typed: Typed) -> Flaws:
    """What a node reads has a type that its operator takes."""
    for formal, name, found in typed.bound()[0]:
        if found not in typed.operator.types_of(formal):
            yield f"input {formal.name!r}, {name!r}, is {found}, which {typed.operator.id} does not take"


@rule("type.output", ERROR, source=SIGNATURE, remedy="correct the type that is stated of the value")
def output_type(typed: Typed) -> Flaws:
    """What a node makes has a type that its operator makes."""
    if not _is_old_constant(typed.operator):
        yield from _odd_outputs(typed)


@rule("type.constant", WARNING, source=SIGNATURE, remedy="make it an initializer, or raise the opset to 9")
def old_constant(typed: Typed) -> Flaws:
    """Below opset 9 a Constant makes floating point only; exporters and runtimes go further."""
    if _is_old_constant(typed.operator):
        yield from _odd_outputs(typed)


@rule("type.variable", ERROR, source=SIGNATURE, remedy=CAST)
def variable(typed: Typed) -> Flaws:
    """Values that stand for one type variable of the operator have one type."""
    first: dict[str, Bound] = {}
    inputs, outputs = typed.bound()
    for each in (*inputs, *outputs):
        if each.formal.homogeneous and each.formal.type in typed.operator.type_constraints:
            other = first.setdefault(each.formal.type, each)
            if other.type != each.type:
                yield (
                    f"{other.name!r} is {other.type} and {each.name!r} is {each.type};"
                    f" both stand for {each.formal.type} of {typed.operator.id}"
                )


@rule("type.named", ERROR, source=SIGNATURE, remedy="correct the attribute, or the type that is stated")
def named(typed: Typed) -> Flaws:
    """An output whose type an attribute names has that type."""
    formals = [each for each in typed.operator.outputs if each.type_attribute]
    if formals:
        view = View.of(typed.node.proto)
        inferred = infer_types(view, typed.operator, typed.node.container.scope)
        rows = zip(typed.operator.outputs, typed.node.outputs, typed.outputs, inferred, strict=False)
        for formal, name, found, wanted in rows:
            if formal in formals and found and wanted and found != wanted:
                yield f"{name!r} is {found}; attribute {formal.type_attribute!r} makes it {wanted}"


def _odd_outputs(typed: Typed) -> Iterator[str]:
    for formal, name, found in typed.bound()[1]:
        if found not in typed.operator.types_of(formal):
            yield f"output {formal.name!r}, {name!r}, is {found}, which {typed.operator.id} does not make"


def _is_old_constant(operator: OperatorVersion) -> bool:
    return (operator.domain, operator.name) == (DEFAULT_DOMAIN, "Constant") and operator.since_version < 9


def _bound(
    formals: Sequence[Parameter], names: Sequence[str], types: Sequence[str | None]
) -> Iterator[Bound]:
    last = len(formals) - 1
    for position, (name, found) in enumerate(zip(names, types, strict=True)):
        if found is not None and last >= 0:
            yield Bound(formals[min(position, last)], name, _spelled(found))


def _spelled(found: str) -> str:
    """An element type as the type of a tensor; other types as they are."""
    return found if "(" in found else f"tensor({found})"
