"""The table of the installed onnxruntime agrees with its list of kernels, and the models that it loads."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from support.published import published

import import_kernels
from opshift.model.element_types import BY_NAME
from opshift.model.operator_ids import canonical_domain
from opshift.registry.record import from_plain_data
from opshift.registry.registry import default_registry
from opshift.registry.runtimes.files import get_runtime, runtime_files
from opshift.registry.runtimes.runtime import Kernel, Runtime
from opshift.runtimes.check_support import check_support
from runtime_files import ANY_LATER_VERSION, onnxruntime_rows

REGISTRY = default_registry()
NAME = f"onnxruntime-{onnxruntime.__version__}"

pytestmark = pytest.mark.skipif(NAME not in runtime_files(), reason=f"no file of {NAME}")


@pytest.fixture(scope="module")
def runtime() -> Runtime:
    return get_runtime(NAME)


def test_the_table_is_what_onnxruntime_lists(runtime: Runtime) -> None:
    listed = import_kernels.list_kernels(os.environ)
    rows = onnxruntime_rows(listed, runtime.opsets["ai.onnx"])
    assert from_plain_data(dict[str, tuple[Kernel, ...]], rows) == runtime.operators


def test_the_table_has_every_listed_combination_of_types(runtime: Runtime) -> None:
    listed: dict[tuple[str, int], set[tuple[tuple[str, str], ...]]] = {}
    for domain, name, (first, last), types in import_kernels.list_kernels(os.environ):
        key = f"{canonical_domain(domain)}.{name}"
        if key in ("ai.onnx.OneHot", "ai.onnx.ScatterND", "ai.onnx.TopK", "ai.onnx.QuantizeLinear"):
            since = first if last == ANY_LATER_VERSION else last
            listed.setdefault((key, since), set()).update(_combinations(types))
    assert len(listed) > 10
    for (key, since), combinations in listed.items():
        kernels = [each for each in runtime.operators[key] if each.implements(since)]
        found = [combination for each in kernels for combination in _combinations(each.types)]
        assert sorted(found) == sorted(combinations), key


def _combinations(types: Mapping[str, Any]) -> set[tuple[tuple[str, str], ...]]:
    found: set[tuple[tuple[str, str], ...]] = {()}
    for name, accepted in sorted(types.items()):
        found = {(*each, (name, kind)) for each in found for kind in accepted}
    return found


def _error(model: onnx.ModelProto) -> str:
    """Return the error of onnxruntime when it loads a model; empty if it does."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    except Exception as error:
        return str(error)
    return ""


def test_published_cases_load_as_predicted(runtime: Runtime) -> None:
    wrong, counts = [], {True: 0, False: 0}
    for (domain, name), cases in sorted(published().items()):
        # StringNormalizer needs locales of the system; ConvInteger is refused when the model runs.
        if domain not in ("", "ai.onnx.ml") or name in ("StringNormalizer", "ConvInteger"):
            continue
        for model in (each.model for each in cases[:2]):
            missing, error = check_support(model, runtime), _error(model)
            counts[not missing] += 1
            if bool(missing) != bool(error):
                wrong.append(f"{name}: {missing[0].reason if missing else error}")
    assert wrong == []
    assert counts[True] > 300
    assert counts[False] >= 15


OPERATORS = {
    "Abs": 1, "Add": 2, "Acosh": 1, "Cos": 1, "Erf": 1, "Identity": 1, "MatMul": 2, "Mul": 2, "Neg": 1,
    "NonZero": 1, "Relu": 1, "Round": 1, "Sigmoid": 1, "Sign": 1, "Sub": 2, "Tanh": 1, "Transpose": 1,
}  # fmt: skip
"""Operators with one type variable for all inputs, and their numbers of inputs."""


@pytest.mark.parametrize("opset", [11, 13, 23])
@pytest.mark.parametrize("op_type", OPERATORS)
def test_element_types_load_as_the_table_says(runtime: Runtime, op_type: str, opset: int) -> None:
    version = REGISTRY.get_schema(op_type, opset)
    (variable,) = {each.type for each in version.inputs}
    for kind in version.type_constraints[variable]:
        element = kind.removeprefix("tensor(").removesuffix(")")
        if element not in BY_NAME or kind == "tensor(string)":
            continue
        model = _one_node_model(op_type, BY_NAME[element].number, opset)
        support = runtime.kernel(version.id, {variable: kind})
        assert bool(support) == (_error(model) == ""), (kind, support.reason, _error(model))


def _one_node_model(op_type: str, element_type: int, opset: int) -> onnx.ModelProto:
    names = [f"x{position}" for position in range(OPERATORS[op_type])]
    result = TensorProto.INT64 if op_type == "NonZero" else element_type
    graph = helper.make_graph(
        [helper.make_node(op_type, names, ["y"])],
        "one_node",
        [helper.make_tensor_value_info(each, element_type, None) for each in names],
        [helper.make_tensor_value_info("y", result, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
