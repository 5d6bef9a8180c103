"""The opset that several models can share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from opshift.converter.convert import model_of, plan_version
from opshift.converter.errors import UsageError
from opshift.converter.reach import Reach, reach
from opshift.converter.report import Report
from opshift.registry.catalogue import Registry
from opshift.registry.errors import OpshiftError


class NoCommonOpset(OpshiftError):
    """Some models cannot be brought to one opset.

    Attributes:
        reaches: how far each of them goes, in the order in which they were given.
    """

    def __init__(self, reaches: Sequence[Reach]) -> None:
        self.reaches = tuple(reaches)
        low = max(range(len(reaches)), key=lambda index: reaches[index].lowest)
        high = min(range(len(reaches)), key=lambda index: reaches[index].highest)
        bounds = (
            f"models[{low}] stops at opset {reaches[low].lowest}, models[{high}] at {reaches[high].highest}"
        )
        reasons = (
            *(node.below for node in reaches[low].nodes),
            *(node.above for node in reaches[high].nodes),
        )
        why = next(filter(None, reasons), "")
        super().__init__(f"the models have no opset in common: {bounds}{f': {why}' if why else ''}")


@dataclass(frozen=True)
class CommonOpset:
    """Where several models can meet.

    Attributes:
        domain: the domain.
        lowest, highest: the opsets that all of them reach, these and all between.
        reaches: how far each goes, in the order in which they were given.
        reports: what takes each to `highest`; nothing where it is there already.
    """

    domain: str
    lowest: int
    highest: int
    reaches: tuple[Reach, ...]
    reports: tuple[Report, ...]


def common_opset(
    models: Iterable[Any],
    domain: str = "",
    *,
    allow: str | Iterable[str] = (),
    registry: Registry | None = None,
) -> CommonOpset:
    """The highest opset of a domain that all models can be converted to, and how each gets there.

    A model reaches an opset if it can be converted to it and to all between.

    Args:
        models: ModelProtos, their bytes, or paths.
        domain: by default ai.onnx.
        allow: as for `convert_version`; without it what is reached is reached exactly.
        registry: as for `convert_version`.

    Raises:
        NoCommonOpset: there is none; the error has how far each model goes, and what stops it.
        InvalidModel: a model has no meaning as it is, or does not import the domain.
        UsageError: no models are given.
    """
    read = [model_of(each)[0] for each in models]
    if not read:
        raise UsageError("no models are given", remedy="give a list of models or paths")
    allowed = [allow] if isinstance(allow, str) else list(allow)
    reaches = tuple(reach(each, domain, allow=allowed, registry=registry) for each in read)
    lowest = max(each.lowest for each in reaches)
    highest = min(each.highest for each in reaches)
    if lowest > highest:
        raise NoCommonOpset(reaches)
    found = reaches[0].domain
    plans = (plan_version(each, {found: highest}, allow=allowed, registry=registry) for each in read)
    return CommonOpset(found, lowest, highest, reaches, tuple(map(Report.of, plans)))
