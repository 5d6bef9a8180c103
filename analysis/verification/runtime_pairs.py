"""Pairs of runtimes for the original and the converted model."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from opshift.analysis.verification.result import Runtime
from opshift.analysis.verification.runtimes import CannotRun, Opener, Runner, RuntimeModel, openers
from opshift.registry.registry import Registry


class RuntimePair(NamedTuple):
    """Original and converted model, each loaded into a runtime."""

    original: Runner
    converted: Runner

    @property
    def names(self) -> tuple[str, str]:
        """Names of the two runtimes."""
        return self.original.name, self.converted.name

    @property
    def is_mixed(self) -> bool:
        """Whether the runtimes differ."""
        return self.original.name != self.converted.name

    @property
    def may_disagree_on_inputs(self) -> bool:
        """Whether one runtime may reject inputs that the other one accepts."""
        return self.is_mixed and not self.converted.is_broken


def runtime_pairs(
    original: RuntimeModel, converted: RuntimeModel, runtime: Runtime, registry: Registry, reasons: list[str]
) -> Iterator[RuntimePair]:
    """Yield pairs of runtimes that can load both models, in the order of preference.

    If a runtime rejects the converted model as invalid, but not the original, the pair is included and fails
    when it runs. Reasons why runtimes cannot load a model are appended to `reasons`.
    """
    originals: list[Runner] = []
    conversions: list[Runner] = []
    for opener in openers(runtime):
        one, other = (_try_open(opener, each, registry) for each in (original, converted))
        if isinstance(other, CannotRun) and not other.unsupported and not _is_rejected(one):
            other = _raising_runner(other)
        reasons += [each.reason for each in (one, other) if isinstance(each, CannotRun)]
        originals += [one] if isinstance(one, Runner) else []
        conversions += [other] if isinstance(other, Runner) else []
    for first, second in product(originals, conversions):
        yield RuntimePair(first, second)


def _try_open(opener: Opener, source: RuntimeModel, registry: Registry) -> Runner | CannotRun:
    try:
        return opener(source, registry)
    except CannotRun as error:
        return error


def _is_rejected(opened: Runner | CannotRun) -> bool:
    return isinstance(opened, CannotRun) and not opened.unsupported


def _raising_runner(error: CannotRun) -> Runner:
    def run(feeds: object) -> list[object]:
        raise error

    return Runner(error.reason.partition(":")[0], run, is_broken=True)
