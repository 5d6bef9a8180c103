"""What can go wrong with a model as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opshift.registry.errors import OpshiftError


class InvalidModel(OpshiftError):
    """The input is not a model, or breaks a rule without which it has no meaning."""


class UsageError(OpshiftError):
    """The request itself makes no sense: a target below 1, an output that is the input."""


class CannotWrite(OpshiftError):
    """The output cannot be written: no room, no right; the file stays as it was."""


@dataclass(frozen=True)
class Refusal:
    """One node that cannot be converted.

    Attributes:
        place: the graph or function, and the node in it.
        operator: what the node is, as `ai.onnx.Softmax:13`, or as much of it as could be told.
        reason: why not, in one sentence.
        remedy: what would help.
    """

    place: str
    operator: str
    reason: str
    remedy: str = ""

    def __str__(self) -> str:
        advice = f" ({self.remedy})" if self.remedy else ""
        return f"{self.place}: {self.operator}: {self.reason}{advice}"


class ConversionRefused(OpshiftError):
    """The model cannot be converted; nothing was changed.

    Attributes:
        refusals: every node in the way, all at once.
    """

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        self.refusals = tuple(refusals)
        first = self.refusals[0]
        more = f", and {len(self.refusals) - 1} more" if len(self.refusals) > 1 else ""
        super().__init__(f"{first.operator}: {first.reason}{more}", place=first.place, remedy=first.remedy)
