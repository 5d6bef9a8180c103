"""Fit a chain to a runtime, run the result there, and find the cause of different outputs."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import onnxruntime
from onnx.inliner import inline_local_functions

from comparison.chains import Chain
from comparison.differences import difference
from comparison.measure_nodes import MeasuredNode, at_known_opset, conflicting_node, measure_nodes
from measurement.run_models import Worker
from opshift.analysis.fit.fit import fit
from opshift.analysis.fit.result import FitReport
from opshift.model.errors import OpshiftError
from opshift.model.messages import ModelProto
from opshift.registry.registry import default_registry
from opshift.registry.runtimes.files import get_runtime
from opshift.registry.runtimes.runtime import Runtime
from opshift.runtimes.check_support import RuntimeCheck
from opshift.runtimes.model_nodes import ModelNodes
from random_graphs.execution import CannotRun, run_anywhere, run_in_onnxruntime, run_in_reference

if TYPE_CHECKING:
    import onnx

FAULTS = ("conversion", "not loaded", "not run", "kernel", "crash", "error")
"""Outcomes that show a fault of the fit or of the data about the runtime."""


NOT_RUN = {"refused": "not loaded", "fails": "not run", "crashes": "crash", "hangs": "crash"}
"""Maps the outcome of a worker without outputs to the outcome of the chain."""


class FitOutcome(NamedTuple):
    """Outcome of a chain, with details, and the fitted model if there is one.

    kind: `same`, `refused`, `conversion` (the fitted model has other outputs in the reference, too), `kernel`
        (only the runtime has other outputs), `not loaded`, `not run`, `crash` (of the runtime), `recorded`
        (one of these, and the report warns of wrong results), `unrelated` (one of these, and without
        recognition, too), `conflict` (instead of `conversion` and
        `kernel`, if the references disagree about a node of the chain or of the fitted model, which the
        details name, and if the runtime has the outputs of one of them where the other agrees; or if the
        original model has other outputs in another run of the reference; or instead of `kernel`, if the data
        about the reference has wrong results of all nodes that differ),
        `uncertain` (the model does not run, and the report says that a node may not), `empty` (the model
        fails, or ends the process, with an input that has no elements and does not declare so: verdicts are
        about other runs),
        `error` (of the fit), or `unknown` (no reference runs the fitted model).
    """

    kind: str
    details: str = ""
    fitted: onnx.ModelProto | None = None
    nodes: tuple[MeasuredNode, ...] = ()
    """The nodes of a fitted model with a fault, one by one in the runtime."""
    recognized: tuple[str, ...] = ()
    """The operators that recognition found."""

    @property
    def causes(self) -> list[str]:
        """The nodes with an outcome that differs from that of the reference."""
        return list(dict.fromkeys(str(each) for each in self.nodes if each.outcome.outcome != "equal"))


def fit_chain(chain: Chain, runtime: Runtime, worker: Worker) -> FitOutcome:
    """Fit a chain, run it in a worker's runtime, compare the outputs, and find the causes of a fault."""
    outcome = _fit_and_run(chain, runtime, worker)
    if outcome.kind in FAULTS and chain.recognize:
        plain = _fit_and_run(chain._replace(recognize=()), runtime, worker)
        if plain.kind == outcome.kind or not outcome.recognized:
            return FitOutcome("unrelated", outcome.details)
    if outcome.fitted is None or outcome.kind == "same":
        return outcome
    nodes = tuple(measure_nodes(outcome.fitted, chain.feeds, runtime, worker, chain.tolerance))
    causes = [each for each in nodes if each.outcome.outcome == "differs"]
    if outcome.kind == "kernel" and causes and all(map(_is_wrong_in_reference, causes)):
        outcome = outcome._replace(kind="conflict", details=f"the reference is wrong; {outcome.details}")
    return outcome._replace(nodes=nodes)


def _is_wrong_in_reference(node: MeasuredNode) -> bool:
    """Return whether the installed onnxruntime is known, from its data, to compute a node wrongly."""
    check = RuntimeCheck(get_runtime(f"onnxruntime-{onnxruntime.__version__}"))
    return bool(check.check(ModelNodes(ModelProto.FromString(node.model), default_registry())).warnings)


def _fit_and_run(chain: Chain, runtime: Runtime, worker: Worker) -> FitOutcome:
    try:
        result = fit(chain.model, runtime, allow=chain.allow, recognize=chain.recognize)
    except OpshiftError as error:
        return FitOutcome("refused", str(error))
    except Exception as error:
        return FitOutcome("error", f"{type(error).__name__}: {error}")
    recognition = result.report.recognition
    recognized = tuple(each.operator for each in recognition.recognized) if recognition else ()
    found = _run(chain, result.model, result.report, worker)
    return found._replace(recognized=recognized)


def _run(chain: Chain, fitted: onnx.ModelProto, report: FitReport, worker: Worker) -> FitOutcome:
    """Run a fitted model in a worker's runtime, and compare its outputs with the expected ones."""
    outcome, found = worker.outputs(fitted.SerializeToString(), chain.feeds)
    if outcome.outcome in ("fails", "crashes") and _has_undeclared_empty_input(chain):
        return FitOutcome("empty", outcome.error, fitted)
    if outcome.outcome in NOT_RUN:
        # A run may fail on data that another kernel of the runtime computed wrongly. A refusal does not
        # depend on data, because models are loaded before they run.
        is_recorded = outcome.outcome != "refused" and report.warnings
        kind = "recorded" if is_recorded else "uncertain" if report.uncertain else NOT_RUN[outcome.outcome]
        return FitOutcome(kind, outcome.error, fitted)
    problem = difference(found, chain.outputs, chain.tolerance)
    if not problem:
        return FitOutcome("same")
    if not _repeats(chain):
        return FitOutcome(
            "conflict", f"the original model has other outputs in another run; {problem}", fitted
        )
    kind, is_shared = _cause(chain, fitted, found, report)
    if is_shared and (conflict := _conflict(chain, fitted)):
        return FitOutcome("conflict", f"the references disagree about {conflict}; {problem}", fitted)
    return FitOutcome(kind, problem, fitted)


def _has_undeclared_empty_input(chain: Chain) -> bool:
    """Return whether an input has no elements in this run, but does not declare a size of 0."""
    declared = {
        each.name: [
            dim.dim_value if dim.HasField("dim_value") else None for dim in each.type.tensor_type.shape.dim
        ]
        for each in chain.model.graph.input
    }
    return any(0 in np.shape(each) and 0 not in declared[name] for name, each in chain.feeds.items())


def _repeats(chain: Chain) -> bool:
    """Return whether the original model returns equal outputs again: some kernels do not write all."""
    with suppress(CannotRun):
        return not difference(run_anywhere(chain.model, chain.feeds), chain.outputs, chain.tolerance)
    return False


def _cause(chain: Chain, fitted: onnx.ModelProto, found: list[Any], report: FitReport) -> tuple[str, bool]:
    """Return the cause of different outputs, and whether the runtime's outputs equal those of a reference."""
    results = []
    for run, model in ((run_in_onnxruntime, at_known_opset(fitted)), (run_in_reference, fitted)):
        with suppress(CannotRun):
            results.append(run(model, chain.feeds))
    is_shared = any(not difference(found, each, chain.tolerance) for each in results)
    if any(not difference(each, chain.outputs, chain.tolerance) for each in results):
        return ("recorded" if report.warnings else "kernel"), is_shared
    return ("conversion" if results else "unknown"), bool(results)


def _conflict(chain: Chain, fitted: onnx.ModelProto) -> str:
    """Return a node for which the references return different outputs; empty if they agree on all nodes."""
    # The nodes of functions count: inlining makes them nodes of the graph.
    for model in (inline_local_functions(chain.model), fitted):
        if found := conflicting_node(model, chain.feeds, chain.tolerance):
            return found
    return ""
