"""Errors as values: fields first, one sentence, the place, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """Where something is: a line of a file, or a node of a model."""

    file: str = ""
    line: int = 0
    node: str = ""

    def __str__(self) -> str:
        file = f"{self.file}:{self.line}" if self.file and self.line else self.file
        return ": ".join(filter(None, (file, self.node)))


class OpshiftError(Exception):
    """The root of every error that opshift raises on purpose.

    Attributes:
        reason: what is wrong, in one sentence.
        place: where, as `Place`; empty if it concerns the whole input.
        remedy: what the reader can do about it; may be empty.
    """

    def __init__(self, reason: str, *, place: Place | str = "", remedy: str = "") -> None:
        self.reason = reason
        self.place = Place(node=place) if isinstance(place, str) else place
        self.remedy = remedy
        super().__init__(reason)

    def __str__(self) -> str:
        where = f"{self.place}: " if str(self.place) else ""
        advice = f" ({self.remedy})" if self.remedy else ""
        return f"{where}{self.reason}{advice}"

    def as_dict(self) -> dict[str, str]:
        """The fields, for `--format json`."""
        return {
            "error": type(self).__name__,
            "reason": self.reason,
            "place": str(self.place),
            "remedy": self.remedy,
        }


class DefinitionError(OpshiftError):
    """A file of operator definitions cannot be used; the place is its file and line."""


class ResolveError(OpshiftError):
    """A node names no operator under its opset imports."""


class DomainNotImported(ResolveError):
    """The node's domain has no opset import."""


class NotYetIntroduced(ResolveError):
    """The operator exists, but only from a later opset on."""


class OperatorRemoved(ResolveError):
    """The operator existed in an earlier opset and was taken out."""


class UnknownOperator(ResolveError):
    """No operator of this name in the domain."""


class UnknownDomain(ResolveError):
    """The registry holds no definitions for the domain."""


class UnknownOpset(ResolveError):
    """The opset version is below 1, or newer than the registry knows."""
