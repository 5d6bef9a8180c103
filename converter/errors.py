"""Error for a model that cannot be converted."""

from collections.abc import Sequence

from opshift.converter.refusals import Refusal, RefusalGroup, group_refusals
from opshift.model.errors import OpshiftError


class ConversionRefused(OpshiftError):
    """Error for a model that cannot be converted; the model remains unchanged.

    Attributes:
        refusals: all nodes and features that cannot be converted.
    """

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        self.refusals = tuple(refusals)
        first, *others = self.groups
        more = sum(len(each.refusals) for each in others)
        example = first.refusals[0]
        reason = first.summary if len(first.refusals) > 1 else f"{example.operator}: {example.reason}"
        reason += f", and {more:,} more" if more else ""
        super().__init__(reason, place=example.place, remedy=first.remedy)

    @property
    def groups(self) -> tuple[RefusalGroup, ...]:
        """Refusals grouped by cause."""
        return group_refusals(self.refusals)
