"""Names that are not UTF-8 text: a recorded conversion refuses them before it changes the model."""

from __future__ import annotations

import pytest
from onnx import TensorProto, helper

from opshift.converter.convert import convert_version
from opshift.model.errors import InvalidModel
from opshift.model.messages import ModelProto

WRONG = "PLACEHOLDER"
PLACES = (
    "output",
    "if output",
    "subgraph output",
    "function",
    "function domain",
    "function import",
    "import",
)


def _model(wrong: str) -> bytes:
    def name(place: str, usual: str) -> str:
        return WRONG if place == wrong else usual

    def branch(output: str) -> object:
        softmax = helper.make_node("Softmax", ["x"], [output], axis=0)
        return helper.make_graph([softmax], "s", [], [helper.make_tensor_value_info(output, 1, [2])])

    domain, function = name("function domain", "local"), name("function", "F")
    nodes = [
        helper.make_node("Softmax", ["x"], [name("output", "m")]),
        helper.make_node(
            "If",
            ["c"],
            [name("if output", "z")],
            then_branch=branch(name("subgraph output", "t")),
            else_branch=branch("e"),
        ),
        helper.make_node(function, ["x"], ["w"], domain=domain),
        helper.make_node("Relu", [name("output", "m")], ["y"]),
    ]
    body = [helper.make_node("Softmax", ["a"], ["b"])]
    imports = [helper.make_opsetid("", 11), helper.make_opsetid(name("function import", "q"), 1)]
    functions = [helper.make_function(domain, function, ["a"], ["b"], body, imports)]
    x, y, z, w = (
        helper.make_tensor_value_info(each, TensorProto.FLOAT, [2])
        for each in ("x", "y", name("if output", "z"), "w")
    )
    graph = helper.make_graph(nodes, "g", [x, helper.make_tensor_value_info("c", 9, [])], [y, z, w])
    imports = [helper.make_opsetid(each, 1) for each in (name("import", "d"), domain)]
    imports.append(helper.make_opsetid("", 11))
    model = helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=8)
    serialized: bytes = model.SerializeToString().replace(WRONG.encode(), b"\xff\xfe" + WRONG[2:].encode())
    return serialized


def test_converts_model_with_text() -> None:
    assert convert_version(_model(""), 13, reversible=True)


@pytest.mark.parametrize("place", PLACES)
def test_refuses_name_and_keeps_model(place: str) -> None:
    model = ModelProto.FromString(_model(place))
    before = model.SerializeToString(deterministic=True)
    with pytest.raises(InvalidModel, match="is not UTF-8 text"):
        convert_version(model, 13, reversible=True, inplace=True)
    assert model.SerializeToString(deterministic=True) == before
