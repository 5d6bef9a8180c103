"""Changed branches that no sample executes are named in the result."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from opshift import convert_version, verify

node, value = helper.make_node, helper.make_tensor_value_info

FUNCTIONS = {"Clipped": "Clip", "Negated": "Neg"}


def model_of(then_branch: str, else_branch: str, rate: int) -> onnx.ModelProto:
    """Build a model that executes `then_branch` if the input is `rate`, and else `else_branch`."""
    bounds = {"Clip": {"min": 0.0}}  # an input since opset 11
    branches = {
        name: helper.make_graph(
            [node(op, ["x"], [name], domain="local" * (op in FUNCTIONS), **bounds.get(op, {}))],
            name,
            [],
            [value(name, TensorProto.FLOAT, None)],
        )
        for name, op in (("then_branch", then_branch), ("else_branch", else_branch))
    }
    graph = helper.make_graph(
        [node("Equal", ["sample_rate", "rate"], ["c"]), node("If", ["c"], ["y"], name="select", **branches)],
        "g",
        [value("x", TensorProto.FLOAT, [2]), value("sample_rate", TensorProto.INT64, [])],
        [value("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.int64(rate), "rate")],
    )
    functions = [
        helper.make_function(
            "local",
            name,
            ["x"],
            ["y"],
            [node(op, ["x"], ["y"], **bounds.get(op, {}))],
            [helper.make_opsetid("", 10)],
        )
        for name, op in FUNCTIONS.items()
        if name in (then_branch, else_branch)
    ]
    imports = [helper.make_opsetid("", 10), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8, functions=functions)


THEN, ELSE = ("graph, node 'select', then_branch",), ("graph, node 'select', else_branch",)
RATE = {"sample_rate": np.int64(16000)}
CASES: dict[str, Any] = {
    "rate that is never generated": (("Clip", "Relu", 16000), {}, THEN),
    "rate of the caller": (("Clip", "Relu", 16000), RATE, ()),
    "other branch": (("Relu", "Clip", 16000), RATE, ELSE),
    "unchanged branch": (("Relu", "Clip", 16000), {}, ()),
    "branch that calls a changed function": (("Clipped", "Relu", 16000), {}, THEN),
    "branch that calls an unchanged function": (("Negated", "Relu", 16000), {}, ()),
    "no changed branch": (("Relu", "Neg", 16000), {}, ()),
}


def test_a_constant_condition_needs_no_inputs() -> None:
    model = model_of("Clip", "Relu", 16000)
    model.graph.initializer.append(numpy_helper.from_array(np.array(False), "fixed"))
    model.graph.node[1].input[0] = "fixed"
    assert verify(model, convert_version(model, 11)).unreached == ()


@pytest.mark.parametrize("runtime", ["onnxruntime", "reference"])
@pytest.mark.parametrize(("arguments", "inputs", "expected"), CASES.values(), ids=CASES)
def test_names_changed_branches_that_never_run(
    arguments: Any, inputs: Any, expected: tuple[str, ...], runtime: Any
) -> None:
    model = model_of(*arguments)
    found = verify(model, convert_version(model, 11), inputs, runtime=runtime)
    assert (found.equal, found.unreached) == (True, expected)
