"""Fit models to the installed onnxruntime or another runtime, load the results, and compare their outputs.

    python tools/measure_fit.py
    PYTHONPATH=src:folder/of/another/release python tools/measure_fit.py --errors 100
    python tools/measure_fit.py --runtime tract-0.23.9 --python ~/venv/bin/python

`--python` is the interpreter of an environment with another runtime and numpy, in which models may crash. The
models are the cases of operators in the package onnx. The command prints how many fit, load, and have the
expected outputs, and the others by cause: `kernel` if onnx.reference computes the expected outputs with the
fitted model, so that a kernel of the runtime is the cause, otherwise `conversion`. It prints wrong results of
single nodes that the data about the runtime lacks, as its file has them.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.reference import ReferenceEvaluator

from comparison.measure_nodes import MeasuredNode, wrong_text
from measurement.run_models import Outcome, Worker, loader_of
from opshift.analysis.fit.fit import fit
from opshift.analysis.fit.result import DoesNotFit
from opshift.model.errors import OpshiftError
from opshift.registry.runtimes.files import get_runtime
from opshift.registry.runtimes.runtime import Runtime

Outputs = Sequence[Any]

RANDOM = {"Bernoulli", "Dropout", "Multinomial", "RandomNormalLike", "RandomUniformLike"}
"""Operators with random outputs."""

NOT_IN_NUMPY = set(range(onnx.TensorProto.BFLOAT16, max(onnx.TensorProto.DataType.values()) + 1))
"""Numbers of the element types that onnxruntime neither reads from numpy arrays nor returns as such."""

TOLERANCE_OF_BFLOAT16 = 2e-2
"""Relative and absolute tolerance of bfloat16 outputs, which another process compares in a wider type."""

ROUNDING = {"float16": 1e-3, "bfloat16": 1e-2}
"""Error of sums relative to the largest output, for types other than float."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit, load and run all cases; return 1 if a conversion changes an output."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--errors", type=int, default=1000, help="number of cases to list")
    parser.add_argument("--only", default="", help="text in the names of the cases")
    parser.add_argument("--runtime", default=f"onnxruntime-{onnxruntime.__version__}")
    parser.add_argument("--allow", action="append", default=[], help="permission of `fit`; may be repeated")
    parser.add_argument("--python", help="interpreter with the runtime, unless that is onnxruntime")
    options = parser.parse_args(arguments)
    runtime = get_runtime(options.runtime)
    onnxruntime.set_default_logger_severity(4)
    counts: Counter[str] = Counter()
    nodes: list[MeasuredNode] = []
    with ExitStack() as stack:
        worker = None
        if options.python:
            worker = stack.enter_context(closing(Worker(options.python, loader_of(runtime.runtime))))
        for case in load_model_tests(kind="node"):
            if options.only not in case.name:
                continue
            found = list(outcomes(case, runtime, worker, options.allow, nodes))
            counts.update(each.partition(":")[0] for each in found)
            if ":" in found[-1] and options.errors > 0:
                options.errors -= 1
                print(f"{case.name}: {found[-1][:300]}")
    print(wrong_text(runtime.name, nodes), end="")
    total = counts["model"]
    shares = ", ".join(f"{name} {count} ({count / total:.1%})" for name, count in counts.items())
    print(f"{runtime.name}: {shares}")
    return int(counts["conversion"] > 0)


def outcomes(
    case: Any, runtime: Runtime, worker: Worker | None, allow: Sequence[Any], nodes: list[MeasuredNode]
) -> Iterator[str]:
    """Yield the stages that a case reaches, and the reason why it does not reach the next stage.

    Fitted models whose outputs can be compared are added to `nodes`.
    """
    yield "model"
    try:
        result = fit(case.model.SerializeToString(), runtime, allow=allow)
    except DoesNotFit as error:
        yield f"does not fit: {error}"
        return
    except OpshiftError as error:
        yield f"error: {error}"
        return
    yield "fits"
    fitted = result.model
    for each in _outcomes_in_worker(case, fitted, worker) if worker else _outcomes_here(case, fitted):
        if each == "right" or each.startswith("kernel"):
            outcome = Outcome("equal" if each == "right" else "differs", each)
            nodes.append(MeasuredNode(outcome, fitted, bool(result.report.warnings)))
        yield each


def _outcomes_here(case: Any, fitted: bytes) -> Iterator[str]:
    """Yield the further outcomes of a case in the installed onnxruntime."""
    try:
        onnxruntime.InferenceSession(fitted, providers=["CPUExecutionProvider"])
        session = onnxruntime.InferenceSession(_with_floats(fitted), providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's error classes have no common base
        yield f"does not load: {error}"
        return
    yield "loads"
    if not RANDOM.intersection(node.op_type for node in case.model.graph.node):
        yield from _compare_outputs(case, fitted, session)


def _outcomes_in_worker(case: Any, fitted: bytes, worker: Worker) -> Iterator[str]:
    """Yield the further outcomes of a case in another process."""
    names, inputs, expected = _values_of_case(case, fitted)
    is_random = RANDOM.intersection(node.op_type for node in case.model.graph.node)
    types = _types_of_values(onnx.ModelProto.FromString(fitted).graph.output).values()
    wanted = [_array_in_type(*each) for each in zip(expected, types, strict=False)]
    arrays = [isinstance(each, np.ndarray) and each.dtype.kind in "biufc" for each in (*inputs, *wanted)]
    values: dict[str, Any] = {}
    if all(arrays) and not is_random:
        values = {f"in.{name}": each for name, each in zip(names, inputs, strict=False)}
        values |= {f"out.{number}": each for number, each in enumerate(wanted)}
        if any(each.dtype.name == "bfloat16" for each in expected):
            values["tolerance"] = np.float64(TOLERANCE_OF_BFLOAT16)
    outcome = worker.run(fitted, values)
    if not outcome.loads:
        yield f"does not load: {outcome.error}"
        return
    yield "loads"
    if outcome.outcome == "fails":
        yield f"does not run: {outcome.error}"
    elif outcome.outcome == "equal":
        yield "comparable"
        yield "right"
    elif outcome.outcome == "differs":
        yield "comparable"
        yield _cause_of_difference(
            case, fitted, dict(zip(names, inputs, strict=False)), expected, outcome.error
        )


def _with_floats(fitted: bytes) -> bytes:
    """Return a model that casts outputs of types that numpy lacks to float."""
    model = onnx.ModelProto.FromString(fitted)
    for output in model.graph.output:
        kind = output.type.tensor_type
        if kind.elem_type in NOT_IN_NUMPY:
            model.graph.node.add(
                op_type="Cast", input=[output.name], output=[f"{output.name}_float"]
            ).attribute.add(name="to", type=onnx.AttributeProto.INT, i=onnx.TensorProto.FLOAT)
            output.name += "_float"
            kind.elem_type = onnx.TensorProto.FLOAT
    content: bytes = model.SerializeToString()
    return content


def _compare_outputs(case: Any, fitted: bytes, session: Any) -> Iterator[str]:
    names, inputs, expected = _values_of_case(case, fitted)
    feeds = dict(zip(names, inputs, strict=False))
    try:
        results = session.run(None, {name: _fed_value(each) for name, each in feeds.items()})
    except Exception as error:  # onnxruntime cannot read these types from numpy arrays, or return them
        yield f"does not run: {error}"
        return
    yield "comparable"
    if _are_equal(results, expected, case):
        yield "right"
        return
    yield _cause_of_difference(case, fitted, feeds, expected)


def _cause_of_difference(
    case: Any, fitted: bytes, feeds: Any, expected: Outputs, difference: str = "wrong"
) -> str:
    """Return the likely cause of wrong outputs."""
    try:
        reference = ReferenceEvaluator(onnx.ModelProto.FromString(fitted)).run(None, feeds)
    except Exception as error:  # any operator may fail in onnx.reference
        return f"unknown: onnx.reference: {error}"
    return f"{'kernel' if _are_equal(reference, expected, case) else 'conversion'}: {difference}"


def _values_of_case(case: Any, fitted: bytes) -> tuple[list[str], list[Any], list[Any]]:
    """Return the names and values of the inputs, in the types of the fitted model, and expected outputs."""
    inputs, expected = (list(map(_array_of, values)) for values in case.data_sets[0])
    names = [each.name for each in case.model.graph.input]
    types = _types_of_values(onnx.ModelProto.FromString(fitted).graph.input)
    return (
        names,
        [_array_in_type(*each) for each in zip(inputs, map(types.get, names), strict=False)],
        expected,
    )


def _types_of_values(values: Any) -> dict[str, int]:
    return {each.name: each.type.tensor_type.elem_type for each in values}


def _array_in_type(value: Any, number: int | None) -> Any:
    """Return an array in the element type with this number, which represents all of its values."""
    wanted = helper.tensor_dtype_to_np_dtype(number) if number else None
    return (
        value.astype(wanted) if wanted and isinstance(value, np.ndarray) and value.dtype != wanted else value
    )


def _array_of(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic) else value


def _fed_value(value: Any) -> Any:
    number = helper.np_dtype_to_tensor_dtype(value.dtype) if isinstance(value, np.ndarray) else 0
    if number not in NOT_IN_NUMPY:
        return value
    bits = value.view(f"uint{value.dtype.itemsize * 8}")
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, number)


def _are_equal(results: Outputs, expected: Outputs, case: Any) -> bool:
    return len(results) == len(expected) and all(
        _is_equal(one, other, case) for one, other in zip(results, expected, strict=True)
    )


def _is_equal(one: Any, other: Any, case: Any) -> bool:
    if isinstance(other, list):
        return isinstance(one, list) and _are_equal(one, other, case)
    if other is None:
        return one is None
    left, right = np.asarray(one), np.asarray(other)
    if right.dtype.kind not in "fcV":
        return left.shape == right.shape and bool(np.array_equal(left, right))
    name = right.dtype.name
    if right.dtype.kind == "V":
        left, right = left.astype(np.float32), right.astype(np.float32)
    finite = right[np.isfinite(right)]
    size = float(np.abs(finite).max(initial=0))
    least = ROUNDING.get(name, 1e-6) * size
    close = left.shape == right.shape and np.allclose(
        left, right, rtol=case.rtol, atol=max(case.atol, least), equal_nan=True
    )
    return bool(close)


if __name__ == "__main__":
    sys.exit(main())
