"""Execution of both models on the same inputs, and comparison of the outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from opshift.analysis.verification.compare import compare_output
from opshift.analysis.verification.dimension_sizes import ModelInput
from opshift.analysis.verification.inputs import (
    Feeds,
    GeneratedInputs,
    ProvidedInputs,
    generate_inputs,
    inputs_of,
    read_provided,
)
from opshift.analysis.verification.result import (
    CannotVerify,
    InputUsed,
    Runtime,
    Verification,
    VerificationFailed,
)
from opshift.analysis.verification.runtime_pairs import RuntimePair, runtime_pairs
from opshift.analysis.verification.runtimes import CannotRun, RuntimeModel
from opshift.model.messages import TypeProto, ValueInfoProto
from opshift.model.types import shape_of
from opshift.registry.registry import Registry

PROVIDE_INPUTS = (
    "provide inputs that the model accepts (--inputs FILE.npz), or compare in the intended runtime"
)


SampleOutputs = Sequence[Sequence[object]]
"""Outputs of the model for each sample."""


class RunRequest(NamedTuple):
    """Models to compare, and settings of the comparison.

    Attributes:
        original, converted: the models.
        inputs: input values of the caller.
        runtime: the runtime to use.
        samples: the number of input sets to generate.
        seed: seed of the generated inputs.
        tolerance: tolerance instead of the defaults.
    """

    original: RuntimeModel
    converted: RuntimeModel
    inputs: ProvidedInputs
    runtime: Runtime
    samples: int
    seed: int
    tolerance: float | None


class RunResult(NamedTuple):
    """Outputs of both models for the same samples.

    Attributes:
        pair: the runtimes of both models.
        generated: the inputs.
        original: outputs of the original by sample.
        converted: outputs of the converted model by sample; empty after a failure.
        failure: the reason why the converted model does not run; empty if it runs.
    """

    pair: RuntimePair
    generated: GeneratedInputs
    original: SampleOutputs
    converted: SampleOutputs
    failure: str


def execute(request: RunRequest, registry: Registry) -> Verification:
    """Run both models and compare their outputs.

    If two different runtimes disagree, a runtime that runs both models decides, if there is one.

    Raises:
        CannotVerify: the original does not run with any generated inputs, or no runtime supports both models.
        VerificationFailed: the converted model has other outputs, or does not run.
        UsageError: the provided inputs do not match the model.
    """
    graph = request.original.model.graph
    _require_same_names(request)
    inputs = inputs_of(graph)
    given = read_provided(request.inputs, graph)
    mixed_result: Verification | None = None
    for result in _conclusive_runs(request, inputs, given, registry):
        verification = _verify_run(result, inputs, given, request)
        # a difference between two runtimes may be theirs, and not the conversion's
        if verification.equal or not result.pair.is_mixed:
            return verification
        mixed_result = mixed_result or verification
    assert mixed_result is not None
    return mixed_result


def _verify_run(
    result: RunResult, inputs: tuple[ModelInput, ...], given: Feeds, request: RunRequest
) -> Verification:
    feeds = result.generated.samples[0]
    used = tuple(_input_used(each, feeds[each.name], each.name in given) for each in inputs)
    verification = Verification(result.pair.names, len(result.generated.samples), request.seed, used, ())
    if result.failure:
        raise VerificationFailed(verification, f"the converted model does not run: {result.failure}")
    outputs = tuple(
        compare_output(
            value.name,
            _values_of_output(result.original, i),
            _values_of_output(result.converted, i),
            request.tolerance,
        )
        for i, value in enumerate(request.original.model.graph.output)
    )
    return replace(verification, outputs=outputs)


def _require_same_names(request: RunRequest) -> None:
    original_names, converted_names = (
        [value.name for value in each.model.graph.output] for each in (request.original, request.converted)
    )
    if not original_names:
        raise CannotVerify("the model has no outputs to compare")
    if original_names != converted_names:
        empty = Verification(("", ""), 0, request.seed, (), ())
        raise VerificationFailed(
            empty,
            f"the outputs are named {', '.join(converted_names)} instead of {', '.join(original_names)}",
        )


def _conclusive_runs(
    request: RunRequest, inputs: tuple[ModelInput, ...], given: Feeds, registry: Registry
) -> Iterator[RunResult]:
    """Yield one run for each pair of runtimes.

    The first conclusive run is preferred to the first run in which both models run.

    Raises:
        CannotVerify: both models never run with the same inputs.
    """
    reasons: list[str] = []
    has_result = False
    for pair in runtime_pairs(request.original, request.converted, request.runtime, registry, reasons):
        result = _most_conclusive_run(pair, request, inputs, given, reasons)
        if result is not None:
            has_result = True
            yield result
    if not has_result:
        reasons_text = "; ".join(dict.fromkeys(reasons))
        raise CannotVerify(
            f"no inputs and runtimes were found with which both models run: {reasons_text}",
            remedy=PROVIDE_INPUTS,
        )


def _most_conclusive_run(
    pair: RuntimePair, request: RunRequest, inputs: tuple[ModelInput, ...], given: Feeds, reasons: list[str]
) -> RunResult | None:
    graph = request.original.model.graph
    inconclusive: RunResult | None = None
    for result in _run_samples(pair, generate_inputs(inputs, given, request.samples, request.seed), reasons):
        # another runtime may only reject these inputs, which is not a failure of the model
        if result.failure and pair.may_disagree_on_inputs:
            reasons.append(result.failure)
        elif has_declared_shapes(result.original, graph.output) and (
            result.failure or has_finite_values(result.original)
        ):
            return result
        else:
            inconclusive = inconclusive or result
    return inconclusive


def _run_samples(
    pair: RuntimePair, candidates: Iterator[GeneratedInputs], reasons: list[str]
) -> Iterator[RunResult]:
    """Yield a run for each set of inputs that the original accepts; without any, append the first reason."""
    first = ""
    has_run = False
    for generated in candidates:
        try:
            original = [pair.original.run(feeds) for feeds in generated.samples]
        except CannotRun as error:
            first = first or error.reason
            continue
        has_run = True
        try:
            yield RunResult(
                pair, generated, original, [pair.converted.run(feeds) for feeds in generated.samples], ""
            )
        except CannotRun as error:
            yield RunResult(pair, generated, original, [], error.reason)
    if not has_run:
        reasons.append(first)


def _values_of_output(outputs: SampleOutputs, position: int) -> list[object]:
    return [sample[position] for sample in outputs]


def _input_used(declared: ModelInput, value: object, is_given: bool) -> InputUsed:
    shape = value.shape if isinstance(value, np.ndarray) else None
    return InputUsed(declared.name, declared.type, shape, is_given)


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
