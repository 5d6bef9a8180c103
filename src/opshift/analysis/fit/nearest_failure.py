"""Choice of the failed attempt that shows best why a model does not fit a runtime."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from opshift.converter.refusals import Refusal
from opshift.registry.errors import NotYetIntroduced
from opshift.runtimes.check_support import MissingKernel
from opshift.runtimes.model_nodes import ModelNodes

if TYPE_CHECKING:
    from opshift.analysis.fit.cheapest import Attempt

MAX_COMPLETED = 2
"""Maximum number of failed opsets for which all missing nodes are listed, not only refused nodes."""


def nearest_failure(
    failed: Sequence[Attempt], nodes: ModelNodes
) -> tuple[Attempt, tuple[MissingKernel, ...]]:
    """Return the first attempt with the fewest missing nodes of the model, and all of its missing nodes.

    Args:
        failed: the attempts, those with the lowest estimated cost first.
        nodes: the nodes of the model.
    """
    places = {each.place for each in nodes.nodes}
    nearest = sorted(failed, key=lambda each: _count_own(each.listed, places))[:MAX_COMPLETED]
    found = [(each, each.missing_with_others()) for each in nearest]
    return min(found, key=lambda each: _count_own(each[1], places))


def _count_own(missing: Iterable[MissingKernel], places: Collection[str]) -> int:
    """Count missing nodes of the model; all nodes that a conversion adds count as one node.

    A refused node counts as one, too, and would become several nodes.
    """
    found = list(chain.from_iterable(each.places for each in missing))
    own = sum(place in places for place in found)
    return own + (own < len(found))


def refused_node(refusal: Refusal) -> MissingKernel:
    """Return a refused node as a missing kernel.

    If its operator is too new for the model, no other opset helps.
    """
    is_convertible = refusal.code != NotYetIntroduced.code
    return MissingKernel(
        (refusal.place,), refusal.operator, {}, refusal.reason, refusal.remedy, is_convertible=is_convertible
    )


def count_nodes(missing: Iterable[MissingKernel]) -> int:
    """Return the number of missing nodes."""
    return sum(len(each.places) for each in missing)
