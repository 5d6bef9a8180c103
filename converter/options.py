"""Options of a conversion, and the use of the inexact conversions that the caller allows."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TypedDict, get_args

from opshift.converter.target import IrVersionLike, Target, TargetLike, read_target
from opshift.model.errors import UsageError
from opshift.registry.registry import Registry, default_registry
from opshift.registry.steps import Allow

AllowLike = Allow | Iterable[Allow]

ALLOW_VALUES: tuple[Allow, ...] = get_args(Allow)


class ConvertArguments(TypedDict, total=False):
    """Keyword arguments of `convert` and `convert_version`."""

    allow: AllowLike
    ir_version: IrVersionLike
    registry: Registry | None
    inplace: bool
    check: bool
    reversible: bool


@dataclass(frozen=True)
class Options:
    """Validated options of a conversion, see `convert_version`."""

    target: Target
    registry: Registry
    allow: frozenset[Allow] = frozenset()
    inplace: bool = False
    check: bool = False
    reversible: bool = False

    @classmethod
    def of(
        cls,
        target: TargetLike | None,
        *,
        allow: str | Iterable[str] = (),
        ir_version: IrVersionLike = None,
        registry: Registry | None = None,
        inplace: bool = False,
        check: bool = False,
        reversible: bool = False,
    ) -> Options:
        """Return the options for the arguments of `convert_version`, or raise its errors about them."""
        registry = registry or default_registry()
        wanted = read_target(target, registry, ir_version)
        return cls(wanted, registry, read_allow(allow), inplace, check, reversible)


def read_allow(allow: str | Iterable[str]) -> frozenset[Allow]:
    """Return the values of an `allow` argument, or raise UsageError for an unknown one."""
    wanted = {allow} if isinstance(allow, str) else set(allow)
    unknown = sorted(map(str, wanted.difference(ALLOW_VALUES)))
    if unknown:
        similar = difflib.get_close_matches(unknown[0], ALLOW_VALUES, n=1)
        hint = f"; did you mean {similar[0]!r}?" if similar else ""
        raise UsageError(
            f"unknown allow value {unknown[0]!r}{hint}",
            remedy=f"the allowed values are {', '.join(ALLOW_VALUES)}",
        )
    return frozenset(each for each in ALLOW_VALUES if each in wanted)


class Allowances:
    """Inexact conversions that the caller allows, and each use in one conversion with its reason."""

    def __init__(self, allowed: Collection[Allow] = ()) -> None:
        self._allowed = allowed
        self.used: list[tuple[Allow, str]] = []

    def is_allowed(self, kind: Allow | None) -> bool:
        """Return whether a kind is allowed."""
        return kind in self._allowed

    def allow(self, kind: Allow, reason: str) -> bool:
        """Return whether a kind is allowed; if so, record its use with the reason."""
        if kind not in self._allowed:
            return False
        self.used.append((kind, reason))
        return True
