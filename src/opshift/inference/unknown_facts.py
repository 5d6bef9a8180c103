"""Unknown facts (ranks, shapes and elements) about values, and the unknown facts that cause them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from opshift.inference.constants import SIZE_TYPES
from opshift.inference.facts import InferenceScope, Producer
from opshift.inference.infer_types import body_output
from opshift.inference.subgraph_inputs import sizing_arguments
from opshift.model.errors import UnknownFactKind, UnknownShape
from opshift.registry.shapes.all_rules import SHAPE_RULES

BODIES = {"If": (("then_branch", 0), ("else_branch", 0)), "Loop": (("body", 1),)}
"""By operator: attributes with subgraphs, and position of the output that becomes the node's first output."""


class UnknownFact(NamedTuple):
    """Value with an unknown fact, the kind of the fact, and the scope that defines the value."""

    scope: InferenceScope
    name: str
    fact: UnknownFactKind


def unknown_facts_of(error: UnknownShape, scope: InferenceScope) -> list[UnknownFact]:
    """Return the unknown ranks of the values that an error names or, if there are none, unknown shapes."""
    has_ranks = None not in map(scope.rank, filter(None, error.values))
    return list(unknown_facts(scope, error.values, "shape" if has_ranks else "rank"))


def owner_of(name: str, scope: InferenceScope) -> InferenceScope:
    """Return the scope that defines a value: `scope` or an enclosing one; by default, the outermost one."""
    while scope.parent is not None and not scope.is_local(name):
        scope = scope.parent
    return scope


def unknown_facts(
    scope: InferenceScope, names: Iterable[str], fact: UnknownFactKind
) -> Iterator[UnknownFact]:
    """Yield the values in `names` whose fact of the kind `fact` is unknown."""
    for name in filter(None, names):
        owner = owner_of(name, scope)
        if fact == "elements":
            # Do not read elements, which may be many: all outputs of nodes with these types count as unknown.
            is_unknown = owner.producer(name) is not None and owner.element_type(name) in SIZE_TYPES
        else:
            sizes = (owner.rank(name),) if fact == "rank" else owner.shape(name)
            is_unknown = sizes is None or None in sizes
        if is_unknown:
            yield UnknownFact(owner, name, fact)


def dependencies_of(value: UnknownFact) -> Iterator[UnknownFact]:
    """Yield the unknown facts about other values that directly cause an unknown fact."""
    scope, name, fact = value
    producer, record = scope.producer(name), scope.producing_records.get(name)
    if record is not None and producer is None:  # a node that calls a function
        yield from unknown_facts(scope, record[3], fact)
    elif producer is not None and is_unregistered(producer):
        return
    elif producer is not None:
        inputs = producer.node.inputs
        bodies = _facts_of_bodies(producer, scope, fact)
        if producer.node.op_type == "Loop" and hasattr(producer.node.attribute("body"), "output"):
            # A Loop without iterations returns its argument: its shape matters only if the body keeps this
            # shape.
            position = 2 + producer.position
            yield from bodies or unknown_facts(scope, inputs[position : position + 1], fact)
            return
        if fact == "elements" and producer.node.op_type in ("Shape", "Size"):
            fact = "shape"
        found = list(unknown_facts(scope, inputs, fact))
        yield from found or unknown_facts(scope, inputs, "elements")
        yield from bodies
    elif scope.owner is not None and scope.parent is not None:
        yield from unknown_facts(scope.parent, sizing_arguments(scope, name), fact)
    else:
        for caller, argument in scope.arguments(name):
            yield from unknown_facts(caller, [argument], fact)


def _facts_of_bodies(producer: Producer, scope: InferenceScope, fact: UnknownFactKind) -> list[UnknownFact]:
    """Return the unknown facts about the outputs of subgraphs that become an output of their node."""
    found: list[UnknownFact] = []
    for attribute, first in BODIES.get(producer.node.op_type, ()):
        _, output, body = body_output(producer.node, attribute, first + producer.position, scope)
        found += unknown_facts(body, [output], fact) if body else ()
    return found


def is_unregistered(producer: Producer) -> bool:
    """Return whether the shape rule of an operator is not registered, so that input facts do not help."""
    operator = producer.operator
    return operator is not None and bool(operator.shape) and operator.shape not in SHAPE_RULES


def causes_among(
    error: UnknownShape, scope: InferenceScope, inputs: Iterable[str]
) -> tuple[tuple[str, UnknownFactKind], ...]:
    """Return the unknown facts about the values `inputs` that cause an error, as pairs of name and kind."""
    found: dict[tuple[str, UnknownFactKind], None] = {}
    waiting, given = unknown_facts_of(error, scope)[::-1], set(inputs)
    seen = set(waiting)
    while waiting:
        each = waiting.pop()
        if each.name in given:
            found[each.name, each.fact] = None
            continue
        new = [other for other in dependencies_of(each) if other not in seen]
        seen.update(new)
        waiting += reversed(new)
    return tuple(found)
