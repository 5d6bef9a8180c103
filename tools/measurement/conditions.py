"""Conditions that separate refused nodes from those that load."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product
from typing import NamedTuple

from measurement.describe import Feature, Features, Scalar

MIN_NODES = 2
"""Minimum number of refused nodes for a condition; a single refusal may have a cause without a feature."""

ORDER = ("form", "default", "attribute", "stated", "used", "empty", "rank", "type")
"""Kinds of features, in order of preference among conditions with equal effect."""


class Node(NamedTuple):
    """Measured node: its operator version, its features, and whether the runtime accepts it."""

    version: int
    features: Features
    accepted: bool
    error: str = ""


Values = tuple[tuple[Feature, frozenset[Scalar]], ...]


class Condition(NamedTuple):
    """Values of features that together refuse a node, in versions of its operator."""

    values: Values
    versions: frozenset[int]
    accepted: tuple[frozenset[Scalar], ...]
    """Values of each feature that accepted nodes have."""

    def holds(self, node: Node) -> bool:
        """Return whether the condition refuses a node."""
        return node.version in self.versions and _has_values(node, self.values)


def _has_values(node: Node, values: Values) -> bool:
    return all(feature in node.features and node.features[feature] in refused for feature, refused in values)


def find_conditions(nodes: Sequence[Node], max_features: int = 2) -> list[Condition]:
    """Return conditions that hold for no accepted node, the one that explains most refused nodes first.

    Conditions of one feature come first, and conditions of all versions before limited ones.
    """
    found: list[Condition] = []
    accepted = [each for each in nodes if each.accepted]
    left = [each for each in nodes if not each.accepted]
    for is_limited, size in product((False, True), range(1, max_features + 1)):
        while left:
            scored = (
                _scored_condition(each, accepted, left, is_limited)
                for each in _candidate_values(accepted, left, size)
            )
            best = max(filter(None, scored), default=None, key=lambda each: each[0])
            if best is None:
                break
            found.append(best[1])
            left = [each for each in left if not best[1].holds(each)]
    return found


def _candidate_values(accepted: Sequence[Node], left: Sequence[Node], size: int) -> Iterator[Values]:
    """Yield values of one or several features that refused nodes have in common."""
    counts = Counter(item for each in left for item in each.features.items())
    named = {
        (feature, value)
        for each in left
        for feature, value in each.features.items()
        if feature.kind == "attribute" and str(value) in each.error.split()
    }
    frequent = [
        (feature, value)
        for (feature, value), count in counts.items()
        # the types alone are described by kernels, not by conditions
        if (count >= MIN_NODES or (feature, value) in named) and (size > 1 or feature.kind != "type")
    ]
    for chosen in combinations(frequent, size):
        if len({feature for feature, _ in chosen}) == size:
            yield tuple((feature, frozenset([value])) for feature, value in chosen)
    if size == 1:
        groups: dict[Feature, set[Scalar]] = defaultdict(set)
        for feature, value in frequent:
            groups[feature].add(value)
        for feature, values in groups.items():
            refused = frozenset(values - {each.features.get(feature) for each in accepted})
            if len(refused) > 1:
                yield ((feature, refused),)


def _scored_condition(
    values: Values, accepted: Sequence[Node], left: Sequence[Node], is_limited: bool
) -> tuple[tuple[int, int], Condition] | None:
    """Return a condition with its rank; `None` if an accepted node contradicts the condition."""
    features = [feature for feature, _ in values]
    explained = [each.version for each in left if _has_values(each, values)]
    contradicting = {each.version for each in accepted if _has_values(each, values)}
    known = {each.version for each in accepted if all(feature in each.features for feature in features)}
    versions = _best_run(explained, contradicting, sorted(known))
    count = sum(each in versions for each in explained)
    # a pair of features that only one node has is probably a coincidence
    if count < len(features) or is_limited != bool(contradicting):
        return None
    others = tuple(
        frozenset(each.features[feature] for each in accepted if feature in each.features)
        for feature in features
    )
    preference = -sum(ORDER.index(each.kind) for each in features)
    return (count, preference), Condition(values, versions, others)


def _best_run(explained: Sequence[int], excluded: Iterable[int], known: Sequence[int]) -> frozenset[int]:
    """Return the adjacent versions, none of them excluded, that have the most explained nodes."""
    runs: list[list[int]] = [[]]
    for version in known:
        if version in excluded:
            runs.append([])
        else:
            runs[-1].append(version)
    return frozenset(max(runs, key=lambda run: sum(each in run for each in explained)))
