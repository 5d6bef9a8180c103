"""Steps that concern some element types alone are taken wherever such values are, and nowhere else."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import FunctionProto, NodeProto, TensorProto, helper
from support.running import op_types

from opshift.converter.convert import convert_version

FLOAT, INT8, BFLOAT16 = TensorProto.FLOAT, TensorProto.INT8, TensorProto.BFLOAT16


def node(op_type: str, read: str, made: str, domain: str = "", **stated: Any) -> NodeProto:
    found: NodeProto = helper.make_node(op_type, [read], [made], domain=domain, **stated)
    return found


def model(
    nodes: list[NodeProto], types: dict[str, int], opset: int, *functions: FunctionProto
) -> onnx.ModelProto:
    """Values of two elements: those that nodes make and that have a type are outputs."""
    values = {name: helper.make_tensor_value_info(name, each, [2]) for name, each in types.items()}
    made = {each.output[0] for each in nodes}
    graph = helper.make_graph(
        nodes,
        "g",
        [value for name, value in values.items() if name not in made],
        [value for name, value in values.items() if name in made],
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
    found: onnx.ModelProto = helper.make_model(
        graph, opset_imports=imports, functions=functions, ir_version=10
    )
    return found


@pytest.mark.parametrize(
    ("nodes", "types", "expected"),
    [
        ([node("LeakyRelu", "x", "y")], {"x": FLOAT, "y": FLOAT}, ["LeakyRelu"]),
        ([node("LeakyRelu", "x", "y")], {"x": BFLOAT16, "y": BFLOAT16}, ["Cast", "LeakyRelu", "Cast"]),
        (
            [
                node("Cast", "x", "b", to=BFLOAT16),
                node("LeakyRelu", "b", "l"),
                node("Cast", "l", "y", to=FLOAT),
            ],
            {"x": FLOAT, "y": FLOAT},
            ["Cast", "Cast", "LeakyRelu", "Cast", "Cast"],
        ),
        (
            [node("LeakyRelu", "x", "y"), node("LeakyRelu", "z", "w")],
            {"x": FLOAT, "y": FLOAT, "z": BFLOAT16, "w": BFLOAT16},
            ["LeakyRelu", "Cast", "LeakyRelu", "Cast"],
        ),
    ],
    ids=["of no such type", "of such a type", "behind a cast", "of one of two nodes"],
)
def test_nodes_take_a_step_for_their_types(
    nodes: list[NodeProto], types: dict[str, int], expected: list[str]
) -> None:
    assert op_types(convert_version(model(nodes, types, 18), 15)) == expected


def test_a_function_may_be_written_for_another_opset() -> None:
    """Relu of the graph takes integers, that of the function does not."""
    function = helper.make_function(
        "local", "F", ["a"], ["b"], [node("Relu", "a", "b")], [helper.make_opsetid("", 13)]
    )
    nodes = [node("Relu", "x", "y"), node("F", "z", "w", "local")]
    given = model(nodes, {"x": INT8, "y": INT8, "z": FLOAT, "w": FLOAT}, 14, function)
    found = convert_version(given, 12, ir_version="keep")
    assert op_types(found) == ["Cast", "Relu", "Cast", "F"]


def test_a_call_is_no_operator() -> None:
    function = helper.make_function(
        "", "Relu", ["a"], ["b"], [node("Abs", "a", "b")], [helper.make_opsetid("", 14)]
    )
    function.overload = "mine"
    call = node("Relu", "x", "y")
    call.overload = "mine"
    given = model(
        [call, node("Relu", "z", "w")], {"x": INT8, "y": INT8, "z": FLOAT, "w": FLOAT}, 14, function
    )
    assert op_types(convert_version(given, 12, ir_version="keep")) == ["Relu", "Relu"]
