"""Run a model in onnxruntime, or else in onnx.reference with the formulas of these tests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import onnx
from onnx.reference import ReferenceEvaluator
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NoKernel

from opshift import convert_version
from support.execution import MAX_ORT_OPSET, Feeds, assert_equal, opset_of, run
from support.formulas import formulas
from support.published import Case
from support.recorded import recorded_operators
from support.released import is_later

INVERTED_IN_ORT = "Bernoulli"
"""onnxruntime interprets its input as the probability of a zero."""
UNSUPPORTED_IN_ORT = re.compile(
    "|".join(
        (
            r"is not a registered function/op",
            r"Numpy_type \d+ can't be converted|No corresponding Numpy type",  # new types
            r"Op registered for \w+ is deprecated",
            r"Op \(GivenTensorFill\)",  # its type inference requires an input
            r"layout_ == 0 was false",  # batchwise layout of recurrent operators
            r"Attribute (saturate|round_mode) is only used",  # attributes for casts to 8-bit floats only
            r"Unrecognized attribute: left_window_size for operator Attention",
            r"attn_mask == nullptr \|\| attn_mask->Shape",  # masks that are shorter than the keys
            r"QuantizeLinear node.*Tensor type mismatch",  # scales and data of different types
        )
    )
)
"""Messages of onnxruntime for valid models with features that it does not implement."""


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
    before = run_in_any_runtime(case.model, case.feeds)
    if before is None:
        return None
    result = convert_version(case.model, target, allow="approximate")
    assert _names(result) == _names(case.model)
    after = run_in_any_runtime(result, case.feeds)
    if after is None:
        return None
    assert_equal(after.outputs, before.outputs)
    _check(result, after)
    return before.runtime, after.runtime


def run_in_any_runtime(model: onnx.ModelProto, feeds: Feeds) -> RunResult | None:
    """Run a model in the first runtime that supports it; `None` if neither does."""
    for name, run_in in (("onnxruntime", run_in_ort), ("onnx.reference", run_in_reference)):
        try:
            return RunResult(name, list(flatten(run_in(model, feeds))))
        except NotImplementedError:
            continue
    return None


def run_in_ort(model: onnx.ModelProto, feeds: Feeds) -> list[Any]:
    """Run a model in onnxruntime.

    Raises:
        NotImplementedError: onnxruntime does not implement an operator version of the model.
    """
    if _opset(model) > MAX_ORT_OPSET or any(node.op_type == INVERTED_IN_ORT for node in model.graph.node):
        raise NotImplementedError
    try:
        return run(model, feeds)
    except NoKernel as error:
        raise NotImplementedError from error
    except Exception as error:
        if not UNSUPPORTED_IN_ORT.search(str(error)):
            raise
        raise NotImplementedError from error


def run_in_reference(model: onnx.ModelProto, feeds: Feeds) -> list[Any]:
    """Run a model in onnx.reference with the formulas of these tests.

    Raises:
        NotImplementedError: neither of them implements an operator version of the model.
    """
    opset = _opset(model)
    evaluator = ReferenceEvaluator(model, new_ops=[*formulas(opset), *recorded_operators(opset)])
    return list(evaluator.run(None, dict(feeds)))


def _opset(model: onnx.ModelProto) -> int:
    return opset_of(model) if any(not each.domain for each in model.opset_import) else 1


def flatten(values: Sequence[Any]) -> Iterator[Any]:
    for each in values:
        if isinstance(each, list):
            yield from flatten(each)
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
    if not is_later(model):
        onnx.checker.check_model(model, full_check=result.runtime != "onnxruntime")
