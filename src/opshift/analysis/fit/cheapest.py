"""Choice of the opsets at which a model fits a runtime at the lowest cost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice

from opshift.analysis.distinct_nodes import with_distinct_nodes
from opshift.analysis.fit.attempt import Attempt
from opshift.analysis.fit.bridges import Bridges
from opshift.analysis.fit.replaced_nodes import ReplacedNodes
from opshift.analysis.fit.result import DoesNotFit, FitReport
from opshift.analysis.fit.targets import (
    IMPOSSIBLE_COST,
    NodeCosts,
    TargetOpsets,
    rank_targets,
)
from opshift.analysis.refused_opsets import RefusedOpsets
from opshift.converter.options import Options
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import DEFAULT_DOMAIN, OperatorId
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry
from opshift.registry.runtimes.runtime import Runtime
from opshift.runtimes.check_support import RuntimeCheck, UnsupportedGroup
from opshift.runtimes.model_nodes import ModelNodes

MAX_COMPARED = 3
"""Maximum number of fitting opsets to compare; further opsets have higher estimated costs."""

MAX_AVOIDING = 5
"""Maximum number of opsets to try in order to avoid wrong results of kernels."""

MAX_FAILED = 5
"""Number of failed opsets after which only opsets that may still fit are tried."""

MAX_ADDED = 16_384
"""Maximum number of nodes that attempts add before the search ends.

The limit applies to the sum of all fitting attempts, and of all failed ones after `MAX_FAILED` failures.
"""

MAX_COMPLETED = 2
"""Maximum number of failed opsets for which all missing nodes are listed, not only refused nodes."""


class _Failures:
    """Nodes that prevented the model from fitting at tried opsets, to predict failures at other opsets."""

    def __init__(self, nodes: ModelNodes, runtime: Runtime, options: Options) -> None:
        self._nodes = {each.place: each for each in nodes.nodes}
        self._runtime = runtime
        self._options = options
        self._refused = RefusedOpsets(nodes.opsets)
        self._missing: set[tuple[str, str]] = set()
        """Places and operator versions of nodes without a replacement."""
        self._failed: set[tuple[int, str, int]] = set()
        """Default-domain opset of each failed attempt, with the domain and opset of a node that failed."""

    def add(self, attempt: Attempt) -> None:
        """Record why an attempt does not fit: refused opsets, or else the nodes without a kernel."""
        if attempt.is_refused:
            self._refused.add(attempt.target.opsets)
            return
        for place in chain.from_iterable(each.places for each in attempt.missing):
            if node := self._nodes.get(place):
                opset = attempt.target.opsets.get(node.domain, 0)
                self._failed.add((attempt.opset, node.domain, opset))
        registry = self._options.registry
        bridges = Bridges(self._runtime, registry, attempt.opset, self._options.allow)
        costs = NodeCosts(self._runtime, registry, bridges)
        for missing in filter(lambda each: each.operator, attempt.missing):
            found = OperatorId.parse(missing.operator)
            operator = registry.operator(found.op_type, found.domain)
            version = operator.at(found.since_version) if operator else None
            if operator is None or version is None:
                continue  # a call of a function, or a node without a definition of its operator
            if costs.of_replacement(operator, version, missing.types) >= IMPOSSIBLE_COST:
                self._missing.update((place, missing.operator) for place in missing.places)

    def prevent(self, target: TargetOpsets) -> bool:
        """Return whether earlier failures show that the model does not fit at `target`.

        The conversion of a node depends only on the opsets of its domain and of the default domain.
        """
        default = target.opsets[DEFAULT_DOMAIN]
        return (
            target.opsets in self._refused
            or any((default, *each) in self._failed for each in target.opsets.items())
            or any(self._version(place, target.opsets) == operator for place, operator in self._missing)
        )

    def _version(self, place: str, opsets: Mapping[str, int]) -> str | None:
        """Return the version of a node after a conversion without replacements; `None` if it is unknown."""
        node = self._nodes.get(place)
        if node is None:
            return None
        version = self._options.registry.known_at(node.node.op_type, opsets.get(node.domain, 0), node.domain)
        return str(version.id) if version else None


OTHER_RUNTIME = "choose another runtime: `opshift runs` lists those that run the model"

FALLBACK = (
    "let it run on the CPU, without --provider-only (provider_only= in Python), or choose another runtime"
)


def cheapest(
    model: ModelProto, nodes: ModelNodes, runtime: Runtime, options: Options
) -> tuple[ModelProto, FitReport]:
    """Return the cheapest conversion of a model, preferably one without known wrong results of kernels.

    Raises:
        DoesNotFit: no conversion fits the model.
    """
    trials = _Trials(model, nodes, runtime, options)
    ranked = rank_targets(nodes, runtime, options.registry, options.allow)
    if trials.check.needs_ranks(nodes):
        ranked = ranked[:1]  # no conversion adds ranks to inputs
    fitting, failed = _compare(trials, ranked)
    if not fitting:
        fitting = [trials.nearest(failed)]
    best = min(fitting, key=lambda each: each.cost)
    if best.wrong:
        strict = RuntimeCheck(runtime, refuses_wrong=True)
        others = _with_other_versions(ranked, best, options.registry)
        for target in islice((best.target, *others), MAX_AVOIDING):
            attempt = trials.attempt(target, strict)
            if not attempt.missing and len(attempt.wrong) < len(best.wrong):
                best = attempt
            if not best.wrong:
                break
    return best.model, best.report(len(fitting) + len(failed))


class _Trials:
    """Attempts to convert a model; after the first, a copy with one node of each kind is tried first."""

    def __init__(self, model: ModelProto, nodes: ModelNodes, runtime: Runtime, options: Options) -> None:
        self._model = model
        self._nodes = nodes
        self._runtime = runtime
        self._options = options
        self.check = RuntimeCheck(runtime)
        self._first: Attempt | None = None
        self._fitting: dict[bytes, Attempt] = {}
        """Attempts that fit, by the serialized converted copy with one node of each kind."""
        self.failures = _Failures(nodes, runtime, options)

    @cached_property
    def _distinct_model(self) -> ModelProto | None:
        return with_distinct_nodes(self._model, self._options.registry)

    def attempt(self, target: TargetOpsets, strict: RuntimeCheck | None = None) -> Attempt:
        """Return the attempt to convert the model to target opsets; a failed attempt may be of the copy.

        If the converted copy has the same nodes as at an earlier target, return the attempt for that target.
        """
        if self._first is None:  # most models fit at the first opset, so create no copy for it
            self._first = attempt = self._attempt_at(self._model, target, strict)
            if not attempt.missing or self._distinct_model is None:
                return attempt
        if self._distinct_model is None:
            return self._attempt_at(self._model, target, strict)
        attempt = self._attempt_at(self._distinct_model, target, strict)
        if attempt.missing:
            return attempt
        nodes = _without_versions(attempt.model)
        if strict is None and nodes in self._fitting:
            return self._fitting[nodes]
        attempt = self._attempt_at(self._model, target, strict)
        if strict is None and not attempt.missing:
            self._fitting[nodes] = attempt
        return attempt

    def _attempt_at(self, model: ModelProto, target: TargetOpsets, strict: RuntimeCheck | None) -> Attempt:
        return Attempt(model, self._nodes, target, self._runtime, self.check, self._options, strict)

    def nearest(self, failed: Sequence[Attempt]) -> Attempt:
        """Repeat the best failed attempt of the copy with the whole model; return the attempt if it fits.

        Raises:
            DoesNotFit: it does not fit; the error names the opset with the fewest missing nodes.
        """
        best, missing = nearest_failure(failed, self._nodes)
        if self._distinct_model is not None:
            if self._first is not None and self._first.target == best.target:
                best = self._first
            else:
                best = self._attempt_at(self._model, best.target, None)
            if not best.missing:
                return best
            missing = best.missing_with_others()
        # Only onnxruntime validates nodes, and its providers fall back to the CPU unless this is forbidden.
        is_alone = self._runtime.provider != "cpu" and self._runtime.validates_nodes
        remedy = FALLBACK if is_alone else OTHER_RUNTIME
        replaced = ReplacedNodes(self._nodes, best.model, self._options.registry)
        raise DoesNotFit(
            self._runtime.name,
            best.opset,
            [
                replace(each, places=replaced.places(each.places), remedy=each.remedy or remedy)
                for each in missing
            ],
        )


def nearest_failure(
    failed: Sequence[Attempt], nodes: ModelNodes
) -> tuple[Attempt, tuple[UnsupportedGroup, ...]]:
    """Return the first attempt with the fewest missing nodes of the model, and all of its missing nodes.

    Args:
        failed: the attempts, those with the lowest estimated cost first.
        nodes: the nodes of the model.
    """
    places = {each.place for each in nodes.nodes}
    nearest = sorted(failed, key=lambda each: _count_own(each.listed, places))[:MAX_COMPLETED]
    found = [(each, each.missing_with_others()) for each in nearest]
    return min(found, key=lambda each: _count_own(each[1], places))


def _count_own(missing: Iterable[UnsupportedGroup], places: Collection[str]) -> int:
    """Count missing nodes of the model; all nodes that a conversion adds count as one node.

    A refused node counts as one, although several nodes might replace it.
    """
    found = list(chain.from_iterable(each.places for each in missing))
    own = sum(place in places for place in found)
    return own + (own < len(found))


def _without_versions(model: ModelProto) -> bytes:
    """Return a serialized model without opset imports."""
    copy = deepcopy(model)
    for each in (copy, *copy.functions):
        each.ClearField("opset_import")
    return copy.SerializeToString(deterministic=True)


def _compare(trials: _Trials, ranked: Sequence[TargetOpsets]) -> tuple[list[Attempt], list[Attempt]]:
    """Try targets in order while they may be cheaper, up to limits; return fitting and failed attempts."""
    fitting: list[Attempt] = []
    failed: list[Attempt] = []
    for target in ranked:
        least = min((each.cost for each in fitting), default=IMPOSSIBLE_COST)
        # Estimates exclude restrictions of kernels and nodes that adapters emit: after failures, try more.
        is_impossible = target.cost >= least and (fitting or failed)
        if is_impossible and (fitting or not _is_worth_trying(target.cost, ranked[0].cost, len(failed))):
            break
        if len(failed) >= MAX_FAILED:
            if _added_nodes(failed) > MAX_ADDED:
                break
            if trials.failures.prevent(target):
                continue
        attempt = trials.attempt(target)
        if attempt.missing:
            failed.append(attempt)
            trials.failures.add(attempt)
        else:
            fitting.append(attempt)
        if len(fitting) == MAX_COMPARED or _added_nodes(fitting) > MAX_ADDED:
            break
    return fitting, failed


def _added_nodes(attempts: Iterable[Attempt]) -> int:
    return sum(each.added_nodes for each in attempts)


def _with_other_versions(
    ranked: Sequence[TargetOpsets], best: Attempt, registry: Registry
) -> Iterator[TargetOpsets]:
    """Yield targets with other versions of the operators with wrong results, each set of versions once."""
    wrong = list(map(OperatorId.parse, best.wrong))

    def versions_at(target: TargetOpsets) -> tuple[OperatorVersion | None, ...]:
        opsets = target.opsets
        return tuple(
            registry.known_at(each.op_type, opsets.get(each.domain, 1), each.domain) for each in wrong
        )

    tried = [versions_at(best.target)]
    for target in ranked:
        found = versions_at(target)
        if found not in tried:
            tried.append(found)
            yield target


def _is_worth_trying(cost: int, least: int, failed_count: int) -> bool:
    """Return whether a target of this cost leaves no more nodes without a kernel than the cheapest target.

    `least` is the cost of the cheapest target. The result is False after `MAX_FAILED` failed targets.
    """
    return failed_count < MAX_FAILED and cost // IMPOSSIBLE_COST <= least // IMPOSSIBLE_COST
