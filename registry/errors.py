"""Errors with fields (reason, place, remedy), and errors of definitions and name resolution."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """A location: a line of a file, or a node of a model."""

    file: str = ""
    line: int = 0
    node: str = ""

    def __str__(self) -> str:
        file = f"{self.file}:{self.line}" if self.file and self.line else self.file
        return ": ".join(filter(None, (file, self.node)))


class OpshiftError(Exception):
    """Base class of all errors that opshift raises deliberately.

    Attributes:
        reason: the problem, in one sentence.
        place: the location as a `Place`; empty if the whole input is concerned.
        remedy: advice on how to fix the problem; may be empty.
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
        """Return the fields for JSON output."""
        return {
            "error": type(self).__name__,
            "reason": self.reason,
            "place": str(self.place),
            "remedy": self.remedy,
        }


class DefinitionError(OpshiftError):
    """A definition file is invalid or cannot be read; the place is its file and line."""


class ResolveError(OpshiftError):
    """A node does not refer to any operator under its opset imports."""


class DomainNotImported(ResolveError):
    """The node's domain has no opset import."""


class NotYetIntroduced(ResolveError):
    """The operator was introduced in a later opset."""


class OperatorRemoved(ResolveError):
    """The operator was removed in this opset or an earlier one."""


class UnknownOperator(ResolveError):
    """The domain has no operator of this name."""


class UnknownDomain(ResolveError):
    """The registry has no definitions for the domain."""


class UnknownOpset(ResolveError):
    """The opset version is below 1, or newer than the registry supports."""
