"""Verification of a converted model against its original."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from math import inf
from numbers import Integral, Real
from pathlib import Path
from typing import get_args

from opshift.analysis.verification.reference_runtime import ExecutedGraph, executed_graphs
from opshift.analysis.verification.result import CannotVerify, Runtime, Verification, VerificationFailed
from opshift.model.errors import UsageError, path_argument, path_arguments
from opshift.model.files import ModelLike, model_of
from opshift.model.graphs import node_label
from opshift.model.locations import folder_of
from opshift.model.messages import ModelProto
from opshift.model.node import Node
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.model.progress import Progress
from opshift.registry.registry import Registry, registry_or_default


def verify(
    original: ModelLike,
    converted: ModelLike,
    inputs: Mapping[str, object] | str | os.PathLike[str] | None = None,
    *,
    runtime: Runtime = "auto",
    samples: int = 3,
    seed: int = 0,
    tolerance: float | None = None,
    registry: Registry | None = None,
    custom_ops: Iterable[str | os.PathLike[str]] = (),
    progress: Progress | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> Verification:
    """Run two models on the same inputs and compare all outputs.

    Nodes that the inputs do not reach are not compared; `unreached` of the result names changed branches of
    If nodes in the main graph that never run.

    If the outputs of small models agree, generated inputs with infinities and NaN are compared, too, for
    elements on which onnxruntime and onnx.reference agree. If input or output types differ, as after
    `convert_types`, inputs of the converted model are cast from the original types, and outputs to them.

    Args:
        original: a ModelProto of opshift or `onnx`, serialized bytes, or a path. External data files are
            found relative to the path.
        converted: a model in one of the same forms. Without a path, its external data files are expected in
            `folder`, or in the folder of the original.
        inputs: arrays by input name, or the path of an .npz file with them. An array may also be given as a
            `Path` of an .npy, .npz or .pb file (TensorProto). Missing values are generated for the types and
            shapes that the original declares; inputs with a default keep it.
        runtime: `onnxruntime`, `reference` (onnx.reference), or `auto`: for each model, the first of these
            that supports it.
        samples: the number of input sets to generate.
        seed: seed of the generated inputs.
        tolerance: relative and absolute tolerance, instead of the defaults, for double, float, float16,
            bfloat16 and complex types. If input or output types of the models differ, the default is the
            tolerance of the least precise type. Elements of other types have to be equal. NaN equals NaN.
        registry: the operator definitions; by default those of opshift and of installed packages.
        custom_ops: libraries of custom operators for onnxruntime; their code runs. In onnx.reference, the
            functions that `opshift.reference` registers compute operators of private domains.
        progress: updated after each run of a model, for a display in another thread.
        folder: the folder of the external data files of a converted model without a path.

    Returns:
        The compared inputs and outputs, and their differences.

    Raises:
        VerificationFailed: the outputs or their names differ, or the converted model does not run.
        CannotVerify: nothing can be compared: the original may generate random numbers, or does not run, or
            its inputs cannot be generated, or an output has no elements, or a package is not installed.
        UsageError: the provided inputs or the other arguments are invalid.
        ExtensionFailed: a registered reference returns an invalid result.
        InvalidModel: `original` or `converted` is not a model.
    """
    if runtime not in get_args(Runtime):
        remedy = f"choose one of {', '.join(get_args(Runtime))}"
        raise UsageError(f"unknown runtime {runtime!r}", remedy=remedy)
    if not _is_number(samples, Integral, 1):
        raise UsageError(f"cannot compare {samples!r} samples", remedy="use 1 or more samples")
    if tolerance is not None and not _is_number(tolerance, Real, 0):
        raise UsageError(f"the tolerance is {tolerance!r}", remedy="use a finite number that is not negative")
    require_seed(seed)
    registry = registry_or_default(registry)
    try:
        # numpy is an optional dependency
        from opshift.analysis.verification.compare import tolerance_for
        from opshift.analysis.verification.execution import RunRequest, execute
        from opshift.analysis.verification.inputs import inputs_of, read_provided, with_sizes_of
        from opshift.analysis.verification.interface_casts import interface_casts
        from opshift.analysis.verification.runtimes import RuntimeModel, opener_of
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        raise CannotVerify("numpy is not installed", remedy="pip install 'opshift[verify]'") from error
    home, libraries = _folder_of_model(original), _library_paths(custom_ops)
    first = RuntimeModel(model_of(original)[0], home, libraries)
    result = model_of(converted)[0]
    casts = interface_casts(first.model, result)
    tolerance = tolerance_for(casts.types) if tolerance is None and casts.types else tolerance
    named = None if folder is None else path_argument("folder", folder).resolve()
    second = RuntimeModel(result, _folder_of_model(converted) or named or home, libraries, casts)
    require_deterministic(first.model)
    graph = first.model.graph
    given = read_provided(inputs, graph, second.model.graph)
    _require_inputs(given, second.model)
    needed = with_sizes_of(inputs_of(graph), second.model.graph)
    progress = progress or Progress()
    request = RunRequest(first, second, needed, given, runtime, samples, seed, tolerance, progress)
    verification, feeds = execute(request, registry)
    if verification.equal:
        return verification
    # imported here, because few verifications fail
    from opshift.analysis.verification.executable_graph import ModelRuntime
    from opshift.analysis.verification.locate import locate

    one, other = (
        ModelRuntime(model, opener_of(name), registry)
        for model, name in zip((first, second), verification.runtimes, strict=True)
    )
    different = [each for each in verification.outputs if not each.equal]
    raise VerificationFailed(
        verification, location=locate((one, other), feeds, different, tolerance, progress)
    )


def require_seed(seed: int) -> None:
    """Raise UsageError for a seed that numpy does not accept."""
    if not _is_number(seed, Integral, 0):
        raise UsageError(f"the seed is {seed!r}", remedy="use 0 or a positive integer")


def _is_number(value: object, kind: type, least: int) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool) and least <= value < inf  # type: ignore[operator]


def _require_inputs(given: Iterable[str], converted: ModelProto) -> None:
    """Raise UsageError for a value of an input that is only an initializer in the converted model."""
    names = {value.name for value in converted.graph.input}
    constants = {each.name for each in converted.graph.initializer} - names
    for name in sorted(constants.intersection(given)):
        reason = f"{name!r} is a constant of the converted model, not an input"
        remedy = "provide no value, or convert with --keep-initializer-inputs (keep_initializer_inputs=True)"
        raise UsageError(reason, remedy=remedy)


def _folder_of_model(model: ModelLike) -> Path | None:
    folder = folder_of(model)
    return folder and folder.resolve()


def _library_paths(paths: Iterable[str | os.PathLike[str]]) -> tuple[Path, ...]:
    libraries = path_arguments("custom_ops", paths)
    for each in libraries:
        if not each.is_file():
            reason = "this library of custom operators does not exist"
            raise UsageError(reason, place=str(each), remedy="pass the path of a shared library")
    return libraries


RANDOM_OPERATORS = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
"""Operators that generate random numbers, which differ between runtimes even with a seed."""


def require_deterministic(model: ModelProto) -> None:
    """Raise CannotVerify if a node of a model may generate random numbers."""
    for part in executed_graphs(model):
        for proto in part.container.node:
            if canonical_domain(proto.domain) != DEFAULT_DOMAIN:
                continue
            if proto.op_type in RANDOM_OPERATORS or (
                proto.op_type == "Dropout" and _may_be_random(Node.from_proto(proto), part)
            ):
                raise CannotVerify(
                    f"{proto.op_type} generates random numbers, so the outputs of two runs differ",
                    place=f"node {node_label(proto.name, proto.op_type, proto.output)}",
                    remedy="compare the distributions of both models' outputs yourself",
                )


def _may_be_random(node: Node, part: ExecutedGraph) -> bool:
    opset = part.opsets.get(DEFAULT_DOMAIN, 1)
    if opset < 7:  # before opset 7, the attribute `is_test` of Dropout selects the mode
        return not node.attribute("is_test", 0)
    # since opset 12, the input `training_mode` of Dropout selects the mode
    if opset < 12 or not node.input(2):
        return False
    training = part.constant(node.input(2))
    return training is None or any(training.values)
