"""Deviations from an exact conversion that a caller allows, such as `approximate`."""

from __future__ import annotations

from collections.abc import Collection

from opshift.registry.steps import Allow


class Allowances:
    """Deviations that the caller allows, see `Allow`, and their uses in one conversion, with reasons."""

    def __init__(self, allowed: Collection[Allow] = ()) -> None:
        self.allowed = frozenset(allowed)
        self.used: list[tuple[Allow, str]] = []

    def is_allowed(self, kind: Allow | None) -> bool:
        """Return whether the caller allows a kind of deviation; false for `None`."""
        return kind in self.allowed

    def allow(self, kind: Allow, reason: str) -> bool:
        """Return whether the caller allows a kind of deviation; if so, record its use with the reason."""
        if kind not in self.allowed:
            return False
        self.used.append((kind, reason))
        return True
