"""Choice of the opsets at which a model fits a runtime at the lowest cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from opshift.analysis.fit.attempt import Attempt
from opshift.analysis.fit.result import DoesNotFit, FitReport
from opshift.analysis.fit.targets import IMPOSSIBLE_COST, TargetOpsets, rank_targets
from opshift.converter.options import Options
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import OperatorId
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry
from opshift.registry.runtimes.runtime import Runtime
from opshift.runtimes.check_support import RuntimeCheck
from opshift.runtimes.model_nodes import ModelNodes

MAX_COMPARED = 3
"""Maximum number of opsets that fit, of which the cheapest is chosen; the next ones have higher estimates."""

MAX_AVOIDING = 5
"""Maximum number of opsets that are compared to avoid wrong results of kernels."""

MAX_FAILED = 5
"""Maximum number of opsets without a fit that are compared to find the one with the fewest missing nodes."""

OTHER_RUNTIME = "choose another runtime: `opshift runs` lists those that run the model"


def cheapest(
    model: ModelProto, nodes: ModelNodes, runtime: Runtime, options: Options
) -> tuple[ModelProto, FitReport]:
    """Return the conversion of a model with the lowest cost, without known wrong results if one is found.

    Raises:
        DoesNotFit: no conversion fits the model.
    """
    ranked = rank_targets(nodes, runtime, options.registry, options.allow)
    check = RuntimeCheck(runtime)
    fitting: list[Attempt] = []
    failed: list[Attempt] = []
    for target in ranked:
        least = min((each.cost for each in fitting), default=IMPOSSIBLE_COST)
        # Estimates decide about missing kernels, but not about restrictions of kernels, and emitted nodes.
        is_impossible = target.cost >= least and (fitting or failed)
        if is_impossible and (fitting or not _may_be_nearer(target.cost, ranked[0].cost, len(failed))):
            break
        attempt = Attempt(model, nodes, target, runtime, check, options)
        (failed if attempt.missing else fitting).append(attempt)
        if len(fitting) == MAX_COMPARED:
            break
    if not fitting:
        nearest = min(failed, key=lambda each: sum(len(missing.places) for missing in each.missing))
        missing = [replace(each, remedy=each.remedy or OTHER_RUNTIME) for each in nearest.missing]
        raise DoesNotFit(runtime.name, nearest.opset, missing)
    best = min(fitting, key=lambda each: each.cost)
    if best.warnings:
        strict = RuntimeCheck(runtime, refuses_wrong=True)
        others = _with_other_versions(ranked, best, options.registry)
        for target in islice((best.target, *others), MAX_AVOIDING):
            attempt = Attempt(model, nodes, target, runtime, check, options, strict)
            if not attempt.missing and len(attempt.warnings) < len(best.warnings):
                best = attempt
            if not best.warnings:
                break
    return best.model, best.report(len(fitting) + len(failed))


def _with_other_versions(
    ranked: Sequence[TargetOpsets], best: Attempt, registry: Registry
) -> Iterator[TargetOpsets]:
    """Yield the opsets with other versions of the operators that have wrong results, each version once."""
    wrong = [OperatorId.parse(each.partition(": ")[0]) for each in best.warnings]

    def versions(target: TargetOpsets) -> tuple[OperatorVersion | None, ...]:
        opsets = target.opsets
        return tuple(registry.at(each.op_type, opsets.get(each.domain, 1), each.domain) for each in wrong)

    tried = [versions(best.target)]
    for target in ranked:
        found = versions(target)
        if found not in tried:
            tried.append(found)
            yield target


def _may_be_nearer(cost: int, least: int, failed: int) -> bool:
    """Return whether an opset may lack as few nodes as the cheapest one, by its estimated cost."""
    return failed < MAX_FAILED and cost // IMPOSSIBLE_COST <= least // IMPOSSIBLE_COST
