"""Rules that keys in the files of runtimes turn on, each with a model that it concerns."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper
from support.toy_runtime import model, toy_runtime

from opshift.runtimes.check_support import check_support

NAMES = ("Abs", "Cast", "CastLike", "Constant", "Identity", "If", "Mul", "Relu", "Sigmoid", "Trilu")

KERNELS = {f"ai.onnx.{name}": [{"versions": [1, 28]}] for name in NAMES}


def reasons(tested: onnx.ModelProto, **keys: Any) -> list[str]:
    """Return why a runtime with some keys does not run a model."""
    given = {"opsets": {"ai.onnx": 28}, "ir_version": 14, "operators": KERNELS, **keys}
    runtime = toy_runtime(**{"expands_functions": False, **given})
    return [each.reason.removeprefix("toy-1.0 ") for each in check_support(tested, runtime)]


@pytest.mark.parametrize(
    ("span", "opset", "is_refused"),
    [
        ([18, 20], 17, False),
        ([18, 20], 18, True),
        ([18, 20], 20, True),
        ([18, 20], 21, False),
        ([18, 99], 28, True),
    ],
)
def test_restriction_to_opsets(span: list[int], opset: int, *, is_refused: bool) -> None:
    restriction = {"reason": "a reason", "when": {"opsets": span}}
    found = reasons(model("y = Relu (x)", opset=opset), restrictions={"ai.onnx.Relu": [restriction]})
    assert found == (["refuses the node: a reason"] if is_refused else [])


@pytest.mark.parametrize(
    ("node", "types", "axes", "is_refused"),
    [
        ("y = Mul (x, z)", "float[2, 3] x, float[3, 3] z", {"A": 1, "B": 0}, True),
        ("y = Mul (x, z)", "float[2, 3] x, float[3, 3] z", {"A": 0, "B": 0}, False),
        ("y = Mul (x, x)", "float[2, 3] x", {"A": 0, "B": 0}, True),
        ("y = Mul (x, x)", "float[2, 3] x", {"A": 0, "B": 1}, False),
        ("y = Mul (x, x)", "float[3, 3] x", {"A": 0, "B": 1}, True),
        ("y = Mul (x, x)", "float[N, N] x", {"A": 0, "B": 1}, True),
    ],
)
def test_restriction_to_equal_sizes(node: str, types: str, axes: dict[str, int], *, is_refused: bool) -> None:
    restriction = {"reason": "a reason", "when": {"equal_sizes": axes}}
    found = reasons(model(node, types), restrictions={"ai.onnx.Mul": [restriction]})
    assert found == (["refuses the node: a reason"] if is_refused else [])


@pytest.mark.parametrize(
    ("node", "opset", "keys", "is_run"),
    [
        # the body of Swish 24 has Mul, Sigmoid, Constant and CastLike, of which two are newer at opset 25
        ("Swish", 24, {"expands_functions": True}, True),
        ("Swish", 25, {"expands_functions": True}, False),
        ("Swish", 25, {"expands_functions": True, "expands_outdated_bodies": True}, True),
        ("Swish", 25, {"expands_outdated_bodies": True}, False),
        # the body of Elu has opset 18
        ("Elu", 17, {"expands_functions": True, "expands_outdated_bodies": True}, False),
    ],
)
def test_bodies_with_operators_of_other_versions(
    node: str, opset: int, keys: dict[str, bool], *, is_run: bool
) -> None:
    assert (reasons(model(f"y = {node} (x)", opset=opset), **keys) == []) == is_run


BRANCHES = "then_branch = t () => (a) { a = Abs (x) }, else_branch = e () => (b) { b = Relu (x) }"


@pytest.mark.parametrize(
    ("nodes", "names", "validates", "found"),
    [
        ("h = Relu (x) y = Abs (h)", ["n", "n"], True, ["refuses two nodes with the same name 'n'"]),
        ("h = Relu (x) y = Abs (h)", ["n", "n"], False, []),
        ("h = Relu (x) y = Abs (h)", ["n", "m"], True, []),
        ("h = Relu (x) y = Abs (h)", ["", ""], True, []),
        (f"h = If <{BRANCHES}> (c) y = Abs (h)", ["n", "m", "n", "n"], True, []),  # in different graphs
    ],
)
def test_names_of_nodes(nodes: str, names: list[str], validates: bool, found: list[str]) -> None:
    tested = model(nodes, "float[2] x, bool c")
    graphs = [each.g for node in tested.graph.node for each in node.attribute if each.g.node]
    every = [node for graph in (tested.graph, *graphs) for node in graph.node]
    for node, name in zip(every, names, strict=True):
        node.name = name
    assert reasons(tested, validates_nodes=validates) == found


RELU, CAST = "h = Relu (x) y = Abs (h)", "h = Cast <to = 1> (x) y = Abs (h)"


@pytest.mark.parametrize(
    ("nodes", "declared", "validates", "problem"),
    [
        (RELU, TensorProto.FLOAT, True, ""),
        (RELU, TensorProto.UNDEFINED, True, ""),
        (RELU, TensorProto.INT64, True, "ai.onnx.Relu, type variable T is both float and int64"),
        (RELU, TensorProto.INT64, False, ""),
        (CAST, TensorProto.FLOAT, True, ""),
        (CAST, TensorProto.INT64, True, "ai.onnx.Cast, an output of type float is declared as int64"),
        (CAST, TensorProto.INT64, False, ""),
    ],
)
def test_declared_types_of_outputs(nodes: str, declared: int, *, validates: bool, problem: str) -> None:
    tested = model(nodes)
    tested.graph.value_info.append(helper.make_tensor_value_info("h", declared, [2]))
    found = reasons(tested, validates_nodes=validates)
    assert found == ([f"refuses the node: in its schema of {problem}"] if problem else [])


INVALID = {
    "y = Relu <alpha = 1.0> (x)": "it has no attribute `alpha`",
    "y = Cast (x)": "it requires the attribute `to`",
    "y = Relu (x, x)": "it has 1 inputs, not 2",
    "y = Mul (x, i)": "type variable T is both float and int64",
    "y = Trilu <upper = 1.0> (x)": "the attribute `upper` must be INT",
    "y = Mul (, x)": "it requires `A`",
}


@pytest.mark.parametrize("node", INVALID)
def test_validation_of_nodes(node: str) -> None:
    tested = model(node, "float[2, 2] x, int64[2, 2] i")
    op_type = node.split()[2]
    (found,) = reasons(tested, validates_nodes=True)
    assert found == f"refuses the node: in its schema of ai.onnx.{op_type}, {INVALID[node]}"
    assert reasons(tested, validates_nodes=False) == []


INTERNAL = {"acme.internal.Blocked": [{"versions": [1, 1], "types": {"T": ["float"]}}]}


@pytest.mark.parametrize(
    ("types", "output", "internal", "found"),
    [
        ("float[2] x", TensorProto.FLOAT, INTERNAL, []),
        ("float[2] x", TensorProto.UNDEFINED, INTERNAL, []),
        ("float[2] x", TensorProto.FLOAT, {}, ["does not support the domain acme.internal"]),
        ("double[2] x", TensorProto.FLOAT, INTERNAL, ["refuses the node: inputs must be float, not double"]),
        ("float[2] x", TensorProto.DOUBLE, INTERNAL, ["refuses the node: outputs must be float, not double"]),
    ],
)
def test_operators_in_models_that_the_runtime_optimized(
    types: str, output: int, internal: dict[str, Any], found: list[str]
) -> None:
    tested = model("h = acme.internal.Blocked (x) y = Relu (h)", types)
    tested.opset_import.add(domain="acme.internal", version=1)
    if output:
        tested.graph.value_info.append(helper.make_tensor_value_info("h", output, [2]))
    assert reasons(tested, internal_operators=internal) == found


@pytest.mark.parametrize(
    ("imports", "version", "found"),
    [
        ({}, 9, []),
        ({"acme": 3}, 3, []),
        ({"acme": 3}, 4, ["supports opset 3 of acme, the model has 4"]),
        ({"acme": "ai.onnx"}, 28, []),
        ({"acme": "ai.onnx"}, 29, ["supports opset 28 of acme, the model has 29"]),
    ],
)
def test_imports_of_other_domains(imports: dict[str, Any], version: int, found: list[str]) -> None:
    tested = model("y = Relu (x)")
    tested.opset_import.add(domain="acme", version=version)
    assert reasons(tested, imports=imports) == found


@pytest.mark.parametrize(
    ("opset", "casts", "is_run"),
    [
        (18, [{"versions": [6, 13]}], True),
        (19, [{"versions": [6, 13]}], False),  # Cast 19 has no kernel
        (19, [{"versions": [6, 19]}], True),
        (18, [], False),
    ],
)
def test_casts_that_the_runtime_inserts(opset: int, casts: list[dict[str, Any]], *, is_run: bool) -> None:
    kernels = {"ai.onnx.Abs": [{"versions": [1, 28], "types": {"T": ["float"]}}], "ai.onnx.Cast": casts}
    keys = {"operators": kernels, "computes_in": {"float16": "float"}}
    assert (reasons(model("y = Abs (x)", "float16[2] x", opset=opset), **keys) == []) == is_run
