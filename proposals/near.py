"""Operators that are like a proposed one."""

from __future__ import annotations

import difflib

from opshift.proposals.draft import Defined
from opshift.registry.models import OperatorVersion

MOST = 5


def near_operators(draft: Defined) -> list[str]:
    """Names of the domain's operators that are spelled alike, then of those with the same signature."""
    version, registry = draft.version, draft.registry
    others = [each for each in registry.names(version.domain) if each != version.name]
    spelled = {each.lower(): each for each in others}
    alike = [spelled[each] for each in difflib.get_close_matches(version.name.lower(), spelled, MOST)]
    wanted = _signature(version)
    same = [] if not version.attributes else [
        each for each in others if _signature(_newest(draft, each)) == wanted and each not in alike
    ]  # fmt: skip
    return [*alike, *same][:MOST]


def _newest(draft: Defined, name: str) -> OperatorVersion:
    operator = draft.registry.operator(name, draft.version.domain)
    assert operator is not None
    return operator.versions[-1]


def _signature(version: OperatorVersion) -> tuple[object, ...]:
    parameters = [(each.option, version.types_of(each)) for each in (*version.inputs, *version.outputs)]
    attributes = {(name, each.type) for name, each in version.attributes.items()}
    return (len(version.inputs), tuple(parameters), frozenset(attributes))
