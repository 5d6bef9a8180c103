"""Run a model in onnxruntime, or in onnx.reference if onnxruntime has no kernel."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx.reference import ReferenceEvaluator
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NoKernel

from opshift.model.element_types import BY_NUMBER
from opshift.model.graphs import nested_nodes
from opshift.model.operator_ids import DEFAULT_DOMAIN, opset_imports
from random_graphs.values import is_custom, type_of

MAX_ORT_OPSET = 26
"""The newest opset of the default domain that onnxruntime runs."""

MIN_REFERENCE_OPSET = 16
"""Before this opset, onnx.reference applies later definitions of some operators."""
UNSUPPORTED_IN_REFERENCE = re.compile(
    r"Unknown activation function|operator '(ReduceLogSumExp_18|LinearRegressor)'"
    r"|GridSample interpolation only supports"
)
"""Messages of onnx.reference for valid models with features that it does not implement.

It knows the modes of GridSample only by their names since version 20.
"""
RECURRENT = ("GRU", "LSTM", "RNN")
SEQUENCE_LENS = 4
"""Recurrent operators, and the position of an input that onnx.reference ignores."""

ort.set_default_logger_severity(4)
Feeds = Mapping[str, Any]
_OPTIONS = ort.SessionOptions()
_OPTIONS.log_severity_level = 4
_OPTIONS.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
_OPTIONS.intra_op_num_threads = 1  # sessions start ten times as fast without a thread pool


class CannotRun(Exception):
    """The model is not valid."""


class NoRuntime(CannotRun):
    """No runtime supports the model."""


def run_anywhere(model: onnx.ModelProto, feeds: Feeds) -> list[Any]:
    """Return the outputs of a model.

    Raises:
        CannotRun: the model is not valid.
        NoRuntime: neither runtime supports the model.
    """
    try:
        return run_in_onnxruntime(model, feeds)
    except NoRuntime:
        return run_in_reference(model, feeds)


def run_both(before: onnx.ModelProto, after: onnx.ModelProto, feeds: Feeds) -> tuple[list[Any], list[Any]]:
    """Return the outputs of two models in the same runtime, since runtimes round and overflow differently.

    Raises:
        CannotRun: the second model is invalid in a runtime that runs the first.
        NoRuntime: neither runtime supports both models.
    """
    for run in (run_in_onnxruntime, run_in_reference):
        try:
            expected = run(before, feeds)
        except CannotRun:
            continue
        try:
            return expected, run(after, feeds)
        except NoRuntime:
            continue
    raise NoRuntime("neither runtime supports both models")


def _default_opset(model: onnx.ModelProto) -> int:
    return opset_imports(model.opset_import, model.ir_version).get(DEFAULT_DOMAIN, 1)


def run_in_onnxruntime(model: onnx.ModelProto, feeds: Feeds) -> list[Any]:
    """Return the outputs of a model in onnxruntime; raise CannotRun or NoRuntime."""
    if _default_opset(model) > MAX_ORT_OPSET or any(map(is_custom, feeds.values())):
        raise NoRuntime("onnxruntime does not support the opset or the input types")
    try:
        session = ort.InferenceSession(
            model.SerializeToString(), _OPTIONS, providers=["CPUExecutionProvider"]
        )
        return list(session.run(None, dict(feeds)))
    except NoKernel as error:
        raise NoRuntime(str(error)) from error
    except Exception as error:
        raise CannotRun(str(error)) from error


def run_in_reference(model: onnx.ModelProto, feeds: Feeds) -> list[Any]:
    """Return the outputs of a model in onnx.reference; raise CannotRun or NoRuntime."""
    if any(map(_is_wrong, nested_nodes(model.graph, *model.functions))):
        raise NoRuntime("onnx.reference ignores `sequence_lens` and `clip`, and confuses the axes of LRN")
    if _default_opset(model) < MIN_REFERENCE_OPSET:
        raise NoRuntime("onnx.reference is not used for old operators")
    try:
        inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except Exception as error:
        raise CannotRun(str(error)) from error
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = list(ReferenceEvaluator(model).run(None, dict(feeds)))
            agrees = all(map(_matches_inference, results, inferred.graph.output))
    except Exception as error:
        kind = NoRuntime if _is_unsupported(error) else CannotRun
        raise kind(str(error)) from error
    if not agrees:
        raise NoRuntime("onnx.reference returns a different type or shape than inferred")
    return results


def _is_wrong(node: onnx.NodeProto) -> bool:
    """Return whether onnx.reference computes a node wrongly.

    It ignores lengths of sequences and limits of recurrent nodes. For LRN, it sums as many channels as the
    batch has images.
    """
    if node.op_type == "LRN":
        return True
    has_lengths = len(node.input) > SEQUENCE_LENS and bool(node.input[SEQUENCE_LENS])
    has_limit = any(each.name == "clip" for each in node.attribute)
    return node.op_type in RECURRENT and (has_lengths or has_limit)


def _is_unsupported(error: BaseException | None) -> bool:
    """Return whether onnx.reference reports, perhaps from a subgraph, that it does not implement a node."""
    while error is not None:
        if isinstance(error, NotImplementedError) or UNSUPPORTED_IN_REFERENCE.search(str(error)):
            return True
        error = error.__cause__
    return False


def _matches_inference(result: Any, value: onnx.ValueInfoProto) -> bool:
    """Return whether a tensor has the inferred type and shape, where known."""
    if not value.type.HasField("tensor_type") or not isinstance(result, np.ndarray):
        return True
    inferred = value.type.tensor_type
    if result.dtype == object and not all(isinstance(each, str) for each in result.flat):
        return False
    if inferred.elem_type and BY_NUMBER[inferred.elem_type].name != type_of(result):
        return False
    dims = [dim.dim_value if dim.HasField("dim_value") else None for dim in inferred.shape.dim]
    if not inferred.HasField("shape"):
        return True
    return len(dims) == result.ndim and all(a in (None, b) for a, b in zip(dims, result.shape, strict=True))
