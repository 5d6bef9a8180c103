"""What runs a model: onnxruntime, unoptimized, or onnx.reference."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from opshift.converter.opsets import opset_imports
from opshift.converter.types import element_type_of
from opshift.converter.verification.arrays import EXTENDED
from opshift.converter.verification.inputs import Feeds
from opshift.converter.verification.reference import unimplemented
from opshift.converter.verification.result import Runtime
from opshift.registry.catalogue import Registry
from opshift.registry.releases import Release

UNREGISTERED = "is not a registered function/op"
"""What onnxruntime says of an operator of another domain than ONNX's two, if it does not have it."""
LONGEST = 300
"""How much of a runtime's message is told."""


class CannotRun(Exception):
    """A runtime does not take the model, or these inputs.

    Attributes:
        reason: what it says.
        unsupported: whether that is the runtime's limit, and says nothing about the model.
    """

    def __init__(self, reason: str, *, unsupported: bool = False) -> None:
        self.reason = reason
        self.unsupported = unsupported
        super().__init__(reason)


@dataclass(frozen=True)
class Source:
    """A model, and the folder that the files with its weights are in."""

    model: Any
    folder: Path | None


@dataclass(frozen=True)
class Runner:
    """A model in a runtime.

    Attributes:
        name: the runtime and its version.
        run: takes the inputs by name and gives all outputs, in order; raises CannotRun.
        is_broken: whether the runtime refuses the model, and `run` always raises.
    """

    name: str
    run: Callable[[Feeds], list[Any]]
    is_broken: bool = False


Opener = Callable[[Source, Registry], Runner]


def openers(runtime: Runtime) -> tuple[Opener, ...]:
    """What brings a model into a runtime, the preferred one first; each raises CannotRun."""
    return {
        "auto": (open_onnxruntime, open_reference),
        "onnxruntime": (open_onnxruntime,),
        "reference": (open_reference,),
    }[runtime]


def open_onnxruntime(source: Source, registry: Registry) -> Runner:
    """The model in onnxruntime, on the CPU.

    Raises:
        CannotRun: it is not installed, knows too old opsets, or refuses the model.
    """
    with _needed("onnxruntime"):
        import onnxruntime as ort
    name = f"onnxruntime {ort.__version__}"
    _require_known(source.model, ort.__version__, registry)
    _require_numpy_types(source.model)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # others may need the cores
    if source.folder is not None:
        options.add_session_config_entry(
            "session.model_external_initializers_file_folder_path", str(source.folder)
        )
    data = _bytes(source)
    try:
        session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors have no common base
        unsupported = type(error).__name__ == "NotImplemented" or UNREGISTERED in str(error)
        raise CannotRun(f"{name}: {_short(error)}", unsupported=unsupported) from error
    return Runner(name, _guarded(name, lambda feeds: session.run(None, dict(feeds))))


def open_reference(source: Source, registry: Registry) -> Runner:
    """The model in onnx.reference.

    Raises:
        CannotRun: onnx is not installed, does not have an operator's version, or refuses the model.
    """
    with _needed("onnx"):
        import onnx
        from onnx.external_data_helper import load_external_data_for_model
        from onnx.reference import ReferenceEvaluator
    name = f"onnx.reference {onnx.__version__}"
    reason = next(unimplemented(source.model, registry), None)
    if reason is not None:
        raise CannotRun(f"{name}: {reason}", unsupported=True)
    data = _bytes(source)
    try:
        model = onnx.load_model_from_string(data)
        if source.folder is not None:
            load_external_data_for_model(model, str(source.folder))
        session = ReferenceEvaluator(model)
    except Exception as error:  # whatever an implementation raises
        raise CannotRun(f"{name}: {_short(error)}", unsupported=True) from error
    return Runner(name, _guarded(name, lambda feeds: session.run(None, dict(feeds))))


def _bytes(source: Source) -> bytes:
    try:
        return bytes(source.model.SerializeToString())
    except Exception as error:  # which error depends on protobuf's release
        reason = "the model is larger than a message can be: store its weights in files of their own"
        raise CannotRun(reason, unsupported=True) from error


def _guarded(name: str, run: Callable[[Feeds], Any]) -> Callable[[Feeds], list[Any]]:
    def guarded(feeds: Feeds) -> list[Any]:
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                return list(run(feeds))
        except Exception as error:  # whatever a runtime raises
            raise CannotRun(f"{name}: {_short(error)}") from error

    return guarded


@contextmanager
def _needed(package: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        reason = f"{package} is not installed (pip install 'opshift[verify]')"
        raise CannotRun(reason, unsupported=True) from error


def _require_known(model: Any, version: str, registry: Registry) -> None:
    known = _release(version, registry)
    imports = opset_imports(model.opset_import, model.ir_version)
    newer = [f"{name} {opset}" for name, opset in imports.items() if opset > known.opsets.get(name, opset)]
    if model.ir_version > known.ir_version:
        newer.append(f"IR version {model.ir_version}")
    if newer:
        raise CannotRun(f"onnxruntime {version} does not know {', '.join(newer)}", unsupported=True)


def _release(version: str, registry: Registry) -> Release:
    """What a release of onnxruntime knows; of one that is newer than the registry, what the newest does."""
    listed = registry.releases.onnxruntime
    return listed.get(".".join(version.split(".")[:2]), list(listed.values())[-1])


def _require_numpy_types(model: Any) -> None:
    """Its Python interface passes only what numpy itself has."""
    for value in (*model.graph.input, *model.graph.output):
        if element_type_of(value.type) in EXTENDED:
            raise CannotRun(
                f"onnxruntime does not exchange {element_type_of(value.type)} ({value.name!r}) with Python",
                unsupported=True,
            )


def _short(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
