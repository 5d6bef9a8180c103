"""Express conditions on nodes as restrictions of a runtime file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from measurement.conditions import Condition
from measurement.describe import ABSENT, COMPUTED, CONSTANT, Feature, Scalar
from opshift.model.types import short_type


class Part(NamedTuple):
    """Part of a restriction: a key of `when` (or of `unless`, for an exception), and its text."""

    is_exception: bool
    key: str
    value: dict[str, Any] | list[str]
    text: str


FORMS = {
    frozenset({COMPUTED}): (False, "computed", "is not constant"),
    frozenset({CONSTANT}): (False, "constant", "is constant"),
    frozenset({ABSENT}): (False, "absent", "is omitted"),
    frozenset({CONSTANT, COMPUTED}): (False, "present", "is given"),
    frozenset({ABSENT, COMPUTED}): (True, "constant", "is not constant"),
    frozenset({ABSENT, CONSTANT}): (True, "computed", "is omitted or constant"),
}
"""For each set of refused forms of an input: whether the key belongs to `unless`, the key, and the reason."""


def restriction(condition: Condition, versions: Sequence[int]) -> dict[str, Any]:
    """Return a condition in the format of a runtime file, given the versions of the operator with kernels."""
    is_alone = len(condition.values) == 1
    parts = [
        _part_of_feature(feature, refused, accepted if is_alone else frozenset())
        for (feature, refused), accepted in zip(condition.values, condition.accepted, strict=True)
    ]
    row: dict[str, Any] = {}
    if condition.versions != set(versions):
        row["versions"] = [min(condition.versions), max(condition.versions)]
    row["reason"] = " and ".join(part.text for part in parts)
    for part in parts:
        side = row.setdefault("unless" if part.is_exception else "when", {})
        if isinstance(part.value, list):
            side.setdefault(part.key, []).extend(part.value)
        else:
            side.setdefault(part.key, {}).update(part.value)
    return row


def _part_of_feature(feature: Feature, refused: frozenset[Scalar], accepted: frozenset[Scalar]) -> Part:
    """Return a part for a feature, given refused values, and the accepted ones if all others are refused."""
    kind, name, value = feature
    has = True in refused
    if kind == "form":
        is_exception, key, text = FORMS[frozenset(map(str, refused))]
        return Part(is_exception, key, [name], f"`{name}` {text}")
    if kind == "used":
        return Part(False, "present" if has else "absent", [name], f"`{name}` is {'' if has else 'not '}used")
    if kind == "empty":
        text = f"`{name}` is {'' if has else 'not '}empty"
        return Part(not has, "dimensions", {name: {"0": [0]}}, text)
    if kind == "stated":
        return Part(has, "attributes", {name: [None]}, f"`{name}` is {'' if has else 'not '}set")
    if kind == "default":
        return Part(not has, "attributes", {name: [value]}, f"`{name}` is {'' if has else 'not '}{value}")
    if kind == "rank":
        return _rank_part(name, refused, accepted)
    if kind == "type":
        listed = sorted(short_type(str(each)) for each in refused)
        return Part(False, "types", {name: listed}, f"`{name}` has the type {_alternatives_text(listed)}")
    values = sorted(refused, key=str)
    return Part(False, "attributes", {name: values}, f"`{name}` is {_alternatives_text(values)}")


def _rank_part(name: str, refused: frozenset[Scalar], accepted: frozenset[Scalar]) -> Part:
    few = sorted(each for each in refused if isinstance(each, int))
    many = [each for each in accepted if isinstance(each, int)]
    if many and few[-1] > max(many):
        ranks = [each for each in range(min(many), max(many) + 1) if each not in few]
        return Part(True, "ranks", {name: ranks}, f"the rank of `{name}` is not {_alternatives_text(ranks)}")
    return Part(False, "ranks", {name: few}, f"the rank of `{name}` is {_alternatives_text(few)}")


def _alternatives_text(values: Sequence[object]) -> str:
    texts = list(map(str, values))
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}"
