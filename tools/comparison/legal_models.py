"""Models that onnx and onnxruntime accept: onnx's own cases, nodes of com.microsoft, and random chains."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases

from comparison.chains import sample_chain
from comparison.compare import case_at
from opshift.checker.check import check
from opshift.checker.findings import Level

MAX_CONSTANT = 64
"""Maximum number of elements of an input that becomes a constant."""


@cache
def published_cases() -> Sequence[Any]:
    """Return onnx's test cases of operators, except for functions that are expanded."""
    cases = collect_testcases()
    return [each for each in cases if each.model is not None and "_expanded" not in each.name]


@cache
def _published(position: int) -> tuple[onnx.ModelProto, dict[str, Any]] | None:
    """Return a published case with the arrays of its inputs; `None` if a runtime rejects the case."""
    case = published_cases()[position]
    inputs, _ = case.data_sets[0]
    arrays = {
        declared.name: value
        for declared, value in zip(case.model.graph.input, inputs, strict=False)
        if isinstance(value, np.ndarray)
    }
    return (case.model, arrays) if is_accepted(case.model) else None


def node_model(rng: random.Random, *, contrib: bool) -> onnx.ModelProto | None:
    """Return a model with one node, some inputs of which are constants; `None` if a runtime rejects it."""
    if contrib:
        case = case_at(rng.randrange(2**32), rng.randrange(2**16))
        if not case.sample.domain:
            return None  # onnxruntime defines the operator in the default domain, but ONNX does not
        model: onnx.ModelProto = case.model
        count_results(model)
        has_shapes = all(each.type.tensor_type.HasField("shape") for each in model.graph.input)
        # onnx does not know these operators.
        return model if has_shapes and not runtime_error(model) else None
    found = _published(rng.randrange(len(published_cases())))
    if found is None:
        return None
    model = onnx.ModelProto()
    model.CopyFrom(found[0])
    share = rng.choice((0.0, 0.5, 1.0))
    for declared in list(model.graph.input):
        array = found[1].get(declared.name)
        if array is not None and array.size <= MAX_CONSTANT and rng.random() < share:
            model.graph.initializer.append(numpy_helper.from_array(array, declared.name))
            model.graph.input.remove(declared)
    return model if is_accepted(model) else None


def count_results(model: onnx.ModelProto) -> None:
    """Return a model that also returns the number of elements of each tensor, which every type allows."""
    del model.graph.value_info[:]
    for output in model.graph.output:
        if output.type.HasField("tensor_type"):
            name = f"{output.name}_size"
            model.graph.node.append(helper.make_node("Size", [output.name], [name]))
            output.CopyFrom(helper.make_tensor_value_info(name, TensorProto.INT64, []))


def chain_model(rng: random.Random) -> onnx.ModelProto | None:
    """Return a random chain of nodes; `None` if there is none or a runtime rejects it."""
    chain = sample_chain(rng.randrange(2**32), rng.randrange(2**16))
    return chain.model if chain is not None and is_accepted(chain.model) else None


def is_accepted(model: onnx.ModelProto) -> bool:
    """Return whether onnx's full check and onnxruntime both accept a model."""
    return not onnx_error(model) and not runtime_error(model)


def onnx_error(model: onnx.ModelProto) -> str:
    """Return the error of onnx's full check, or an empty string."""
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:  # onnx has no common base class of errors
        return str(error) or "error"
    return ""


def runtime_error(model: onnx.ModelProto) -> str:
    """Return the error of onnxruntime when it creates a session, or an empty string."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has no common base class of errors
        return str(error)
    return ""


def check_errors(model: onnx.ModelProto) -> list[str]:
    """Return the errors of `opshift.check`."""
    return [str(each) for each in check(model) if each.level is Level.ERROR]
