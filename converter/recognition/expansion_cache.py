"""Cache of the expansions of nodes, and facts about these nodes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import count, zip_longest
from typing import Final

from opshift.converter.recognition.expansion import Call, ExactGraph, InputFact, expand
from opshift.inference.infer_shapes import known_shapes
from opshift.inference.root_scopes import root_scopes
from opshift.inference.scope import Scope
from opshift.model.node import Node, Tensor
from opshift.model.types import Shape
from opshift.registry.registry import Registry
from opshift.registry.requirements import requirements_of
from opshift.registry.shapes.shape_context import ShapeContext
from opshift.registry.steps import Allow

MAX_EXPANSIONS: Final = 512
"""Maximum number of cached expansions: the layers of a model, and other models, repeat the same calls.

An expansion takes about a millisecond; all take up to a quarter of the time of recognition.
"""

FIRST_UNUSUAL_SIZE: Final = 10**9
"""Smallest number that replaces a size known only at run time; sizes in models are smaller."""


class Expansions:
    """Expansions of calls (see `expand`) with the options of one conversion."""

    def __init__(self, registry: Registry, allow: frozenset[Allow]) -> None:
        self.registry = registry
        # Allow no inexact conversions: an expansion has to prove that the nodes compute the same results.
        self.allow = allow & {"large"}
        self._shapes: dict[Call, tuple[Shape | None, ...]] = {}

    def graph(self, call: Call, variant: int) -> ExactGraph | None:
        """Return the cached expansion of a call, see `expand`."""
        return _expansion(call, repr(call.attributes), variant, self.registry, self.allow)

    def is_surely_valid(self, call: Call) -> bool:
        """Return whether the definition of the operator lists all requirements, and the call meets them."""
        definition = self.registry.operator(call.operator.name, call.operator.domain)
        if definition is None or not definition.has_complete_requires:
            return False
        context = self._context(call)
        pairs = zip_longest(call.operator.inputs, call.inputs)
        absent = {formal.name for formal, fact in pairs if fact is None}
        absent |= {name for name in call.operator.attributes if context.attribute(name) is None}
        return all(
            each.evaluate(context) is True or not absent.isdisjoint(each.names)
            for each in requirements_of(call.operator)
        )

    def violated_requirement(self, call: Call) -> str | None:
        """Return a requirement of the operator that a call may violate at run time.

        Unknown sizes differ from all others. For complete requirements, which calculate with sizes, only a
        surely violated one is returned.
        """
        definition = self.registry.operator(call.operator.name, call.operator.domain)
        if definition is not None and not definition.has_complete_requires:
            unknown = count(2 * FIRST_UNUSUAL_SIZE)
            call = call._replace(inputs=tuple(_with_distinct_sizes(each, unknown) for each in call.inputs))
        requirements = requirements_of(call.operator)
        if not requirements:
            return None
        context = self._context(call)
        return next((each.text for each in requirements if each.problem(context)), None)

    def _context(self, call: Call) -> ShapeContext:
        node, scope = self._node_in_scope(call)
        return known_shapes(node, call.operator, scope)

    def _node_in_scope(self, call: Call) -> tuple[Node, Scope]:
        model = call.model()
        scope = next(root_scopes(model, model, self.registry))[0]
        return Node.from_proto(model.graph.node[0]), scope

    def shapes(self, call: Call) -> tuple[Shape | None, ...]:
        """Infer the shapes of a call's outputs; unknown sizes are negative numbers, as in `InputFact`."""
        if call not in self._shapes:
            node, scope = self._node_in_scope(call)
            names = [f"in{index}" for index, each in enumerate(call.inputs) if each is not None]
            shapes = scope.comparable_shapes([*names, *node.outputs])
            self._shapes[call] = shapes[len(names) :]
        return self._shapes[call]


def _with_distinct_sizes(
    fact: InputFact | Tensor | None, unknown: Iterator[int]
) -> InputFact | Tensor | None:
    """Replace sizes known only at run time by unusual ones; equal negative numbers stay equal."""
    if not isinstance(fact, InputFact) or fact.dims is None:
        return fact
    dims = (next(unknown) if each is None else each for each in fact.dims)
    return fact._replace(dims=tuple(FIRST_UNUSUAL_SIZE - each if each < 0 else each for each in dims))


@lru_cache(maxsize=MAX_EXPANSIONS)
def _expansion(
    call: Call, attributes: str, variant: int, registry: Registry, allow: frozenset[Allow]
) -> ExactGraph | None:
    """Expand a call; `attributes` is the text of its attributes, because 0.0 equals -0.0."""
    return expand(call, variant, registry, allow)
