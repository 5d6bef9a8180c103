"""Which runtime runs which of the two models."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

from opshift.converter.verification.result import Runtime
from opshift.converter.verification.runtimes import CannotRun, Opener, Runner, Source, openers
from opshift.registry.catalogue import Registry


class Pair(NamedTuple):
    """Both models, ready to run."""

    original: Runner
    converted: Runner

    @property
    def names(self) -> tuple[str, str]:
        """The two runtimes."""
        return self.original.name, self.converted.name

    @property
    def is_mixed(self) -> bool:
        """Whether they are run by different ones."""
        return self.original.name != self.converted.name

    @property
    def may_disagree_on_inputs(self) -> bool:
        """Whether inputs may be too much for the one runtime and not for the other."""
        return self.is_mixed and not self.converted.is_broken


def pairs_of(
    original: Source, converted: Source, runtime: Runtime, registry: Registry, reasons: list[str]
) -> Iterator[Pair]:
    """The ways to run both, by the runtimes' order; `reasons` gets why a model is in none of a runtime's.

    A converted model that a runtime refuses as wrong, but not the original, is in a pair all the same, and
    fails when it is run.
    """
    ones: list[Runner] = []
    others: list[Runner] = []
    for opener in openers(runtime):
        one, other = (_opened(opener, each, registry) for each in (original, converted))
        if isinstance(other, CannotRun) and not other.unsupported and not _is_wrong(one):
            other = _broken(other)
        reasons += [each.reason for each in (one, other) if isinstance(each, CannotRun)]
        ones += [one] if isinstance(one, Runner) else []
        others += [other] if isinstance(other, Runner) else []
    for first, second in product(ones, others):
        yield Pair(first, second)


def _opened(opener: Opener, source: Source, registry: Registry) -> Runner | CannotRun:
    try:
        return opener(source, registry)
    except CannotRun as error:
        return error


def _is_wrong(opened: Runner | CannotRun) -> bool:
    return isinstance(opened, CannotRun) and not opened.unsupported


def _broken(error: CannotRun) -> Runner:
    def run(feeds: Any) -> list[Any]:
        raise error

    return Runner(error.reason.partition(":")[0], run, is_broken=True)
