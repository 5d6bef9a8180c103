"""Steps that affect only some element types apply to exactly the values of these types."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import FunctionProto, NodeProto, TensorProto, helper
from support.execution import op_types

from opshift.converter.convert import convert_version

FLOAT, INT8, BFLOAT16 = TensorProto.FLOAT, TensorProto.INT8, TensorProto.BFLOAT16


def node(op_type: str, source: str, output: str, domain: str = "", **attributes: Any) -> NodeProto:
    result: NodeProto = helper.make_node(op_type, [source], [output], domain=domain, **attributes)
    return result


def model(
    nodes: list[NodeProto], types: dict[str, int], opset: int, *functions: FunctionProto
) -> onnx.ModelProto:
    """Return a model with values of two elements; node outputs with a type become graph outputs."""
    values = {name: helper.make_tensor_value_info(name, each, [2]) for name, each in types.items()}
    produced = {each.output[0] for each in nodes}
    graph = helper.make_graph(
        nodes,
        "g",
        [value for name, value in values.items() if name not in produced],
        [value for name, value in values.items() if name in produced],
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
    result: onnx.ModelProto = helper.make_model(
        graph, opset_imports=imports, functions=functions, ir_version=10
    )
    return result


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
    ids=["other type", "affected type", "affected type between casts", "one of two nodes"],
)
def test_applies_steps_by_element_type(
    nodes: list[NodeProto], types: dict[str, int], expected: list[str]
) -> None:
    assert op_types(convert_version(model(nodes, types, 18), 15)) == expected


def test_uses_the_opset_of_each_function() -> None:
    """Relu supports integers at the opset of the graph, but not at that of the function."""
    function = helper.make_function(
        "local", "F", ["a"], ["b"], [node("Relu", "a", "b")], [helper.make_opsetid("", 13)]
    )
    nodes = [node("Relu", "x", "y"), node("F", "z", "w", "local")]
    original = model(nodes, {"x": INT8, "y": INT8, "z": FLOAT, "w": FLOAT}, 14, function)
    result = convert_version(original, 12, ir_version="keep")
    assert op_types(result) == ["Cast", "Relu", "Cast", "F"]


def test_calls_are_not_operators() -> None:
    function = helper.make_function(
        "", "Relu", ["a"], ["b"], [node("Abs", "a", "b")], [helper.make_opsetid("", 14)]
    )
    function.overload = "mine"
    call = node("Relu", "x", "y")
    call.overload = "mine"
    original = model(
        [call, node("Relu", "z", "w")], {"x": INT8, "y": INT8, "z": FLOAT, "w": FLOAT}, 14, function
    )
    assert op_types(convert_version(original, 12, ir_version="keep")) == ["Relu", "Relu"]
