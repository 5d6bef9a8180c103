"""One sample as a model in a random form, and the comparison of the kernel with standard operators."""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

from comparison import activations, attention, products, quantized, tensors  # noqa: F401 - register generators
from comparison.kernel_faults import fault_of
from comparison.sampler import GENERATORS, Array, Sample, Sampler
from opshift import ConversionRefused, convert_version

SOURCES = (17, 18, 20, 21, 22, 23)
TARGETS = (None, None, 11, 13, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24)
"""Opsets of the models, and target opsets; `None` keeps the opset of the model."""

NO_KERNEL = {
    "BiasAdd", "BiasDropout", "BiasSoftmax", "BiasSplitGelu", "FusedMatMulActivation", "GemmFastGelu",
    "GroupNorm", "MulInteger", "NhwcConv", "NhwcFusedConv", "QLinearReduceMean", "ReduceSumInteger", "Rfft",
    "SkipGroupNorm", "TorchEmbedding",
}  # fmt: skip
"""Operators without a CPU kernel, which tests compare with numpy instead."""

TOLERANCES = {"float32": 2e-4, "float64": 1e-6, "float16": 2e-2}
"""Tolerances relative to the largest finite result, because kernels add numbers in different orders."""

LEAST = 1e-3
"""Minimum of the number that differences are divided by, because terms may cancel."""

NEIGHBORS = 4
"""Number of random choices of neighboring inputs."""

DIFFERENCE = "relative difference"

OPERATORS = tuple(sorted(GENERATORS))

KERNELS = {name for name in OPERATORS if name not in NO_KERNEL}
"""Operators that have a CPU kernel in onnxruntime."""


class Case(NamedTuple):
    """Model with one node, its inputs, and the opset to convert to."""

    sample: Sample
    model: onnx.ModelProto
    feeds: dict[str, Array]
    target: int | None


class Outcome(NamedTuple):
    """Result of a case: `same`, `refused`, `no kernel`, `unstable`, `wrong` or `crash`, with details.

    In an unstable case, the kernel itself returns other results for the neighboring numbers in float16.
    """

    op_type: str
    kind: str
    details: str = ""


def case_at(seed: int, index: int) -> Case:
    """Return the case with a number, which is the same in every run."""
    op_type = OPERATORS[index % len(OPERATORS)]
    draw = Sampler((seed, index, zlib.crc32(op_type.encode())))
    sample = GENERATORS[op_type](draw, op_type)
    return _in_random_form(sample, draw)


def _in_random_form(sample: Sample, draw: Sampler) -> Case:
    """Return a model of the sample, with inputs that are fed, constant or computed, and may have shapes."""
    form = draw.pick(["full", "full", "symbolic", "partial", "no shapes"])
    constant_share, computed_share = draw.pick([0.0, 0.0, 0.5, 1.0]), draw.pick([0.0, 0.0, 0.4])
    nodes, infos, initializers, feeds, names = [], [], [], dict[str, Array](), []
    for position, array in enumerate(sample.inputs):
        if array is None:
            names.append("")
            continue
        name = f"x{position}"
        names.append(name)
        if position in sample.constants or (position and draw.maybe(constant_share)):
            initializers.append(numpy_helper.from_array(array, name))
            continue
        fed = name
        if draw.maybe(computed_share):
            fed = f"{name}_fed"
            nodes.append(helper.make_node("Identity", [fed], [name]))
        feeds[fed] = array
        infos.append(_declared_input(fed, array, form, draw))
    while names and not names[-1]:
        names.pop()
    results = [f"y{index}" if each is not None else "" for index, each in enumerate(sample.outputs)]
    nodes.append(
        helper.make_node(sample.op_type, names, results, "node", domain=sample.domain, **sample.attributes)
    )
    outputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(each)), None)
        for name, each in zip(results, sample.outputs, strict=True)
        if name
    ]
    opset = draw.pick(SOURCES if sample.domain else [each for each in SOURCES if each < 17] or [13, 16])
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph(nodes, "graph", infos, outputs, initializers)
    model = helper.make_model(graph, opset_imports=imports, ir_version=8)
    return Case(sample, model, feeds, draw.pick(TARGETS))


def _declared_input(name: str, array: Array, form: str, draw: Sampler) -> onnx.ValueInfoProto:
    element_type = helper.np_dtype_to_tensor_dtype(array.dtype)
    sizes: list[Any] | None = list(array.shape)
    if form == "no shapes":
        sizes = None
    elif sizes and form != "full":
        share = 1.0 if form == "symbolic" else 0.4
        sizes = [f"{name}_{axis}" if draw.maybe(share) else size for axis, size in enumerate(sizes)]
    return helper.make_tensor_value_info(name, element_type, sizes)


def run_case(case: Case) -> Outcome:
    """Run a case before and after the conversion."""
    op_type = case.sample.op_type
    try:
        expected = run_model(case.model, case.feeds)
    except Exception as error:  # onnxruntime has no common base class of errors
        return Outcome(op_type, "no kernel", str(error)[:300])
    outcome = _outcome_of(case, compare(case, expected))
    if outcome.kind == "wrong" and outcome.details.startswith(DIFFERENCE) and _is_unstable(case, expected):
        return outcome._replace(kind="unstable")
    return outcome


def _is_unstable(case: Case, expected: list[Array]) -> bool:
    """Return whether rounding inputs in float16 differently changes the results of the kernel too much."""
    random = np.random.default_rng(0)

    def neighbors(array: Array) -> Array:
        if array.dtype != np.float16 or not np.isfinite(array).all():
            return array
        ends: Array = random.choice(np.array([-np.inf, np.inf], np.float16), array.shape)
        rounded: Array = np.nextafter(array, ends)
        return rounded

    for _ in range(NEIGHBORS):
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        for each in model.graph.initializer:
            each.CopyFrom(numpy_helper.from_array(neighbors(numpy_helper.to_array(each)), each.name))
        found = run_model(model, {name: neighbors(each) for name, each in case.feeds.items()})
        pairs = zip(found, expected, strict=True)
        if any(_difference(each, wanted, 0, case.sample.tolerance) for each, wanted in pairs):
            return True
    return False


def compare(case: Case, expected: list[Array]) -> Outcome:
    """Convert a case, and compare its outputs with expected ones."""
    op_type, steps = case.sample.op_type, 0
    without = "com.microsoft" if case.sample.domain else ("com.microsoft", f"ai.onnx.{op_type}")
    try:
        result = convert_version(case.model, case.target, without=without)
    except ConversionRefused as error:
        if "approximate" not in str(error):
            return Outcome(op_type, "refused", str(error)[:300])
        try:
            result = convert_version(case.model, case.target, without=without, allow="approximate")
            steps = 1
        except ConversionRefused as other:
            return Outcome(op_type, "refused", str(other)[:300])
    except Exception as error:  # any error of the conversion is a fault
        return Outcome(op_type, "wrong", f"conversion fails: {type(error).__name__} {str(error)[:300]}")
    try:
        found = run_model(result, case.feeds)
    except Exception as error:  # onnxruntime has no common base class of errors
        return Outcome(op_type, "wrong", f"result fails: {str(error)[:300]}")
    masks = case.sample.undefined or {}
    problems = (
        _difference(*_with_defined_elements(each, wanted, masks.get(position)), steps, case.sample.tolerance)
        for position, (each, wanted) in enumerate(zip(found, expected, strict=True))
    )
    problem = next(filter(None, problems), "")
    return Outcome(op_type, "wrong" if problem else "same", problem)


def _outcome_of(case: Case, outcome: Outcome) -> Outcome:
    """Return the outcome, or `kernel fault` if the kernel is known to be wrong."""
    fault = fault_of(case.sample) if outcome.kind == "wrong" else None
    return outcome._replace(kind="kernel fault", details=fault.reason) if fault else outcome


def run_model(model: onnx.ModelProto, feeds: dict[str, Array]) -> list[Array]:
    """Run a model in onnxruntime, without optimizations."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    results = session.run(None, feeds)
    if any(each is None for each in results):
        raise ValueError("the kernel writes no output")
    return [np.asarray(each) for each in results]


def _with_defined_elements(found: Array, expected: Array, undefined: Array | None) -> tuple[Array, Array]:
    """Return both outputs, with 0 for the elements that the definition leaves open."""
    if undefined is None or found.shape != expected.shape:
        return found, expected
    mask = np.broadcast_to(undefined, found.shape)
    return tuple(np.where(mask, each.dtype.type(0), each) for each in (found, expected))  # type: ignore[return-value]


def _difference(found: Array, expected: Array, steps: int, least: float) -> str:
    """Return the difference of two outputs as text; `""` if they are equal up to rounding."""
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return f"{found.dtype}{found.shape} instead of {expected.dtype}{expected.shape}"
    if not found.size:
        return ""
    if expected.dtype.kind in "iub":
        distance = int(np.abs(found.astype(int) - expected.astype(int)).max())
        return f"{distance} steps" if distance > steps else ""
    tolerance = max(TOLERANCES[expected.dtype.name], least)
    finite = np.isfinite(expected)
    if not np.array_equal(finite, np.isfinite(found)) or not np.array_equal(
        found[~finite], expected[~finite], equal_nan=True
    ):
        return f"not finite: {found.ravel()[:8]} instead of {expected.ravel()[:8]}"
    if not finite.any():
        return ""
    actual, wanted = found[finite].astype(float), expected[finite].astype(float)
    largest = max(np.abs(wanted).max(), LEAST)
    worst = float(np.abs(actual - wanted).max() / largest)
    return f"{DIFFERENCE} {worst:.2g}" if worst > tolerance else ""
