"""Inexact conversions that a caller allows."""

from __future__ import annotations

from collections.abc import Collection

from opshift.registry.steps import Allow


class Allowances:
    """Inexact conversions that the caller allows, and each use in one conversion with its reason."""

    def __init__(self, allowed: Collection[Allow] = ()) -> None:
        self.allowed = frozenset(allowed)
        self.used: list[tuple[Allow, str]] = []

    def is_allowed(self, kind: Allow | None) -> bool:
        """Return whether a kind is allowed."""
        return kind in self.allowed

    def allow(self, kind: Allow, reason: str) -> bool:
        """Return whether a kind is allowed; if so, record its use with the reason."""
        if kind not in self.allowed:
            return False
        self.used.append((kind, reason))
        return True
