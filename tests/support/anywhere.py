"""Run a model where it runs: in onnxruntime, else in onnx.reference with the formulas of these tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import onnx
from onnx.reference import ReferenceEvaluator
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NoKernel

from opshift import convert_version
from support.formulas import formulas
from support.published import Case
from support.running import NEWEST_IN_ORT, assert_equal, opset_of, run

OLDEST_IN_ORT = 7
"""Below it some kernels are there, but not all of the runtime keeps to the old forms."""
INVERTED = "Bernoulli"
"""onnxruntime takes its probability for that of a zero."""


class Ran(NamedTuple):
    """Where a model was run, and what it gave, sequences flattened."""

    runtime: str
    outputs: list[Any]


def keeps_its_numbers(case: Case, target: Mapping[str, int]) -> tuple[str, str] | None:
    """Where a model was run before and after its conversion; `None` if it was not.

    Raises:
        AssertionError: the outputs differ, or a name is lost.
        Exception: what was valid before is not any more.
    """
    before = _ran(case.model, case.feeds)
    if before is None:
        return None
    result = convert_version(case.model, target, allow="approximate")
    assert _names(result) == _names(case.model)
    after = _ran(result, case.feeds, was_in=before.runtime)
    if after is None:
        return None
    assert_equal(after.outputs, before.outputs)
    _check(result, after)
    return before.runtime, after.runtime


def _ran(model: onnx.ModelProto, feeds: Mapping[str, Any], *, was_in: str = "") -> Ran | None:
    """The result of a conversion may want a kernel that onnxruntime lacks; nothing else stops it there."""
    opset = opset_of(model) if any(not each.domain for each in model.opset_import) else 1
    if opset <= NEWEST_IN_ORT and all(node.op_type != INVERTED for node in model.graph.node):
        try:
            return Ran("onnxruntime", list(_flat(run(model, feeds))))
        except NoKernel:
            pass
        except Exception:
            if was_in == "onnxruntime" and opset >= OLDEST_IN_ORT:
                raise
    try:
        evaluator = ReferenceEvaluator(model, new_ops=formulas(opset))
        return Ran("onnx.reference", list(_flat(evaluator.run(None, dict(feeds)))))
    except Exception:
        return None


def _flat(values: Sequence[Any]) -> Iterator[Any]:
    for each in values:
        if isinstance(each, list):
            yield from _flat(each)
        elif each is not None:
            yield each


def _names(model: onnx.ModelProto) -> list[str]:
    return sorted(node.name for node in model.graph.node if node.name)


def _check(model: onnx.ModelProto, ran: Ran) -> None:
    """Apply ONNX's checker, which wants to be told the shape of every output; onnxruntime infers them too."""
    if all(value.type.HasField("tensor_type") for value in model.graph.output):
        for value, output in zip(model.graph.output, ran.outputs, strict=True):
            shape = value.type.tensor_type.shape
            shape.ClearField("dim")
            shape.dim.extend(onnx.TensorShapeProto.Dimension(dim_value=size) for size in output.shape)
            shape.SetInParent()
    onnx.checker.check_model(model, full_check=ran.runtime != "onnxruntime")
