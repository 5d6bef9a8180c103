"""Errors about a model as a whole, and refusals of single nodes."""

from collections.abc import Sequence

from opshift.model.errors import OpshiftError
from opshift.model.frozen_record import FrozenRecord


class Refusal(FrozenRecord):
    """Node or feature of a model that cannot be converted.

    Attributes:
        place: label of the node, with its graph or function.
        operator: operator version such as `ai.onnx.Softmax:13`, or its domain and name if it is unknown.
        reason: reason why it cannot be converted, in one sentence.
        remedy: advice to the user; may be empty.
    """

    place: str
    operator: str
    reason: str
    remedy: str = ""

    def __str__(self) -> str:
        advice = f" ({self.remedy})" if self.remedy else ""
        return f"{self.place}: {self.operator}: {self.reason}{advice}"


class ConversionRefused(OpshiftError):
    """The model cannot be converted; it is unchanged.

    Attributes:
        refusals: all nodes and features that cannot be converted.
    """

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        self.refusals = tuple(refusals)
        first = self.refusals[0]
        more = f", and {len(self.refusals) - 1} more" if len(self.refusals) > 1 else ""
        super().__init__(f"{first.operator}: {first.reason}{more}", place=first.place, remedy=first.remedy)
