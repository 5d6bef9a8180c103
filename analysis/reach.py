"""Reachable opsets: the lowest and highest opset that each node, and the whole model, can be converted to."""

from dataclasses import asdict, dataclass

from opshift.converter.convert import plan_version
from opshift.converter.errors import Refusal
from opshift.converter.options import AllowLike, read_allow
from opshift.converter.plan.plan_model import with_declared_shapes
from opshift.converter.shape_arguments import ShapesLike, read_shapes
from opshift.model.errors import InvalidModel
from opshift.model.files import ModelLike, model_of
from opshift.model.operator_ids import canonical_domain, opset_imports
from opshift.model.plain_data import Json
from opshift.registry.registry import Registry, default_registry


@dataclass(frozen=True)
class NodeReach:
    """Node that cannot be converted to every opset, with the range that it reaches without a gap."""

    place: str
    operator: str
    lowest: int
    highest: int
    below: str
    """Reason why it cannot be converted below `lowest`; empty if that is the lowest opset of the domain."""
    above: str
    """Reason why it cannot be converted above `highest`; empty if that is the newest opset."""


@dataclass(frozen=True)
class Reach:
    """Opsets of one domain that a whole model can be converted to, from `lowest` to `highest`."""

    domain: str
    opset: int
    """Opset of the model."""
    lowest: int
    highest: int
    nodes: tuple[NodeReach, ...]
    """Nodes with limits, the most restrictive first."""

    def binding(self) -> tuple[NodeReach, ...]:
        """Return the nodes that limit the model, in either direction."""
        return tuple(
            each
            for each in self.nodes
            if (each.below and each.lowest == self.lowest) or (each.above and each.highest == self.highest)
        )

    def as_dict(self) -> dict[str, Json]:
        """Return plain data for JSON."""
        return asdict(self)


def reach(
    model: ModelLike,
    domain: str = "",
    *,
    allow: AllowLike = (),
    shapes: ShapesLike = (),
    infer_shapes: bool = False,
    registry: Registry | None = None,
) -> Reach:
    """Return the opsets of a domain that a model can be converted to, by planning for each of them.

    Parameters and errors are those of `common_opset`, with `shapes` and `infer_shapes` of `convert_version`.
    """
    registry = registry or default_registry()
    domain = canonical_domain(domain)
    source, _ = model_of(model)
    opset = opset_imports(source.opset_import, source.ir_version).get(domain)
    if opset is None:
        raise InvalidModel(f"the model does not import {domain}")
    registry.require_opset(opset, domain)
    source, _ = with_declared_shapes(source, read_shapes(shapes), registry)
    newest = registry.newest_opset(domain)
    allowed = read_allow(allow)
    refusals_by_node: dict[str, dict[int, Refusal]] = {}
    for target in range(1, newest + 1):
        plan = plan_version(
            source, {domain: target}, allow=allowed, infer_shapes=infer_shapes, registry=registry
        )
        for refusal in plan.refusals:
            refusals_by_node.setdefault(refusal.place, {})[target] = refusal
    nodes = [_node_reach(place, refusals, opset, newest) for place, refusals in refusals_by_node.items()]
    lowest = max((each.lowest for each in nodes), default=1)
    highest = min((each.highest for each in nodes), default=newest)
    nodes.sort(key=lambda each: (-each.lowest, each.highest))
    return Reach(domain, opset, lowest, highest, tuple(nodes))


def _node_reach(place: str, refusals: dict[int, Refusal], opset: int, newest: int) -> NodeReach:
    # Not by counting: a model may import opset 2 ** 63 - 1.
    lowest = max((each for each in refusals if each < opset), default=min(opset - 1, 0)) + 1
    highest = min((each for each in refusals if each > opset), default=max(opset, newest) + 1) - 1
    below, above = (refusals[each].reason if each in refusals else "" for each in (lowest - 1, highest + 1))
    operator = next(iter(refusals.values())).operator
    return NodeReach(place, operator, lowest, highest, below, above)
