"""Runtimes that execute models: onnxruntime without optimizations, and onnx.reference."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from opshift.analysis.verification.inputs import Feeds
from opshift.analysis.verification.interface_casts import InterfaceCasts
from opshift.analysis.verification.numpy_types import ML_DTYPES_TYPES
from opshift.analysis.verification.reference_runtime import unsupported_operators
from opshift.analysis.verification.result import Runtime
from opshift.model.errors import UsageError
from opshift.model.extensions import ExtensionFailed
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import opset_imports
from opshift.model.process_state import WARNINGS_IGNORED
from opshift.model.types import element_type_of
from opshift.registry.registry import Registry

UNREGISTERED_OPERATOR = "is not a registered function/op"
"""Part of onnxruntime's error for an unknown operator outside ONNX's own domains."""

INSERTED_CAST = "InsertedPrecisionFreeCast_"
"""Prefix of the names of casts that onnxruntime inserts around a float16 node if it has only a float kernel.

Below opset 6, onnxruntime rejects these casts, because the attribute `to` of Cast is a string there.
"""

MAX_MESSAGE_LENGTH = 300
"""Maximum number of characters of a runtime's error that messages quote."""


class CannotRun(Exception):
    """A runtime rejects a model or its inputs; if `unsupported` is set, the model may still be valid."""

    def __init__(self, reason: str, *, unsupported: bool = False) -> None:
        self.reason = reason
        self.unsupported = unsupported
        super().__init__(reason)


class RuntimeModel(NamedTuple):
    """Model to load into a runtime.

    Attributes:
        model: the model.
        folder: the folder of its external data files; `None` if it is unknown.
        libraries: libraries of custom operators for onnxruntime.
        casts: casts of its inputs and outputs, whose values have other types outside of the runtime.
    """

    model: ModelProto
    folder: Path | None
    libraries: tuple[Path, ...] = ()
    casts: InterfaceCasts = InterfaceCasts()


@dataclass(frozen=True)
class Runner:
    """Model loaded into a runtime; `name` is the name of the runtime with its version."""

    name: str
    outputs_for: Callable[[Feeds], Iterable[object]]
    is_broken: bool = False
    """Whether the runtime rejects the model, so that `run` always raises."""

    def run(self, feeds: Feeds) -> list[object]:
        """Return all outputs in order; raise CannotRun if the model does not run."""
        try:
            with np.errstate(all="ignore"), WARNINGS_IGNORED:
                return list(self.outputs_for(feeds))
        except (CannotRun, ExtensionFailed):
            raise
        except Exception as error:  # runtimes may raise any exception
            raise CannotRun(f"{self.name}: {_short_message(error)}") from error


Opener = Callable[[RuntimeModel, Registry], Runner]


def openers(runtime: Runtime) -> tuple[Opener, ...]:
    """Return the functions that load a model into the selected runtimes, in order of preference.

    Each function raises CannotRun if its runtime is not installed, or does not support or accept the model.
    """
    both = {"onnxruntime": open_onnxruntime, "reference": open_reference}
    return tuple(both.values()) if runtime == "auto" else (both[runtime],)


def opener_of(name: str) -> Opener:
    """Return the function that loads a model into the runtime of a `Runner` with this name."""
    return open_onnxruntime if name.startswith("onnxruntime") else open_reference


class RuntimePair(NamedTuple):
    """Original and converted model, each loaded into a runtime."""

    original: Runner
    converted: Runner

    @property
    def is_mixed(self) -> bool:
        """Whether the two models are loaded into different runtimes."""
        return self.original.name != self.converted.name


def runtime_pairs(
    original: RuntimeModel, converted: RuntimeModel, runtime: Runtime, registry: Registry, reasons: list[str]
) -> Iterator[RuntimePair]:
    """Yield pairs of runners, one for each model, in the order of preference.

    If a runtime rejects only the converted model as invalid, the runner of that model raises CannotRun.
    Reasons why runtimes cannot load a model are appended to `reasons`.
    """
    originals: list[Runner] = []
    conversions: list[Runner] = []
    for opener in openers(runtime):
        one, other = (_try_open(opener, each, registry) for each in (original, converted))
        is_accepted = isinstance(one, Runner) or one.unsupported
        if isinstance(other, CannotRun) and not other.unsupported and is_accepted:
            other = _raising_runner(other)
        reasons += [each.reason for each in (one, other) if isinstance(each, CannotRun)]
        originals += [one] if isinstance(one, Runner) else []
        conversions += [other] if isinstance(other, Runner) else []
    for first, second in product(originals, conversions):
        yield RuntimePair(first, second)


def _try_open(opener: Opener, source: RuntimeModel, registry: Registry) -> Runner | CannotRun:
    try:
        return opener(source, registry)
    except CannotRun as error:
        return error


def _raising_runner(error: CannotRun) -> Runner:
    def run(feeds: object) -> list[object]:
        """Raise the error that the runtime raised when it loaded the model."""
        raise error

    return Runner(error.reason.partition(":")[0], run, is_broken=True)


def open_onnxruntime(source: RuntimeModel, registry: Registry) -> Runner:
    """Load a model into onnxruntime on the CPU; raise CannotRun, or UsageError for an invalid library."""
    ort = _import_package("onnxruntime")
    name = f"onnxruntime {ort.__version__}"
    _require_supported(source.model, ort.__version__, registry)
    _require_numpy_types(source.model)
    options = ort.SessionOptions()
    # errors are raised as exceptions, so the log would only repeat them
    options.log_severity_level = 4
    # No optimizations: they replace operators, and the models are to be compared as they are written.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    # Threads that spin while they wait occupy cores that other processes need.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if source.folder is not None:
        key = "session.model_external_initializers_file_folder_path"
        options.add_session_config_entry(key, str(source.folder))
    for library in source.libraries:
        try:
            options.register_custom_ops_library(str(library))
        except Exception as error:  # the exceptions of onnxruntime have no common base class
            remedy = "pass a library for this release that exports RegisterCustomOps"
            raise UsageError(f"{name}: {_short_message(error)}", place=str(library), remedy=remedy) from error
    data = _serialize_source(source)
    try:
        session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the exceptions of onnxruntime have no common base class
        is_valid = any(each in str(error) for each in (UNREGISTERED_OPERATOR, INSERTED_CAST))
        unsupported = type(error).__name__ == "NotImplemented" or is_valid
        raise CannotRun(f"{name}: {_short_message(error)}", unsupported=unsupported) from error
    return _session_runner(name, session, source.casts)


def open_reference(source: RuntimeModel, registry: Registry) -> Runner:
    """Load a model into onnx.reference; raise CannotRun if this fails, or an operator is not implemented."""
    onnx = _import_package("onnx")
    from onnx.external_data_helper import load_external_data_for_model

    # imported here, because the module imports onnx
    from opshift.analysis.verification.reference_operators import evaluator

    name = f"onnx.reference {onnx.__version__}"
    reason = next(unsupported_operators(source.model, registry), None)
    if reason is not None:
        raise CannotRun(f"{name}: {reason}", unsupported=True)
    data = _serialize_source(source)
    try:
        model = onnx.load_model_from_string(data)
        if source.folder is not None:
            load_external_data_for_model(model, str(source.folder))
        session = evaluator(model, registry)
    except Exception as error:  # implementations of operators may raise any exception
        raise CannotRun(f"{name}: {_short_message(error)}", unsupported=True) from error
    return _session_runner(name, session, source.casts)


def _session_runner(name: str, session: Any, casts: InterfaceCasts) -> Runner:
    return Runner(name, lambda feeds: casts.cast_outputs(session.run(None, casts.cast_inputs(feeds))))


def _serialize_source(source: RuntimeModel) -> bytes:
    try:
        return bytes(source.model.SerializeToString())
    except Exception as error:  # the class of the error depends on the release of protobuf
        reason = "the model exceeds protobuf's limit of 2 GiB: store its weights as external data"
        raise CannotRun(reason, unsupported=True) from error


def _import_package(package: str) -> ModuleType:
    try:
        return import_module(package)
    except ImportError as error:
        reason = f"{package} is not installed (pip install 'opshift[verify]')"
        raise CannotRun(reason, unsupported=True) from error


def _require_supported(model: ModelProto, version: str, registry: Registry) -> None:
    releases = registry.releases.onnxruntime
    # for an unknown release, use the newest known one
    supported = releases.get(".".join(version.split(".")[:2]), list(releases.values())[-1])
    imports = opset_imports(model.opset_import, model.ir_version)
    unsupported = [
        f"{name} {opset}" for name, opset in imports.items() if opset > supported.opsets.get(name, opset)
    ]
    if model.ir_version > supported.ir_version:
        unsupported.append(f"IR version {model.ir_version}")
    if unsupported:
        raise CannotRun(f"onnxruntime {version} does not support {', '.join(unsupported)}", unsupported=True)


def _require_numpy_types(model: ModelProto) -> None:
    """Raise CannotRun if an input or output has a type that NumPy lacks: onnxruntime cannot convert it."""
    for value in (*model.graph.input, *model.graph.output):
        kind = element_type_of(value.type)
        if kind in ML_DTYPES_TYPES:
            reason = f"onnxruntime cannot pass {kind} ({value.name!r}) to or from Python"
            raise CannotRun(reason, unsupported=True)


def _short_message(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= MAX_MESSAGE_LENGTH else f"{text[:MAX_MESSAGE_LENGTH]} ..."
