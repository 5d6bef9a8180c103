"""Run a model in onnxruntime, or else in onnx.reference with the formulas of these tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import onnx
from onnx.reference import ReferenceEvaluator
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NoKernel

from opshift import convert_version
from support.formulas import formulas
from support.published import Case
from support.running import MAX_ORT_OPSET, assert_equal, opset_of, run

MIN_ORT_OPSET = 7
"""Below this opset onnxruntime has some kernels but does not follow all old definitions."""
INVERTED_IN_ORT = "Bernoulli"
"""onnxruntime interprets its input as the probability of a zero."""


class RunResult(NamedTuple):
    """The runtime that ran a model, and the outputs with flattened sequences."""

    runtime: str
    outputs: list[Any]


def compare_before_and_after(case: Case, target: Mapping[str, int]) -> tuple[str, str] | None:
    """Compare the outputs of a model before and after its conversion.

    Returns:
        The runtimes that ran the two models, or `None` if no runtime ran both.

    Raises:
        AssertionError: the outputs differ or a node name was lost.
        Exception: the conversion made a valid model invalid.
    """
    before = _run(case.model, case.feeds)
    if before is None:
        return None
    result = convert_version(case.model, target, allow="approximate")
    assert _names(result) == _names(case.model)
    after = _run(result, case.feeds, previous=before.runtime)
    if after is None:
        return None
    assert_equal(after.outputs, before.outputs)
    _check(result, after)
    return before.runtime, after.runtime


def _run(model: onnx.ModelProto, feeds: Mapping[str, Any], *, previous: str = "") -> RunResult | None:
    """Run a model; after `previous` onnxruntime, only a missing kernel may lead to another runtime."""
    opset = opset_of(model) if any(not each.domain for each in model.opset_import) else 1
    if opset <= MAX_ORT_OPSET and all(node.op_type != INVERTED_IN_ORT for node in model.graph.node):
        try:
            return RunResult("onnxruntime", list(_flatten(run(model, feeds))))
        except NoKernel:
            pass
        except Exception:
            if previous == "onnxruntime" and opset >= MIN_ORT_OPSET:
                raise
    try:
        evaluator = ReferenceEvaluator(model, new_ops=formulas(opset))
        return RunResult("onnx.reference", list(_flatten(evaluator.run(None, dict(feeds)))))
    except Exception:
        return None


def _flatten(values: Sequence[Any]) -> Iterator[Any]:
    for each in values:
        if isinstance(each, list):
            yield from _flatten(each)
        elif each is not None:
            yield each


def _names(model: onnx.ModelProto) -> list[str]:
    return sorted(node.name for node in model.graph.node if node.name)


def _check(model: onnx.ModelProto, result: RunResult) -> None:
    """Apply ONNX's checker, which requires the shape of every output; onnxruntime infers them itself."""
    if all(value.type.HasField("tensor_type") for value in model.graph.output):
        for value, output in zip(model.graph.output, result.outputs, strict=True):
            shape = value.type.tensor_type.shape
            shape.ClearField("dim")
            shape.dim.extend(onnx.TensorShapeProto.Dimension(dim_value=size) for size in output.shape)
            shape.SetInParent()
    onnx.checker.check_model(model, full_check=result.runtime != "onnxruntime")
