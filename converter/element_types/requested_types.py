"""Changes of element types that a caller can request, and operators that keep their types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from opshift.converter.arguments import members_of
from opshift.model.element_types import BY_NAME
from opshift.model.errors import UsageError
from opshift.model.message_text import hint_at_similar
from opshift.opsets import OPSETS
from opshift.registry.precompiled import load_precompiled

TypesLike = str | Mapping[str, str] | Iterable[str]

KEPT_TYPES = OPSETS / "kept_types.yaml"

EXACT_CHANGES = frozenset(
    {
        ("bfloat16", "float"),
        ("bfloat16", "double"),
        ("float16", "float"),
        ("float16", "double"),
        ("float", "double"),
    }
)
"""Changes to a type that represents all numbers of the old type."""

CHANGES = EXACT_CHANGES | {
    ("bfloat16", "float16"), ("float", "float16"), ("double", "float16"), ("double", "float"),
    ("int64", "int32"),
}  # fmt: skip
"""Supported changes of element types."""

KEPT_AS = {("bfloat16", "float16"): "float"}
"""Type of values that cannot get the new type, by (old, new): more runtimes have float than bfloat16."""

INTEGERS = ("int64", "int32")
"""Change of integers; it is exact, because only values with bounds in the range of int32 change."""


def read_types(types: TypesLike) -> tuple[tuple[str, str], ...]:
    """Return the requested changes as pairs of an old and a new element type.

    Args:
        types: a mapping such as `{"bfloat16": "float16"}`, or texts such as `bfloat16=float16`.

    Raises:
        UsageError: a text is malformed, a type is unknown or has two replacements, or the change is
            not supported.
    """
    given = (
        types.items()
        if isinstance(types, Mapping)
        else (_split_pair(str(each)) for each in members_of(types))
    )
    found: dict[str, str] = {}
    for old, new in given:
        for name in (old, new):
            if not isinstance(name, str) or name not in BY_NAME:
                reason = f"{name!r} is not an element type{hint_at_similar(str(name), BY_NAME)}"
                raise UsageError(reason, remedy="write bfloat16=float16, for example")
        if found.setdefault(old, new) != new:
            reason = f"two new types are requested for {old}: {found[old]} and {new}"
            raise UsageError(reason, remedy="pass only one")
        if (old, new) not in CHANGES:
            supported = ", ".join(sorted(f"{one}={other}" for one, other in CHANGES))
            raise UsageError(
                f"cannot convert {old} to {new} in a whole model", remedy=f"use one of {supported}"
            )
    return tuple(found.items())


def _split_pair(text: str) -> tuple[str, str]:
    old, equals, new = str(text).partition("=")
    if not equals:
        reason = f"{text!r} is not a change of an element type"
        raise UsageError(reason, remedy="write bfloat16=float16, for example")
    return old.strip(), new.strip()


@cache
def kept_operators(path: Path = KEPT_TYPES) -> Mapping[str, Mapping[str, str]]:
    """Return the operators and inputs that keep their types, `always` or when `narrowing`, with reasons.

    An entry is an operator of the default domain, an input such as `Pad.axes`, or another domain. The entries
    of `attributes` are FLOAT attributes that are numbers of the type of the data, such as `Pad.value`.
    """
    return MappingProxyType(load_precompiled(path, (), lambda: _read_kept_types(path)))


def _read_kept_types(path: Path) -> dict[str, dict[str, str]]:
    from opshift.registry.yaml_files import load_yaml

    return {kind: dict(operators) for kind, operators in load_yaml(path).items()}
