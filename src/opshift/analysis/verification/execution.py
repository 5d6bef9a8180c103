"""Execution of both models on the same inputs, and comparison of the outputs."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from opshift.analysis.verification.compare import compare_output
from opshift.analysis.verification.dimension_sizes import ModelInput
from opshift.analysis.verification.inputs import Feeds, generate_inputs
from opshift.analysis.verification.nonfinite import NonfiniteInputs, replaceable_inputs, run_nonfinite
from opshift.analysis.verification.result import (
    CannotVerify,
    InputUsed,
    OutputCompared,
    Runtime,
    Verification,
    VerificationFailed,
)
from opshift.analysis.verification.runtimes import CannotRun, Runner, RuntimeModel, RuntimePair, runtime_pairs
from opshift.model.messages import TypeProto, ValueInfoProto
from opshift.model.progress import Progress
from opshift.model.types import shape_of
from opshift.registry.registry import Registry

PROVIDE_INPUTS = (
    "provide inputs that the model accepts (--inputs FILE.npz), or private operators (--verify-with MODULE, "
    "--custom-ops LIBRARY), or compare in the intended runtime"
)

ELEMENTS_REMEDY = "provide inputs for which it has elements (--inputs FILE.npz)"

SampleOutputs = Sequence[Sequence[object]]
"""Outputs of the model for each sample."""


class RunRequest(NamedTuple):
    """Models to compare, the inputs of the original, values of the caller for some of them, and settings."""

    original: RuntimeModel
    converted: RuntimeModel
    inputs: tuple[ModelInput, ...]
    given: Feeds
    runtime: Runtime
    samples: int
    seed: int
    tolerance: float | None
    progress: Progress


class RunResult(NamedTuple):
    """Outputs of both models for the same samples."""

    samples: Sequence[Feeds]
    original: SampleOutputs
    converted: SampleOutputs
    """Empty after a failure."""
    failure: str
    """Reason why the converted model does not run; empty if it runs."""


def execute(request: RunRequest, registry: Registry) -> tuple[Verification, Feeds]:
    """Run both models and compare their outputs; return the inputs of a different sample, too.

    If two different runtimes disagree, a runtime that runs both models decides, if there is one. Raises
    CannotVerify if both models never run on the same inputs.
    """
    _require_same_names(request)
    reasons: list[str] = []
    mixed_result: tuple[Verification, Feeds] | None = None
    for pair in runtime_pairs(request.original, request.converted, request.runtime, registry, reasons):
        result = _most_conclusive_run(pair, request, reasons)
        if result is None:
            continue
        verification = _verify_run(result, pair, request)
        # a difference between two runtimes may be theirs, and not the conversion's
        worst = next((each.worst for each in verification.outputs if not each.equal), None)
        feeds = result.samples[worst.sample if worst else 0]
        if verification.equal:
            _require_elements(verification)
            return _with_nonfinite(verification, result, request, registry)
        if not pair.is_mixed:
            _require_elements(verification)
            return verification, feeds
        mixed_result = mixed_result or (verification, feeds)
    if mixed_result is None:
        reason = "no inputs and runtimes were found with which both models run"
        raise CannotVerify(f"{reason}: {'; '.join(dict.fromkeys(reasons))}", remedy=PROVIDE_INPUTS)
    return mixed_result


def _with_nonfinite(
    verification: Verification, result: RunResult, request: RunRequest, registry: Registry
) -> tuple[Verification, Feeds]:
    """Compare models that agree on infinities and NaN, too; return the inputs of a different sample."""
    feeds = result.samples[0]
    if request.runtime != "auto":
        return verification, feeds
    models = request.original, request.converted
    replaceable = replaceable_inputs(request.inputs, request.given)
    inputs = NonfiniteInputs(*models, feeds, replaceable, request.seed)
    found = run_nonfinite(inputs, request.tolerance, registry)
    if not found.samples:
        return verification, feeds
    outputs = _compare_outputs(found.original, found.converted, request)
    worst = next((each.worst for each in outputs if not each.equal), None)
    if worst is None:
        return replace(verification, nonfinite=len(found.samples)), feeds
    changed = replace(verification, nonfinite=len(found.samples), outputs=outputs)
    return changed, found.samples[worst.sample]


def _require_same_names(request: RunRequest) -> None:
    original, converted = (
        [value.name for value in each.model.graph.output] for each in (request.original, request.converted)
    )
    if not original:
        raise CannotVerify("the model has no outputs to compare", remedy="declare graph outputs")
    if original != converted:
        empty = Verification(("", ""), 0, request.seed, (), ())
        reason = f"the outputs are named {', '.join(converted)} instead of {', '.join(original)}"
        raise VerificationFailed(empty, reason)


def _require_elements(verification: Verification) -> None:
    """Raise CannotVerify if an output is equal because it has no elements for any input."""
    for each in verification.outputs:
        if each.equal and each.count == 0:
            reason = f"output {each.name!r} has no elements for all inputs, so nothing was compared"
            raise CannotVerify(reason, remedy=ELEMENTS_REMEDY)


def _verify_run(result: RunResult, pair: RuntimePair, request: RunRequest) -> Verification:
    used = []
    for each in request.inputs:
        value = result.samples[0][each.name]
        shape = value.shape if isinstance(value, np.ndarray) else None
        used.append(InputUsed(each.name, each.type, shape, each.name in request.given))
    runtimes = pair.original.name, pair.converted.name
    verification = Verification(runtimes, len(result.samples), request.seed, tuple(used), ())
    if result.failure:
        raise VerificationFailed(verification, f"the converted model does not run: {result.failure}")
    return replace(verification, outputs=_compare_outputs(result.original, result.converted, request))


def _compare_outputs(
    original: SampleOutputs, converted: SampleOutputs, request: RunRequest
) -> tuple[OutputCompared, ...]:
    outputs = []
    for position, value in enumerate(request.original.model.graph.output):
        one, other = ([sample[position] for sample in each] for each in (original, converted))
        outputs.append(compare_output(value.name, one, other, request.tolerance))
    return tuple(outputs)


def _most_conclusive_run(pair: RuntimePair, request: RunRequest, reasons: list[str]) -> RunResult | None:
    """Return the first run with suitable inputs, or else the first run in which both models run."""
    declared = request.original.model.graph.output
    inconclusive: RunResult | None = None
    for result in _run_samples(pair, request, reasons):
        # another runtime may only reject these inputs, which is not a failure of the model
        if result.failure and pair.is_mixed and not pair.converted.is_broken:
            reasons.append(result.failure)
        elif has_declared_shapes(result.original, declared) and (
            result.failure or (has_finite_values(result.original) and has_elements(result.original))
        ):
            return result
        else:
            inconclusive = inconclusive or result
    return inconclusive


def _run_samples(pair: RuntimePair, request: RunRequest, reasons: list[str]) -> Iterator[RunResult]:
    """Yield a run for each set of inputs that the original accepts; without any, append the first reason."""
    first = ""
    has_run = False
    for samples in generate_inputs(request.inputs, request.given, request.samples, request.seed):
        request.progress.done, request.progress.total = 0, 2 * len(samples)
        try:
            original = _run(pair.original, samples, request.progress)
        except CannotRun as error:
            first = first or error.reason
            continue
        has_run = True
        try:
            yield RunResult(samples, original, _run(pair.converted, samples, request.progress), "")
        except CannotRun as error:
            yield RunResult(samples, original, [], error.reason)
    if not has_run:
        reasons.append(first)


def _run(runner: Runner, samples: Sequence[Feeds], progress: Progress) -> SampleOutputs:
    outputs = []
    for feeds in samples:
        outputs.append(runner.run(feeds))
        progress.done += 1
    return outputs


def has_declared_shapes(outputs: SampleOutputs, declared: Sequence[ValueInfoProto]) -> bool:
    """Return whether the outputs have their declared sizes, which indicates suitable inputs."""
    return all(
        _has_declared_shape(value, one.type)
        for sample in outputs
        for value, one in zip(sample, declared, strict=True)
    )


def has_finite_values(outputs: SampleOutputs) -> bool:
    """Return whether any output has an element that is neither infinite nor NaN."""
    return any(_has_finite_values(value) for sample in outputs for value in sample)


def has_elements(outputs: SampleOutputs) -> bool:
    """Return whether each output has elements in some sample."""
    return all(any(map(_has_elements, values)) for values in zip(*outputs, strict=True))


def _has_elements(value: object) -> bool:
    if isinstance(value, list | tuple | dict) or value is None:
        return bool(value)
    return np.asarray(value).size > 0


def _has_declared_shape(value: object, kind: TypeProto) -> bool:
    declared_dims = shape_of(kind)
    if declared_dims is None or not isinstance(value, np.ndarray):
        return True
    sizes = zip(declared_dims, value.shape, strict=False)
    return len(declared_dims) == value.ndim and all(declared in (None, actual) for declared, actual in sizes)


def _has_finite_values(value: object) -> bool:
    if isinstance(value, list | tuple | dict) or value is None:
        return bool(value)
    array = np.asarray(value)
    return bool(np.isfinite(array).any()) if array.dtype.kind in "fc" else array.size > 0
