"""Run both models on the same inputs, and compare what comes out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from opshift.converter.verification.compare import compare
from opshift.converter.verification.inputs import Drawn, Feeds, Given, draw, inputs_of, read_given
from opshift.converter.verification.pairs import Pair, pairs_of
from opshift.converter.verification.result import (
    CannotVerify,
    InputUsed,
    Runtime,
    Verification,
    VerificationFailed,
)
from opshift.converter.verification.runtimes import CannotRun, Source
from opshift.converter.verification.shapes import Input
from opshift.converter.verification.telling import fits, has_numbers
from opshift.registry.catalogue import Registry

NO_INPUTS = "give inputs that it runs with (--inputs FILE.npz), or compare in the runtime it is made for"


class Request(NamedTuple):
    """What to compare, and how."""

    original: Source
    converted: Source
    inputs: Given
    runtime: Runtime
    samples: int
    seed: int
    tolerance: float | None


class Ran(NamedTuple):
    """What both models gave for the same samples; of the converted one, or why it does not run."""

    pair: Pair
    drawn: Drawn
    original: list[list[Any]]
    converted: list[list[Any]]
    failure: str


def execute(request: Request, registry: Registry) -> Verification:
    """Run and compare.

    Where two runtimes give different outputs, one that runs both models decides, if there is one.

    Raises:
        CannotVerify: the original does not run with any inputs that were tried, or no runtime takes both.
        VerificationFailed: the converted model has other outputs, or does not run.
        UsageError: the given inputs are not those of the model.
    """
    graph = request.original.model.graph
    _require_same_names(request)
    inputs = inputs_of(graph)
    given = read_given(request.inputs, graph)
    doubtful: Verification | None = None
    for ran in _runs(request, inputs, given, registry):
        found = _compared(ran, inputs, given, request)
        if found.equal or not ran.pair.is_mixed:
            return found
        doubtful = doubtful or found
    assert doubtful is not None
    return doubtful


def _compared(ran: Ran, inputs: tuple[Input, ...], given: Feeds, request: Request) -> Verification:
    feeds = ran.drawn.samples[0]
    used = tuple(_used(each, feeds[each.name], each.name in given) for each in inputs)
    found = Verification(ran.pair.names, len(ran.drawn.samples), request.seed, used, ())
    if ran.failure:
        raise VerificationFailed(found, f"the converted model does not run: {ran.failure}")
    outputs = tuple(
        compare(value.name, _column(ran.original, i), _column(ran.converted, i), request.tolerance)
        for i, value in enumerate(request.original.model.graph.output)
    )
    return replace(found, outputs=outputs)


def _require_same_names(request: Request) -> None:
    names, others = (
        [value.name for value in each.model.graph.output] for each in (request.original, request.converted)
    )
    if not names:
        raise CannotVerify("the model has no outputs to compare")
    if names != others:
        nothing = Verification(("", ""), 0, request.seed, (), ())
        raise VerificationFailed(nothing, f"the outputs are {', '.join(others)}, not {', '.join(names)}")


def _runs(request: Request, inputs: tuple[Input, ...], given: Feeds, registry: Registry) -> Iterator[Ran]:
    """For each pair of runtimes the first try that tells something, or else the first with which both run.

    Raises:
        CannotVerify: there is none.
    """
    reasons: list[str] = []
    found = False
    for pair in pairs_of(request.original, request.converted, request.runtime, registry, reasons):
        ran = _best(pair, request, inputs, given, reasons)
        if ran is not None:
            found = True
            yield ran
    if not found:
        told = "; ".join(dict.fromkeys(reasons))
        raise CannotVerify(f"there is nothing that both models run with: {told}", remedy=NO_INPUTS)


def _best(
    pair: Pair, request: Request, inputs: tuple[Input, ...], given: Feeds, reasons: list[str]
) -> Ran | None:
    graph = request.original.model.graph
    poor: Ran | None = None
    for ran in _tries(pair, draw(inputs, given, request.samples, request.seed), reasons):
        if ran.failure and pair.may_disagree_on_inputs:
            reasons.append(ran.failure)
        elif fits(ran.original, graph.output) and (ran.failure or has_numbers(ran.original)):
            return ran
        else:
            poor = poor or ran
    return poor


def _tries(pair: Pair, draws: Iterator[Drawn], reasons: list[str]) -> Iterator[Ran]:
    """What each draw gives that the original runs with; if none does, the first reason is noted."""
    first = ""
    ran = False
    for drawn in draws:
        try:
            original = [pair.original.run(feeds) for feeds in drawn.samples]
        except CannotRun as error:
            first = first or error.reason
            continue
        ran = True
        try:
            yield Ran(pair, drawn, original, [pair.converted.run(feeds) for feeds in drawn.samples], "")
        except CannotRun as error:
            yield Ran(pair, drawn, original, [], error.reason)
    if not ran:
        reasons.append(first)


def _column(outputs: list[list[Any]], position: int) -> list[Any]:
    return [sample[position] for sample in outputs]


def _used(declared: Input, value: Any, is_given: bool) -> InputUsed:
    shape = value.shape if isinstance(value, np.ndarray) else None
    return InputUsed(declared.name, declared.type, shape, is_given)
