"""Nodes that a runtime does not implement."""

from __future__ import annotations

import pickle

import onnx
import pytest
from support.toy_runtime import model, toy_runtime

from opshift.analysis.runtime_support.check_support import check_support
from opshift.model.errors import InvalidModel

RUNTIME = toy_runtime()



def reasons(tested: onnx.ModelProto) -> list[str]:
    return [each.reason for each in check_support(tested, RUNTIME)]


def test_accepts_nodes_with_kernels_for_their_inferred_types() -> None:
    assert check_support(model("h = Relu (x) y = Add (h, h)"), RUNTIME) == ()


def test_reports_place_operator_types_reason_and_remedy() -> None:
    (found,) = check_support(model("y = Relu (x)", "double[2] x"), RUNTIME)
    assert (found.place, found.operator) == ("graph, node Relu -> y", "ai.onnx.Relu:14")
    assert found.types == {"T": "tensor(double)", "X": "tensor(double)", "Y": "tensor(double)"}
    assert found.reason == "toy-1.0 has no kernel of ai.onnx.Relu:14 for T: double, X: double, Y: double"
    assert found.remedy == "it has T: float"
    assert pickle.loads(pickle.dumps(found)) == found


def test_infers_types_of_computed_values() -> None:
    (found,) = check_support(model("h = Cast <to = 7> (x) y = Add (h, h)"), RUNTIME)
    assert found.operator == "ai.onnx.Cast:19"
    (found,) = check_support(model("h = Add (x, x) y = Mul (h, h)", "int64[2] x"), RUNTIME)
    assert found.operator == "ai.onnx.Mul:14"


def test_expands_function_bodies() -> None:
    gelu = model("y = Gelu (x)")
    assert check_support(gelu, toy_runtime(expands_functions=False)) != ()
    (found,) = check_support(gelu, toy_runtime())
    assert "in its function body, toy-1.0 has no kernel of ai.onnx.S" in found.reason
    operators = {**RUNTIME.operators, "ai.onnx.Sqrt": [{"versions": [6, 13]}]}
    more = toy_runtime(
        operators={
            **operators,
            "ai.onnx.Sum": [{"versions": [8, 13]}],
            "ai.onnx.Cast": [{"versions": [6, 19]}],
        }
    )
    assert check_support(gelu, more) == ()
    (found,) = check_support(model("y = Gelu (x)", "double[2] x"), more)
    assert "in its function body" in found.reason


def test_checks_subgraphs_and_called_functions() -> None:
    branches = "then_branch = t () => (a) { a = Abs (x) }, else_branch = e () => (b) { b = Relu (x) }"
    (found,) = check_support(model(f"y = If <{branches}> (c)", "bool c, float[2] x"), RUNTIME)
    assert found.place == "graph / If.then_branch, node Abs -> a"
    function = '<domain: "local", opset_import: ["" : 20]> F (a) => (b) { b = Relu (a) }'
    assert reasons(model("y = local.F (x)", functions=function)) == []
    (found,) = check_support(
        model("h = local.F (x) y = local.F (h)", "double[2] x", functions=function), RUNTIME
    )
    assert found.place == "graph, node F -> h, function local.F, node Relu -> b"


def test_accepts_operators_of_the_runtime() -> None:
    assert reasons(model("y = com.microsoft.QuickGelu (x)")) == []
    assert reasons(model("y = SimplifiedLayerNormalization (x, x)")) == []
    assert reasons(model("y = com.microsoft.FastGelu (x)")) == [
        "toy-1.0 has no kernel of com.microsoft.FastGelu"
    ]
    assert reasons(model("y = local.Unknown (x)")) == ["toy-1.0 does not know the domain local"]


def test_reports_opsets_and_ir_version_once() -> None:
    new = model("y = Relu (x)", opset=21)
    new.ir_version = 10
    assert reasons(new) == [
        "toy-1.0 supports opset 20 of ai.onnx, the model has 21",
        "toy-1.0 supports IR version 9, the model has 10",
    ]


def test_does_not_expand_operators_of_newer_opsets() -> None:
    swish = model("y = Swish (x)", opset=24)
    assert [each.operator for each in check_support(swish, RUNTIME)] == ["", "ai.onnx.Swish:24"]


def test_refuses_recursive_functions() -> None:
    function = '<domain: "local", opset_import: ["" : 20, "local" : 1]> F (a) => (b) { b = local.F (a) }'
    recursive = model("y = local.F (x)", functions=function)
    with pytest.raises(InvalidModel):
        check_support(recursive, RUNTIME)
