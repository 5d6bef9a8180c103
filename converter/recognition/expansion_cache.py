"""Cache of the expansions of nodes, and facts about these nodes, for one model."""

from __future__ import annotations

from opshift.converter.recognition.expansion import Call, ExactGraph, expand
from opshift.inference.infer_shapes import known_shapes
from opshift.inference.root_scopes import root_scopes
from opshift.model.node import Node
from opshift.model.types import Shape
from opshift.registry.registry import Registry
from opshift.registry.requirements import requirements_of
from opshift.registry.steps import Allow


class Expansions:
    """Cache of expansions (see `expand`) for one model, whose layers repeat the same calls."""

    def __init__(self, registry: Registry, allow: frozenset[Allow]) -> None:
        self.registry = registry
        # No inexact conversions: an expansion has to prove that the nodes compute the same results.
        self.allow = allow & {"large"}
        self._graphs: dict[tuple[Call, int], ExactGraph | None] = {}
        self._shapes: dict[Call, Shape | None] = {}

    def graph(self, call: Call, variant: int) -> ExactGraph | None:
        """Return the cached expansion of a call, see `expand`."""
        key = (call, variant)
        if key not in self._graphs:
            self._graphs[key] = expand(call, variant, self.registry, self.allow)
        return self._graphs[key]

    def is_valid(self, call: Call) -> bool:
        """Return whether the types, shapes and constants of a call meet all requirements of its operator."""
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
