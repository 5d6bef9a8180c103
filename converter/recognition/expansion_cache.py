"""Cache of the expansions of nodes, and facts about these nodes."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from opshift.converter.recognition.expansion import Call, ExactGraph, expand
from opshift.inference.infer_shapes import known_shapes
from opshift.inference.root_scopes import root_scopes
from opshift.model.node import Node
from opshift.model.types import Shape
from opshift.registry.registry import Registry
from opshift.registry.requirements import requirements_of
from opshift.registry.steps import Allow

MAX_EXPANSIONS: Final = 512
"""Maximum number of cached expansions: the layers of a model, and other models, repeat the same calls.

An expansion takes about a millisecond; all take up to a quarter of the time of recognition.
"""


class Expansions:
    """Expansions of calls (see `expand`) with the options of one conversion."""

    def __init__(self, registry: Registry, allow: frozenset[Allow]) -> None:
        self.registry = registry
        # Allow no inexact conversions: an expansion has to prove that the nodes compute the same results.
        self.allow = allow & {"large"}
        self._shapes: dict[Call, Shape | None] = {}

    def graph(self, call: Call, variant: int) -> ExactGraph | None:
        """Return the cached expansion of a call, see `expand`."""
        return _expansion(call, repr(call.attributes), variant, self.registry, self.allow)

    def is_surely_valid(self, call: Call) -> bool:
        """Return whether a call is surely valid: the requirements are complete, and it keeps them."""
        definition = self.registry.operator(call.operator.name, call.operator.domain)
        if definition is None or not definition.has_complete_requires:
            return False
        model = call.model()
        scope = next(root_scopes(model, model, self.registry))[0]
        node = Node.from_proto(model.graph.node[0])
        context = known_shapes(node, call.operator, scope)
        absent = {
            formal.name for position, formal in enumerate(call.operator.inputs) if not node.input(position)
        }
        absent |= {name for name in call.operator.attributes if context.attribute(name) is None}
        return all(
            each.evaluate(context) is True or not absent.isdisjoint(each.names)
            for each in requirements_of(call.operator)
        )

    def shape(self, call: Call) -> Shape | None:
        """Infer the shape of a call's first output; unknown sizes are negative numbers, as in `InputFact`."""
        if call not in self._shapes:
            model = call.model()
            scope = next(root_scopes(model, model, self.registry))[0]
            names = [f"in{index}" for index, each in enumerate(call.inputs) if each is not None]
            self._shapes[call] = scope.comparable_shapes([*names, "out0"])[-1]
        return self._shapes[call]


@lru_cache(maxsize=MAX_EXPANSIONS)
def _expansion(
    call: Call, attributes: str, variant: int, registry: Registry, allow: frozenset[Allow]
) -> ExactGraph | None:
    """Expand a call; `attributes` is the text of its attributes, because 0.0 equals -0.0."""
    return expand(call, variant, registry, allow)
