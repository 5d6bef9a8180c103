"""Fit a chain to a runtime, run the result there, and name the cause of other outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from comparison.chains import Chain
from comparison.differences import difference
from comparison.measure_nodes import MeasuredNode, measure_nodes
from measurement.run_models import Worker
from opshift.analysis.fit.fit import fit
from opshift.analysis.fit.result import FitReport
from opshift.model.errors import OpshiftError
from opshift.registry.runtimes.runtime import Runtime
from random_graphs.execution import CannotRun, run_in_onnxruntime, run_in_reference

if TYPE_CHECKING:
    import onnx

FAULTS = ("conversion", "not loaded", "not run", "kernel", "crash", "error")
"""Outcomes that are faults of the fit, or of the data about the runtime."""


NOT_RUN = {"refused": "not loaded", "fails": "not run", "crashes": "crash", "hangs": "crash"}
"""Outcome of a chain by the outcome of a worker that returns no outputs."""


class FitOutcome(NamedTuple):
    """Outcome of a chain, with details, and the fitted model if there is one.

    kind: `same`, `refused`, `conversion` (the fitted model has other outputs in the reference, too), `kernel`
        (only the runtime has other outputs), `not loaded`, `not run`, `crash` (of the runtime), `recorded`
        (one of these, and the report warns of wrong results), `uncertain` (the model does not run, and the
        report says that a node may not), `error` (of the fit), or `unknown` (no reference runs the fitted
        model).
    """

    kind: str
    details: str = ""
    fitted: onnx.ModelProto | None = None
    nodes: tuple[MeasuredNode, ...] = ()
    """The nodes of a fitted model with a fault, one by one in the runtime."""

    @property
    def culprits(self) -> list[str]:
        """The nodes with an outcome that differs from that of the reference."""
        return list(dict.fromkeys(str(each) for each in self.nodes if each.outcome.outcome != "equal"))


def fit_chain(chain: Chain, runtime: Runtime, worker: Worker) -> FitOutcome:
    """Fit a chain, run it in the runtime of a worker, compare the outputs, and locate causes of a fault."""
    outcome = _fit_and_run(chain, runtime, worker)
    if outcome.fitted is None:
        return outcome
    nodes = measure_nodes(outcome.fitted, chain.feeds, runtime, worker, chain.tolerance)
    return outcome._replace(nodes=tuple(nodes))


def _fit_and_run(chain: Chain, runtime: Runtime, worker: Worker) -> FitOutcome:
    try:
        result = fit(chain.model, runtime)
    except OpshiftError as error:
        return FitOutcome("refused", str(error))
    except Exception as error:
        return FitOutcome("error", f"{type(error).__name__}: {error}")
    fitted = result.model
    outcome, found = worker.outputs(fitted.SerializeToString(), chain.feeds)
    if outcome.outcome in NOT_RUN:
        report = result.report
        kind = (
            "recorded" if report.warnings else "uncertain" if report.uncertain else NOT_RUN[outcome.outcome]
        )
        return FitOutcome(kind, outcome.error, fitted)
    problem = difference(found, chain.outputs, chain.tolerance)
    if not problem:
        return FitOutcome("same")
    return FitOutcome(_cause(chain, fitted, result.report), problem, fitted)


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
