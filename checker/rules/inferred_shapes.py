"""Rules for the shapes that a model declares for the outputs of nodes."""

from collections.abc import Iterator
from typing import NamedTuple

from opshift.checker.containers import CheckedFunction, CheckedGraph
from opshift.checker.findings import ERROR, WARNING
from opshift.checker.rule_table import Problems, rule
from opshift.inference.symbols import Symbol
from opshift.model.types import Shape

SOURCE = "IR: Static tensor shapes"
REMEDY = "correct the declared shape, or remove it"


class Claim(NamedTuple):
    """Name of a value that a node produces, with its declared and its inferred shape."""

    name: str
    declared: Shape
    inferred: Shape


@rule("shape.inferred", ERROR, SOURCE, REMEDY)
def inferred_shape(container: CheckedGraph | CheckedFunction) -> Problems:
    """The declared shape of a value must not contradict the one that follows from its node."""
    for name, declared, inferred in _claims(container):
        if len(declared) != len(inferred):
            yield f"{name!r} is declared with rank {len(declared)}, but has rank {len(inferred)}"
        for axis, (size, found) in enumerate(zip(declared, inferred, strict=False)):
            if _is_number(size) and _is_number(found) and size != found and len(declared) == len(inferred):
                yield f"dimension {axis} of {name!r} is declared as {size}, but is {found}"


@rule("shape.variable", WARNING, SOURCE, REMEDY)
def variable_dimension(container: CheckedGraph | CheckedFunction) -> Problems:
    """A declared dimension should not be a number if it depends on an input of unknown size."""
    for name, declared, inferred in _claims(container):
        for axis, (size, found) in enumerate(zip(declared, inferred, strict=False)):
            if _is_number(size) and type(found) is Symbol and len(declared) == len(inferred):
                yield f"dimension {axis} of {name!r} is declared as {size}, but varies with the inputs"


def _claims(container: CheckedGraph | CheckedFunction) -> Iterator[Claim]:
    scope = container.scope
    for name in scope.declared_positions:
        if name in scope.producing_records:
            declared, inferred = scope.claimed_shape(name), scope.symbolic_shape(name)
            if declared is not None and inferred is not None:
                yield Claim(name, declared, inferred)


def _is_number(size: int | None) -> bool:
    return size is not None and type(size) is not Symbol
