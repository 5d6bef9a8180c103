"""Run one node or one model: in onnxruntime, and where that has no kernel in onnx.reference."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx.reference import ReferenceEvaluator
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NoKernel

from opshift.registry.element_types import BY_NUMBER
from support.graphs.values import is_custom, type_of
from support.running import NEWEST_IN_ORT, opset_of

OLDEST_IN_REFERENCE = 16
"""onnx.reference computes what some operators meant before then as they are meant since."""
ort.set_default_logger_severity(4)
Feeds = Mapping[str, Any]
_OPTIONS = ort.SessionOptions()
_OPTIONS.log_severity_level = 4
_OPTIONS.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
_OPTIONS.intra_op_num_threads = 1  # ten times as fast to set up as a pool of threads


class CannotRun(Exception):
    """The model is not valid."""


class NoRuntime(CannotRun):
    """No runtime here has what the model needs."""


def run_anywhere(model: onnx.ModelProto, feeds: Feeds) -> list[Any]:
    """The outputs of a model.

    Raises:
        CannotRun: it is not valid; NoRuntime: neither runtime has what it needs.
    """
    try:
        return _run_in_ort(model, feeds)
    except NoRuntime:
        return _run_in_reference(model, feeds)


def run_alike(before: onnx.ModelProto, after: onnx.ModelProto, feeds: Feeds) -> tuple[list[Any], list[Any]]:
    """The outputs of two models in the same runtime: each rounds and overflows in its own way.

    Raises:
        CannotRun: a runtime that runs the first finds the second invalid.
        NoRuntime: neither runtime has what both need.
    """
    for run in (_run_in_ort, _run_in_reference):
        try:
            expected = run(before, feeds)
        except CannotRun:
            continue
        try:
            return expected, run(after, feeds)
        except NoRuntime:
            continue
    raise NoRuntime("neither runtime runs both")


def _run_in_ort(model: onnx.ModelProto, feeds: Feeds) -> list[Any]:
    if opset_of(model) > NEWEST_IN_ORT or any(map(is_custom, feeds.values())):
        raise NoRuntime("onnxruntime takes no such opset or values")
    try:
        session = ort.InferenceSession(
            model.SerializeToString(), _OPTIONS, providers=["CPUExecutionProvider"]
        )
        return list(session.run(None, dict(feeds)))
    except NoKernel as error:
        raise NoRuntime(str(error)) from error
    except Exception as error:
        raise CannotRun(str(error)) from error


def _run_in_reference(model: onnx.ModelProto, feeds: Feeds) -> list[Any]:
    if opset_of(model) < OLDEST_IN_REFERENCE:
        raise NoRuntime("onnx.reference is not asked about old operators")
    try:
        inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except Exception as error:
        raise CannotRun(str(error)) from error
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = list(ReferenceEvaluator(model).run(None, dict(feeds)))
            agrees = all(map(_is_of, results, inferred.graph.output))
    except Exception as error:
        raise NoRuntime(str(error)) from error
    if not agrees:
        raise NoRuntime("onnx.reference gives another type or shape than the operator has")
    return results


def _is_of(result: Any, value: onnx.ValueInfoProto) -> bool:
    """Whether a tensor has the type and shape that are inferred, as far as they are."""
    if not value.type.HasField("tensor_type") or not isinstance(result, np.ndarray):
        return True
    stated = value.type.tensor_type
    if result.dtype == object and not all(isinstance(each, str) for each in result.flat):
        return False
    if stated.elem_type and BY_NUMBER[stated.elem_type].name != type_of(result):
        return False
    dims = [dim.dim_value if dim.HasField("dim_value") else None for dim in stated.shape.dim]
    if not stated.HasField("shape"):
        return True
    return len(dims) == result.ndim and all(a in (None, b) for a, b in zip(dims, result.shape, strict=True))
