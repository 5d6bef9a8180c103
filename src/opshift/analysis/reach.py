"""Reachable opsets: the lowest and highest opset that each node, and the whole model, can be converted to.

`common_opset` finds the highest opset that several models reach.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from opshift.converter.arguments import ShapesLike, read_shapes
from opshift.converter.convert import plan_version, plan_with
from opshift.converter.declared_shapes import with_declared_shapes
from opshift.converter.options import AllowLike, Options, Target, read_allow
from opshift.converter.plan.planner import plan_model
from opshift.converter.refusals import Refusal, RefusalGroup, group_refusals
from opshift.converter.report import Report
from opshift.inference.shared_facts import SharedFacts
from opshift.model.binary_files import is_readable
from opshift.model.errors import (
    InvalidModel,
    OpshiftError,
    UsageError,
    require_collection,
    require_type,
    wrong_type,
)
from opshift.model.files import ModelLike, message_of, model_of, reading_onnx_ir
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import canonical_domain, opset_imports
from opshift.model.plain_data import Json
from opshift.registry.registry import Registry, registry_or_default
from opshift.registry.steps import Allow


@dataclass(frozen=True)
class NodeReach:
    """Node that cannot be converted to every opset, and the range of opsets that it reaches without gaps."""

    place: str
    operator: str
    lowest: int
    highest: int
    below: str
    """Reason why the node cannot be converted below `lowest`; empty if `lowest` is opset 1."""
    above: str
    """Reason why the node cannot be converted above `highest`; empty if `highest` is the newest opset."""


@dataclass(frozen=True)
class ReachLimit:
    """Opset that some nodes do not reach, and the refusals of these nodes by cause."""

    opset: int
    groups: tuple[RefusalGroup, ...]


@dataclass(frozen=True)
class Reach:
    """Opsets of one domain that a whole model can be converted to, from `lowest` to `highest`.

    If the conversion to the model's own opset is refused, the range is empty: `lowest` is the next opset, and
    `highest` the previous one.
    """

    domain: str
    opset: int
    """Opset of the model."""
    lowest: int
    highest: int
    nodes: tuple[NodeReach, ...]
    """Nodes with limits, the most restrictive first."""
    limits: tuple[ReachLimit, ...] = ()
    """The same limits by opset: older opsets, then newer ones, each group in order of distance to `opset`."""

    def binding(self) -> tuple[NodeReach, ...]:
        """Return the nodes with the most restrictive limits of the model, in either direction."""
        return tuple(
            each
            for each in self.nodes
            if (each.below and each.lowest == self.lowest) or (each.above and each.highest == self.highest)
        )

    def __str__(self) -> str:
        reached = "none" if self.is_empty else f"{self.lowest} to {self.highest}"
        lines = [f"{self.domain} {self.opset}: reachable opsets {reached}"]
        for each in self.limits:
            lines += [f"opset {each.opset}: {group}" for group in each.groups]
        return "\n".join(lines)

    @property
    def is_empty(self) -> bool:
        """Whether the model cannot be converted to any opset, its own included."""
        return self.lowest > self.highest

    def as_dict(self) -> dict[str, Json]:
        """Return plain data for JSON."""
        limits: list[Json] = [
            {"opset": each.opset, "groups": [group.as_dict() for group in each.groups]}
            for each in self.limits
        ]
        return {**asdict(replace(self, limits=())), "limits": limits}


@reading_onnx_ir
def reach(
    model: ModelLike,
    domain: str = "",
    *,
    allow: AllowLike = (),
    shapes: ShapesLike = (),
    infer_shapes: bool = False,
    registry: Registry | None = None,
) -> Reach:
    """Return the opsets of a domain that a model can be converted to, by planning conversions.

    `domain`, `allow` and `registry` are as in `common_opset`; `shapes` and `infer_shapes` are as in
    `convert_version`. Raises InvalidModel if the model is invalid, or does not import the domain, and
    UnknownOpset if the registry lacks the opset of the model.
    """
    registry = registry_or_default(registry)
    domain = canonical_domain(domain)
    source, _ = model_of(model)
    opset = opset_imports(source.opset_import, source.ir_version).get(domain)
    if opset is None:
        reason = f"the model does not import {domain}"
        raise InvalidModel(reason, remedy="choose a domain that opshift inspect lists")
    registry.require_opset(opset, domain)
    source, _ = with_declared_shapes(source, read_shapes(shapes), registry)
    newest = registry.newest_opset(domain)
    options = Options.of({domain: opset}, allow=allow, infer_shapes=infer_shapes, registry=registry)
    source, plan = plan_model(source, options)  # sort the nodes here once, not in each plan
    options = replace(options, shared_facts=SharedFacts(source.graph))
    own: Limits = {}
    for refusal in plan.refusals:
        own.setdefault(refusal.place, (opset, refusal))
    below, above = (
        _LimitSearch(source, domain, targets, options, own).limits()
        for targets in (range(opset - 1, 0, -1), range(opset + 1, newest + 1))
    )
    nodes = [
        _node_reach(place, below.get(place), above.get(place), newest)
        for place in dict.fromkeys([*below, *above])
    ]
    lowest = max((each.lowest for each in nodes), default=1)
    highest = min((each.highest for each in nodes), default=newest)
    nodes.sort(key=lambda each: (-each.lowest, each.highest))
    newer = {place: limit for place, limit in above.items() if place not in own}
    return Reach(domain, opset, lowest, highest, tuple(nodes), (*_by_opset(below), *_by_opset(newer)))


Limits = dict[str, tuple[int, Refusal]]
"""The first opset that a node does not reach, and the refusal, by place of the node."""


class _Refusals(NamedTuple):
    """Refusals of a plan by place, and whether plans of nearer targets must include all nodes."""

    by_place: Mapping[str, Refusal]
    concern_all: bool


class _LimitSearch:
    """Search for the limits of nodes in one direction.

    A conversion includes the steps to all nearer opsets, so a node that is refused at one opset is refused at
    all farther opsets. If the same nodes are refused at two opsets, the opsets between need no plan. Nodes
    with a known limit are not planned again. Plans between two opsets contain only the nodes that are refused
    at the farther opset, unless `_Refusals.concern_all` is true.
    """

    def __init__(
        self, model: ModelProto, domain: str, targets: Sequence[int], options: Options, known: Limits
    ) -> None:
        """`targets` are the opsets in one direction, the nearest first; `known` has limits of nodes."""
        self._model = model
        self._domain = domain
        self._targets = targets
        self._options = options
        self._found = dict(known)

    def limits(self) -> Limits:
        """Return the known limits, and the limits of nodes that do not reach all targets, nearest first."""
        if self._targets:
            farthest = len(self._targets) - 1
            self._bisect(-1, farthest, self._refusals(farthest))
        return self._found

    def _bisect(self, near: int, far: int, refused: _Refusals) -> None:
        """Find the limits of nodes that are refused at target position `far`, but not at `near`."""
        places, concern_all = refused
        if not places:
            return
        if far - near == 1:
            self._found.update((place, (self._targets[far], each)) for place, each in places.items())
            return
        middle = (near + far) // 2
        nearer = self._refusals(middle, None if concern_all else frozenset(places))
        self._bisect(near, middle, nearer)
        farther = {place: each for place, each in places.items() if place not in nearer.by_place}
        self._bisect(middle, far, _Refusals(farther, concern_all))

    def _refusals(self, position: int, only: frozenset[str] | None = None) -> _Refusals:
        """Plan the target at a position; return the refusals of nodes without a known limit.

        `only` are the places of the nodes to plan, by default all.
        """
        target, skipped = Target({self._domain: self._targets[position]}), frozenset(self._found)
        options = replace(self._options, target=target, skipped=skipped, only=only)
        plan = plan_with(self._model, options)
        # A repaired plan is for a copy of the model without some types, whose nodes may have other places:
        # plan all nodes.
        if plan.repairs and only is not None:
            return self._refusals(position)
        found: dict[str, Refusal] = {}
        for each in plan.refusals:
            if each.place not in self._found:
                found.setdefault(each.place, each)
        # The limit of added nodes counts all rewrites: a plan of only some nodes may stay below the limit.
        is_limited = any(each.code == "limit.exceeded" for each in found.values())
        return _Refusals(found, is_limited or bool(plan.repairs))


def _by_opset(limits: Limits) -> Iterator[ReachLimit]:
    for opset, members in groupby(limits.values(), key=itemgetter(0)):
        yield ReachLimit(opset, group_refusals(refusal for _, refusal in members))


def _node_reach(
    place: str, below: tuple[int, Refusal] | None, above: tuple[int, Refusal] | None, newest: int
) -> NodeReach:
    (too_low, under), (too_high, over) = below or (0, None), above or (newest + 1, None)
    operator = next(each.operator for each in (under, over) if each)
    reasons = (each.reason if each else "" for each in (under, over))
    return NodeReach(place, operator, too_low + 1, too_high - 1, *reasons)


class NoCommonOpset(OpshiftError):
    """The models cannot be converted to one opset.

    Attributes:
        reaches: reachable opsets of each model, in the order of the models.
    """

    def __init__(self, reaches: Sequence[Reach]) -> None:
        self.reaches = tuple(reaches)
        low, lower = max(enumerate(reaches), key=lambda item: item[1].lowest)
        high, upper = min(enumerate(reaches), key=lambda item: item[1].highest)
        bounds = f"models[{low}] stops at opset {lower.lowest}, models[{high}] at {upper.highest}"
        if empty := next((each for each in enumerate(reaches) if each[1].is_empty), None):
            low, lower = empty
            bounds = f"models[{low}] cannot be converted to its own opset {lower.opset}"
        reasons = [*(node.below for node in lower.nodes), *(node.above for node in upper.nodes)]
        why = next((f": {each}" for each in reasons if each), "")
        super().__init__(f"the models have no opset in common: {bounds}{why}")


@dataclass(frozen=True)
class CommonOpset:
    """Opsets that several models can share; as a conversion target, `highest` with `ir_version`.

    Attributes:
        domain: domain of the opsets.
        lowest, highest: inclusive range of opsets that all models reach.
        reaches: reachable opsets of each model, in the order of the models.
        reports: planned conversion of each model to `highest`; without changes if the model has this opset.
    """

    domain: str
    lowest: int
    highest: int
    reaches: tuple[Reach, ...]
    reports: tuple[Report, ...]

    def __str__(self) -> str:
        return f"{self.domain}: common opsets {self.lowest} to {self.highest}, IR version {self.ir_version}"

    @property
    def opsets(self) -> Mapping[str, int]:
        """The highest common opset, by domain."""
        return {self.domain: self.highest}

    @property
    def ir_version(self) -> int:
        """The newest IR version of the converted models: `onnx.compose` requires equal IR versions."""
        return max(after for _, after in (each.ir_version for each in self.reports))


def common_opset(
    models: Iterable[ModelLike], domain: str = "", *, allow: AllowLike = (), registry: Registry | None = None
) -> CommonOpset:
    """Return the highest opset of a domain that all models reach, with the conversion of each model.

    A model reaches an opset if it can be converted to that opset and to every opset in between. The result is
    a target: all of `[convert_version(each, common) for each in models]` have the same opset and IR version.

    Args:
        models: ModelProtos, their bytes, paths, or file objects.
        domain: domain of the opsets; by default ai.onnx.
        allow: inexact conversions to allow, see `convert_version`; by default all conversions are exact.
        registry: operator definitions; by default the project's own.

    Raises:
        NoCommonOpset: no opset is reachable for all models; `reaches` of the error has the limits of each
            model, with reasons.
        InvalidModel: a model is invalid, or does not import the domain.
        UnknownOpset: the registry lacks the opset of a model.
        UsageError: `models` is not a list, or is empty.
    """
    require_type("domain", domain, str, "a domain such as ai.onnx.ml")
    allowed = read_allow(allow)
    if is_readable(models):
        raise wrong_type("models", models, "a list of models or paths")
    require_collection("models", models, "a list of models or paths")
    with ExitStack() as stack:
        loaded = [model_of(message_of(each, stack))[0] for each in models]
        return _common_opset(loaded, domain, allowed, registry)


def _common_opset(
    loaded: Sequence[ModelProto], domain: str, allowed: frozenset[Allow], registry: Registry | None
) -> CommonOpset:
    if not loaded:
        raise UsageError("no models are given", remedy="pass a list of models or paths")
    reaches = tuple(reach(each, domain, allow=allowed, registry=registry) for each in loaded)
    lowest = max(each.lowest for each in reaches)
    highest = min(each.highest for each in reaches)
    if lowest > highest:
        raise NoCommonOpset(reaches)
    canonical = reaches[0].domain
    plans = (plan_version(each, {canonical: highest}, allow=allowed, registry=registry) for each in loaded)
    return CommonOpset(canonical, lowest, highest, reaches, tuple(map(Report.of, plans)))
