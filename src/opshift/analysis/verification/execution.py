"""Execution of both models on the same inputs, and comparison of the outputs."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from opshift.analysis.verification.compare import agreeing_elements, compare_output
from opshift.analysis.verification.executable_graph import ModelRuntime
from opshift.analysis.verification.inputs import Attempt, Feeds, ModelInput, generate_inputs, words_of
from opshift.analysis.verification.numpy_types import Array
from opshift.analysis.verification.result import (
    CannotVerify,
    InputUsed,
    OutputCompared,
    Runtime,
    Verification,
    VerificationFailed,
)
from opshift.analysis.verification.runtimes import (
    CannotRun,
    Runner,
    RuntimeModel,
    RuntimePair,
    opener_of,
    openers,
    runtime_pairs,
)
from opshift.analysis.verification.unreached import unreached_branches
from opshift.model.element_types import NAME_BY_NUMBER
from opshift.model.errors import OpshiftError
from opshift.model.graphs import nested_nodes
from opshift.model.messages import NodeProto, TypeProto, ValueInfoProto
from opshift.model.progress import Progress
from opshift.model.types import shape_of
from opshift.registry.registry import Registry

NONFINITE_VALUES = ((np.nan,), (np.inf, -np.inf), (np.nan, np.inf, -np.inf, -0.0))
"""Values to insert, by sample. One sample has no NaN, because NaN hides the results of infinities."""

OPEN_FOR_NAN = ("DynamicQuantizeLinear", "MaxPool", "QuantizeLinear")
"""Operators without a specified result for NaN, on which onnxruntime and onnx.reference may still agree.

Both runtimes compare the elements of a MaxPool window in the same order, and convert NaN to an integer as
the processor does.
"""

WEIGHTED_SUMS = {
    "Attention": "", "DFT": "", "Det": "", "GridSample": "linear", "Resize": "nearest", "RoiAlign": "avg",
    "STFT": "", "Upsample": "nearest",
}  # fmt: skip
"""Operators that add products, with the default of `mode`; results for infinities and NaN are undefined.

Implementations may skip a product with the weight 0, which is NaN for these values, and add in any order.
With the mode `nearest`, operators only select elements.
"""

TYPES = ("bfloat16", "double", "float", "float16")

ELEMENTS_PER_VALUE = 8
"""Average number of elements per replaced element; the others remain, so that not all sums become NaN."""

MAX_BYTES, MAX_NODES, MAX_ELEMENTS = 4 << 20, 500, 1 << 16
"""Limits of models and inputs, because onnx.reference is up to 1,000 times as slow as onnxruntime."""


class NonfiniteRun(NamedTuple):
    """Samples with infinities and NaN, and the outputs of both models.

    Elements on which the runtimes disagree are copied from `original` to `converted`, so they compare equal.
    """

    samples: Sequence[Feeds]
    original: Sequence[Sequence[object]]
    converted: Sequence[Sequence[object]]


@dataclass(frozen=True)
class NonfiniteInputs:
    """Models to run, a sample that both accept, and the inputs whose elements may be replaced."""

    original: RuntimeModel
    converted: RuntimeModel
    sample: Feeds
    replaceable: tuple[ModelInput, ...]
    seed: int

    @property
    def is_small(self) -> bool:
        """Whether the models and the sample are small enough for onnx.reference."""
        elements = sum(np.asarray(each).size for each in self.sample.values() if isinstance(each, np.ndarray))
        return elements <= MAX_ELEMENTS and all(map(_is_small, (self.original, self.converted)))


def run_nonfinite(inputs: NonfiniteInputs, tolerance: float | None, registry: Registry) -> NonfiniteRun:
    """Run both models in onnxruntime and onnx.reference on samples with infinities and NaN.

    The specification leaves many results open, such as the maximum of NaN and a number. A result counts as
    defined if both runtimes agree. A sample is skipped if `_is_open` is true for one of the nodes. The result
    has no samples if no input is replaceable, if the models are too large or have `WEIGHTED_SUMS`, or if a
    runtime does not run them.
    """
    models = inputs.original.model, inputs.converted.model
    nodes = (node for model in models for node in nested_nodes(model.graph, *model.functions))
    if not inputs.replaceable or not inputs.is_small or any(map(_is_weighted_sum, nodes)):
        return NonfiniteRun((), (), ())
    runners = [list(_open_runners(each, registry)) for each in (inputs.original, inputs.converted)]
    found = NonfiniteRun([], [], [])
    if any(len(each) < 2 for each in runners):
        return found
    samples, originals, conversions = list[Feeds](), list[Sequence[object]](), list[Sequence[object]]()
    for feeds in _nonfinite_samples(inputs):
        try:
            one, other = ([runner.run(feeds) for runner in each] for each in runners)
        except CannotRun:
            continue
        samples.append(feeds)
        originals.append(one[0])
        conversions.append(_with_defined_elements(one, other, tolerance))
    return NonfiniteRun(samples, originals, conversions)


def replaceable_inputs(inputs: Sequence[ModelInput], given: Collection[str]) -> tuple[ModelInput, ...]:
    """Return the inputs that are not in `given`, and whose element types have infinities and NaN."""
    return tuple(each for each in inputs if each.element_type in TYPES and each.name not in given)


def _is_small(source: RuntimeModel) -> bool:
    count = sum(1 for _ in nested_nodes(source.model.graph, *source.model.functions))
    return count <= MAX_NODES and source.model.ByteSize() <= MAX_BYTES


def _open_runners(source: RuntimeModel, registry: Registry) -> Iterator[Runner]:
    for opener in openers("auto"):
        try:
            yield opener(source, registry)
        except CannotRun:
            continue


def _nonfinite_samples(inputs: NonfiniteInputs) -> Iterator[Feeds]:
    model = inputs.original.model
    nodes = list(nested_nodes(model.graph, *model.functions))
    for position, values in enumerate(NONFINITE_VALUES):
        if any(_is_open(node, values) for node in nodes):
            continue
        random = np.random.default_rng([inputs.seed, position])
        names = [each.name for each in inputs.replaceable]
        yield {
            **inputs.sample,
            **{name: _insert_values(inputs.sample[name], values, random) for name in names},
        }


def _is_open(node: NodeProto, values: Sequence[float]) -> bool:
    """Return whether the result of a node for `values` is undefined, even if both runtimes agree on it."""
    if node.op_type in OPEN_FOR_NAN:
        return any(map(math.isnan, values))
    targets = [NAME_BY_NUMBER.get(each.i, "") for each in node.attribute if each.name == "to"]
    return node.op_type == "Cast" and any("int" in name for name in targets)


def _is_weighted_sum(node: NodeProto) -> bool:
    modes = [each.s for each in node.attribute if each.name == "mode"]
    return node.op_type in WEIGHTED_SUMS and b"nearest" not in (
        modes or [WEIGHTED_SUMS[node.op_type].encode()]
    )


def _insert_values(array: Array, values: Sequence[float], random: np.random.Generator) -> Array:
    found = np.array(array)
    count = -(-found.size // ELEMENTS_PER_VALUE)
    places = random.permutation(found.size)[: max(count, min(len(values), found.size))]
    found.reshape(-1)[places] = np.resize(np.array(values), places.size).astype(found.dtype)
    return found


def _with_defined_elements(
    originals: Sequence[Sequence[object]], conversions: Sequence[Sequence[object]], tolerance: float | None
) -> list[object]:
    """Return the converted outputs; elements on which runtimes disagree are copied from the original ones."""
    found: list[object] = []
    for one, another, first, second in zip(*originals, *conversions, strict=True):
        is_defined = _agreement_mask(one, another, tolerance) & _agreement_mask(first, second, tolerance)
        if not isinstance(one, np.ndarray) or not isinstance(first, np.ndarray) or not is_defined.any():
            found.append(one)
        elif first.shape != one.shape or first.dtype != one.dtype:
            found.append(first if is_defined.all() else one)
        else:
            found.append(np.where(is_defined, first, one))
    return found


def _agreement_mask(one: object, other: object, tolerance: float | None) -> Array:
    """Return a boolean array that is `True` where two runtimes agree.

    It is a single `False` for integers, strings and non-tensors, and if types or shapes differ. Equal
    integers may be a coincidence: ONNX does not define the integer that an infinity or NaN becomes.
    """
    if not isinstance(one, np.ndarray) or not isinstance(other, np.ndarray):
        return np.array(False)
    if one.shape != other.shape or one.dtype != other.dtype or one.dtype.kind in "iuOSU":
        return np.array(False)
    return agreeing_elements(one, other, tolerance)


PROVIDE_INPUTS = (
    "provide inputs that the model accepts (--inputs FILE.npz), or private operators (--verify-with MODULE, "
    "--custom-ops LIBRARY), or compare in the intended runtime"
)

ELEMENTS_REMEDY = "provide inputs for which the output has elements (--inputs FILE.npz)"

SampleOutputs = Sequence[Sequence[object]]
"""Outputs of a model, in order, for each sample."""


class RunRequest(NamedTuple):
    """Models to compare, inputs of the original model, input values of the caller (`given`), and settings."""

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
    """Empty if the converted model does not run."""
    failure: str
    """Reason why the converted model does not run; empty if it runs."""


def execute(request: RunRequest, registry: Registry) -> tuple[Verification, Feeds]:
    """Run both models and compare their outputs; also return one sample, preferably one that differs.

    If the models ran in different runtimes and outputs differ, a runtime that runs both decides, if any does.
    Raises CannotVerify if nothing can be compared, VerificationFailed if the converted model does not run or
    has outputs with other names.
    """
    _require_same_names(request)
    reasons: list[str] = []
    mixed_result: tuple[Verification, Feeds] | None = None
    for pair in runtime_pairs(request.original, request.converted, request.runtime, registry, reasons):
        result = _most_conclusive_run(pair, request, reasons)
        if result is None:
            continue
        verification = _verify_run(result, pair, request)
        worst = next((each.worst for each in verification.outputs if not each.equal), None)
        feeds = result.samples[worst.sample if worst else 0]
        if verification.equal:
            _require_elements(verification, request, registry)
            return _with_nonfinite(verification, result, request, registry)
        if not pair.is_mixed:
            _require_elements(verification, request, registry)
            return verification, feeds
        # The two models ran in different runtimes, which may cause the difference: try further pairs.
        mixed_result = mixed_result or (verification, feeds)
    if mixed_result is None:
        reason = "both models never ran on the same inputs"
        raise CannotVerify(f"{reason}: {'; '.join(dict.fromkeys(reasons))}", remedy=PROVIDE_INPUTS)
    return mixed_result


def _with_nonfinite(
    verification: Verification, result: RunResult, request: RunRequest, registry: Registry
) -> tuple[Verification, Feeds]:
    """Add unreached branches to `verification`; with runtime `auto`, also compare infinities and NaN."""
    runtime = ModelRuntime(request.original, opener_of(verification.runtimes[0]), registry)
    unreached = unreached_branches(runtime, request.converted.model, result.samples)
    verification = replace(verification, unreached=unreached)
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
        raise CannotVerify("the model has no outputs to compare", remedy="add graph outputs")
    if original != converted:
        empty = Verification(("", ""), 0, request.seed, (), ())
        found = f"has the outputs {', '.join(converted)}" if converted else "has no outputs"
        reason = f"the converted model {found} instead of {', '.join(original)}"
        raise VerificationFailed(empty, reason)


def _require_elements(verification: Verification, request: RunRequest, registry: Registry) -> None:
    """Raise CannotVerify if an output counts as equal only because it has no elements in any sample.

    An output whose inferred shape has a size of 0 never has elements; its equal types and shapes suffice.
    """
    for each in verification.outputs:
        if each.equal and each.count == 0 and not _is_always_empty(each.name, request, registry):
            reason = f"output {each.name!r} has no elements in any sample, so nothing was compared"
            raise CannotVerify(reason, remedy=ELEMENTS_REMEDY)


def _is_always_empty(name: str, request: RunRequest, registry: Registry) -> bool:
    from opshift.analysis.infer import infer  # imported here, because few outputs have no elements

    try:
        shape = infer(request.original.model, registry=registry).values[name].shape
    except OpshiftError:  # a runtime may accept a model that inference refuses
        return False
    return shape is not None and 0 in shape


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
    """Return the first conclusive run, else the first run; `None` if there is none.

    A run is conclusive if the outputs of the original have their declared shapes, and either `_is_conclusive`
    is true for them or the converted model fails.
    """
    declared = request.original.model.graph.output
    inconclusive: RunResult | None = None
    for result in _run_samples(pair, request, reasons):
        # The second runtime may reject only these inputs, which does not show that the converted model fails.
        if result.failure and pair.is_mixed and not pair.converted.is_broken:
            reasons.append(result.failure)
        elif _is_conclusive(result.original, declared) or (
            result.failure and has_declared_shapes(result.original, declared)
        ):
            return result
        else:
            inconclusive = inconclusive or result
    return inconclusive


def _run_samples(pair: RuntimePair, request: RunRequest, reasons: list[str]) -> Iterator[RunResult]:
    """Yield a run for each attempt whose inputs the original accepts; append to `reasons` if none does."""
    first = ""
    has_run = False
    reads_text = any(each.generated_type == "string" for each in request.inputs)
    words = words_of(request.original.model) if reads_text else ()
    for attempt in generate_inputs(request.inputs, request.given, request.samples, request.seed, words):
        samples = attempt.samples
        request.progress.done, request.progress.total = 0, 2 * len(samples)
        try:
            original = _run_all(pair.original, samples, request.progress)
        except CannotRun as error:
            first = first or error.reason
            continue
        has_run = True
        if len(samples) > 1:
            samples, original = _enlarge_last(attempt, original, pair.original, request)
        try:
            yield RunResult(samples, original, _run_all(pair.converted, samples, request.progress), "")
        except CannotRun as error:
            yield RunResult(samples, original, [], error.reason)
    if not has_run:
        reasons.append(first)


def _enlarge_last(
    attempt: Attempt, outputs: SampleOutputs, runner: Runner, request: RunRequest
) -> tuple[Sequence[Feeds], SampleOutputs]:
    """Return samples and outputs; the first larger sample with conclusive outputs replaces the last one."""
    declared = request.original.model.graph.output
    if _is_conclusive(outputs, declared):
        for feeds in attempt.larger:
            try:
                found = runner.run(feeds)
            except CannotRun:
                continue
            if _is_conclusive([found], declared):
                return [*attempt.samples[:-1], feeds], [*outputs[:-1], found]
    return attempt.samples, outputs


def _run_all(runner: Runner, samples: Sequence[Feeds], progress: Progress) -> SampleOutputs:
    outputs = []
    for feeds in samples:
        outputs.append(runner.run(feeds))
        progress.done += 1
    return outputs


def _is_conclusive(outputs: SampleOutputs, declared: Sequence[ValueInfoProto]) -> bool:
    """Return whether outputs have the declared shapes, elements, and any finite element."""
    return has_declared_shapes(outputs, declared) and has_finite_values(outputs) and has_elements(outputs)


def has_declared_shapes(outputs: SampleOutputs, declared: Sequence[ValueInfoProto]) -> bool:
    """Return whether no output contradicts its declared shape, which indicates suitable inputs."""
    return all(
        _has_declared_shape(value, one.type)
        for sample in outputs
        for value, one in zip(sample, declared, strict=True)
    )


def has_finite_values(outputs: SampleOutputs) -> bool:
    """Return whether any output is a nonempty sequence or map, or has an element that is finite."""
    return any(_has_finite_values(value) for sample in outputs for value in sample)


def has_elements(outputs: SampleOutputs) -> bool:
    """Return whether each output has elements in at least one sample."""
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
