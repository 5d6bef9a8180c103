"""Existing operators that are similar to a proposed one."""

from __future__ import annotations

import difflib

from opshift.proposals.draft import Defined
from opshift.registry.models import OperatorVersion

MOST = 5


def near_operators(draft: Defined) -> list[str]:
    """Return the operators of the domain with a similar name, followed by those with the same signature.

    At most `MAX_SIMILAR` names are returned.
    """
    version, registry = draft.version, draft.registry
    others = [each for each in registry.names(version.domain) if each != version.name]
    names_by_lower = {each.lower(): each for each in others}
    similar_names = [
        names_by_lower[each] for each in difflib.get_close_matches(version.name.lower(), names_by_lower, MOST)
    ]
    signature = _signature(version)
    # Without attributes a signature is too common to indicate similarity.
    same_signature = [] if not version.attributes else [
        each for each in others if _signature(_newest(draft, each)) == signature and each not in similar_names
    ]  # fmt: skip
    return [*similar_names, *same_signature][:MOST]


def _newest(draft: Defined, name: str) -> OperatorVersion:
    operator = draft.registry.operator(name, draft.version.domain)
    assert operator is not None
    return operator.versions[-1]


def _signature(version: OperatorVersion) -> tuple[object, ...]:
    parameters = [(each.option, version.types_of(each)) for each in (*version.inputs, *version.outputs)]
    attributes = {(name, each.type) for name, each in version.attributes.items()}
    return (len(version.inputs), tuple(parameters), frozenset(attributes))
