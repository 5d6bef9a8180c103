"""Fit a chain to a runtime, run the result there, and name the cause of other outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx

from comparison.chains import Chain
from graphs.execution import CannotRun, run_in_onnxruntime, run_in_reference
from graphs.sameness import assert_same
from measurement.run_models import Worker
from opshift.analysis.fit.fit import fit
from opshift.analysis.fit.result import FitReport
from opshift.model.errors import OpshiftError
from opshift.registry.runtimes.runtime import Runtime

FAULTS = ("conversion", "not loaded", "not run", "kernel", "crash", "error")
"""Outcomes that are faults of the fit, or of the data about the runtime."""


class FitOutcome(NamedTuple):
    """Outcome of a chain, with details, and the fitted model if there is one.

    kind: `same`, `refused`, `conversion` (the fitted model has other outputs in the reference, too), `kernel`
        (only the runtime has other outputs), `recorded` (likewise, and the data about the runtime say so),
        `not loaded`, `not run`, `crash` (of the runtime), `error` (of the fit), or `unknown` (no reference runs
        the fitted model).
    """

    kind: str
    details: str = ""
    fitted: onnx.ModelProto | None = None


def fit_chain(chain: Chain, runtime: Runtime, worker: Worker) -> FitOutcome:
    """Fit a chain, run it in the runtime of a worker, and compare the outputs."""
    try:
        content, report = fit(chain.model.SerializeToString(), runtime)
    except OpshiftError as error:
        return FitOutcome("refused", str(error))
    except Exception as error:
        return FitOutcome("error", f"{type(error).__name__}: {error}")
    fitted = onnx.ModelProto.FromString(content)
    outcome, found = worker.outputs(content, chain.feeds)
    match outcome.outcome:
        case "refused":
            return FitOutcome("not loaded", outcome.error, fitted)
        case "fails":
            return FitOutcome("not run", outcome.error, fitted)
        case "crashes" | "hangs":
            return FitOutcome("crash", outcome.error, fitted)
    problem = difference(found, chain.outputs, chain.tolerance)
    if not problem:
        return FitOutcome("same")
    return FitOutcome(_cause(chain, fitted, report), problem, fitted)


def _cause(chain: Chain, fitted: onnx.ModelProto, report: FitReport) -> str:
    """Return the cause of other outputs."""
    has_run = False
    for run in (run_in_onnxruntime, run_in_reference):
        try:
            outputs = run(fitted, chain.feeds)
        except CannotRun:
            continue
        has_run = True
        if not difference(outputs, chain.outputs, chain.tolerance):
            return "recorded" if report.warnings else "kernel"
    return "conversion" if has_run else "unknown"


def difference(found: Sequence[Any], expected: Sequence[Any], tolerance: float) -> str:
    """Return how outputs differ; empty if they are equal up to rounding."""
    try:
        assert_same(found, [_readable(each) for each in expected], tolerance)
    except AssertionError as error:
        return " ".join(str(error).split())
    return ""


def _readable(value: Any) -> Any:
    return value.astype("U") if value.dtype.kind == "O" else value
