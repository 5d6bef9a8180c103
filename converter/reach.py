"""How far a model can be moved: the lowest and highest opset of each node, and of the whole."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from opshift.converter.convert import model_of, plan_version
from opshift.converter.errors import InvalidModel, Refusal
from opshift.converter.opsets import opset_imports
from opshift.registry.catalogue import Registry, default_registry
from opshift.registry.names import canonical_domain


@dataclass(frozen=True)
class NodeReach:
    """A node that cannot go everywhere.

    Attributes:
        place, operator: the node, and what it is.
        lowest, highest: the opsets it can reach without a gap from where it is.
        below, above: why it stops there; empty where the domain's opsets end.
    """

    place: str
    operator: str
    lowest: int
    highest: int
    below: str
    above: str


@dataclass(frozen=True)
class Reach:
    """How far a model can be moved in one domain.

    Attributes:
        domain: the domain.
        opset: where the model is.
        lowest, highest: how far the whole of it reaches.
        nodes: those that cannot go everywhere, the ones that bind first.
    """

    domain: str
    opset: int
    lowest: int
    highest: int
    nodes: tuple[NodeReach, ...]

    def binding(self) -> tuple[NodeReach, ...]:
        """The nodes that keep the model from going further, in either direction."""
        return tuple(
            each
            for each in self.nodes
            if (each.below and each.lowest == self.lowest) or (each.above and each.highest == self.highest)
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)


def reach(
    model: Any, domain: str = "", *, allow: str | Iterable[str] = (), registry: Registry | None = None
) -> Reach:
    """How far a model's nodes of one domain can be moved, by planning for every opset.

    Args:
        model: a ModelProto, its bytes, or a path.
        domain: by default ai.onnx.
        allow: as for `convert_version`.
        registry: as for `convert_version`.

    Raises:
        InvalidModel: the model has no meaning as it is, or does not import the domain.
    """
    registry = registry or default_registry()
    domain = canonical_domain(domain)
    model, _ = model_of(model)
    opset = opset_imports(model.opset_import, model.ir_version).get(domain)
    if opset is None:
        raise InvalidModel(f"the model does not import {domain}")
    newest = registry.newest_opset(domain)
    plans = {
        to: plan_version(model, {domain: to}, allow=allow, registry=registry) for to in range(1, newest + 1)
    }
    blocked: dict[str, dict[int, Refusal]] = {}
    for to, plan in plans.items():
        for refusal in plan.refusals:
            blocked.setdefault(refusal.place, {})[to] = refusal
    nodes = [_node(place, refusals, opset, newest) for place, refusals in blocked.items()]
    lowest = max((each.lowest for each in nodes), default=1)
    highest = min((each.highest for each in nodes), default=newest)
    nodes.sort(key=lambda each: (-each.lowest, each.highest))
    return Reach(domain, opset, lowest, highest, tuple(nodes))


def _node(place: str, refusals: dict[int, Refusal], opset: int, newest: int) -> NodeReach:
    lowest = highest = opset
    while lowest > 1 and lowest - 1 not in refusals:
        lowest -= 1
    while highest < newest and highest + 1 not in refusals:
        highest += 1
    below, above = refusals.get(lowest - 1), refusals.get(highest + 1)
    operator = next(iter(refusals.values())).operator
    return NodeReach(
        place, operator, lowest, highest, below.reason if below else "", above.reason if above else ""
    )
