"""Highest opset to which several models can be converted."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from opshift.analysis.reach import Reach, reach
from opshift.converter.convert import plan_version
from opshift.converter.options import AllowLike, read_allow
from opshift.converter.report import Report
from opshift.model.errors import OpshiftError, UsageError
from opshift.model.files import ModelLike, message_of, model_of
from opshift.model.messages import ModelProto
from opshift.registry.registry import Registry
from opshift.registry.steps import Allow


class NoCommonOpset(OpshiftError):
    """The models cannot be converted to one opset.

    Attributes:
        reaches: reachable opsets of each model, in the order of the models.
    """

    def __init__(self, reaches: Sequence[Reach]) -> None:
        self.reaches = tuple(reaches)
        low, lower = max(enumerate(reaches), key=lambda item: item[1].lowest)
        high, upper = min(enumerate(reaches), key=lambda item: item[1].highest)
        bounds = f"models[{low}] stops at opset {lower.lowest}, models[{high}] at {upper.highest}"
        reasons = [*(node.below for node in lower.nodes), *(node.above for node in upper.nodes)]
        why = next((f": {each}" for each in reasons if each), "")
        super().__init__(f"the models have no opset in common: {bounds}{why}")


@dataclass(frozen=True)
class CommonOpset:
    """Opsets that several models can share; as a target of `convert_version`, `highest` and the IR version.

    Attributes:
        domain: domain of the opsets.
        lowest, highest: inclusive range of opsets that all models reach.
        reaches: reachable opsets of each model, in the order of the models.
        reports: conversion of each model to `highest`; without changes if its opset is already `highest`.
    """

    domain: str
    lowest: int
    highest: int
    reaches: tuple[Reach, ...]
    reports: tuple[Report, ...]

    @property
    def opsets(self) -> Mapping[str, int]:
        """The highest common opset, by domain."""
        return {self.domain: self.highest}

    @property
    def ir_version(self) -> int:
        """The IR version that all models can have after the conversion, as `onnx.compose` requires."""
        return max(after for _, after in (each.ir_version for each in self.reports))


def common_opset(
    models: Iterable[ModelLike], domain: str = "", *, allow: AllowLike = (), registry: Registry | None = None
) -> CommonOpset:
    """Return the highest opset of a domain that all models reach, with the conversion of each model.

    A model reaches an opset if it can be converted to that opset and to every opset in between. The result is
    a target: `[convert_version(each, common) for each in models]` have the same opset and IR version.

    Args:
        models: ModelProtos, their bytes, paths, or file objects.
        domain: domain of the opsets; by default ai.onnx.
        allow: inexact conversions to allow, see `convert_version`; by default all conversions are exact.
        registry: operator definitions; by default the project's own.

    Raises:
        NoCommonOpset: no opset is reachable for all models; the error lists the limits of each model and
            their reasons.
        InvalidModel: a model is invalid, or does not import the domain.
        UsageError: the list of models is empty.
    """
    allowed = read_allow(allow)
    with ExitStack() as stack:
        loaded = [model_of(message_of(each, stack))[0] for each in models]
        return _common_opset(loaded, domain, allowed, registry)


def _common_opset(
    loaded: Sequence[ModelProto], domain: str, allowed: frozenset[Allow], registry: Registry | None
) -> CommonOpset:
    if not loaded:
        raise UsageError("no models are given", remedy="pass a list of models or paths")
    reaches = tuple(reach(each, domain, allow=allowed, registry=registry) for each in loaded)
    lowest = max(each.lowest for each in reaches)
    highest = min(each.highest for each in reaches)
    if lowest > highest:
        raise NoCommonOpset(reaches)
    canonical = reaches[0].domain
    plans = (plan_version(each, {canonical: highest}, allow=allowed, registry=registry) for each in loaded)
    return CommonOpset(canonical, lowest, highest, reaches, tuple(map(Report.of, plans)))
