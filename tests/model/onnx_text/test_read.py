"""Text of models and nodes, compared with the parser of ONNX."""

from __future__ import annotations

import pickle
import re

import onnx
import pytest
from onnx import helper, parser, printer

from opshift.model.errors import InvalidModel
from opshift.model.onnx_text.read import read_text

HEAD = '<ir_version: 10, opset_import: ["" : 21, "local" : 1]>\n'


def of_onnx(message: object) -> str:
    """Return the text of a message, without the empty names that ONNX's parser sets."""
    if not isinstance(message, onnx.ModelProto | onnx.GraphProto):
        kind = {"ModelProto": onnx.ModelProto, "GraphProto": onnx.GraphProto}[type(message).__name__]
        message = kind.FromString(message.SerializeToString())  # type: ignore[attr-defined]
    return re.sub(r'\n *(name|domain): ""', "", str(message))


@pytest.mark.parametrize(
    "text",
    [
        "y = Softmax <axis: int = 1> (x)",
        "a, b = Split <axis = -1, num_outputs = 2> (x) y = Add (a, b)",
        '"a/b" = Relu ("x y") y = Neg ("a/b")',
        '["the label"] y = Relu (x)',
        "y = local.F : over (x)",
        "y = com.example.deep.Op <f = 1.5e-3, g = -2.0, s = \"say \\\"hi\\\"\", e: ints = []> (x)",
        "y = Op <i = [1, -2], f = [1.0, 2.5], s = [\"a\", \"b\"], n = nan, m = -inf> (x)",
        "y = Op <f: float = 1, fs: floats = [1, 2.5]> (x)",
        "y = Resize (x, , sizes)",
        "y = Op (x) <late = 1>",
        "y = Constant <value = float[2, 2] named {1, 2.5, -3, inf}> ()",
        "y = Constant <value = int64 {-9223372036854775808}> ()",
        "y = Constant <value = uint64[1] {18446744073709551615}> ()",
        "y = Constant <value = bool[2] {0, 1}> ()",
        "y = Constant <value = string[2] {\"a\", \"b\"}> ()",
        "y = Constant <value = float16[1] {15360}> ()",
        "y = Constant <value = int4[2] {-8, 7}> ()",
        "y = Constant <value: tensor = double[0] {}> ()",
        "y = If <then_branch = g () => (z) { z = Relu (x) }, else_branch = h () => (z) { z = Neg (x) }> (c)",
        "y = Op <t: type_proto = seq(optional(float[N, ?, 3])), u: type_proto = map(int64, float)> (x)",
        "y = Op <t: type_proto = sparse_tensor(float[2])> (x)",
        "# a comment\ny = Relu (x) # another\n",
    ],
)  # fmt: skip
def test_reads_nodes_like_onnx(text: str) -> None:
    model = f"{HEAD} example (float[N, 4] x) => (float[] y) {{ {text}\n}}"
    expected = parser.parse_model(model)
    assert of_onnx(read_text(model)) == of_onnx(expected)


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD} g (float[N] x, int64 n = {{3}}) => (y) <float[2] w = {{1, 2}}, float v> {{ y = Add (x, w)}}",
        f"""{HEAD} g (seq(float[N]) x) => (map(string, int64) y) {{ y = local.F (x) }}
        <domain: "local", opset_import: ["" : 21], doc_string: "text"> F <a, b: int = 2> (x) => (y)
        {{ y = Op <i: int = @a, j: int = @b> (x) }}""",
        """<ir_version: 8, producer_name: "p", producer_version: "1", domain: "d", model_version: 7,
        doc_string: "x", opset_import: ["" : 17], metadata_props: ["key" : "value", "k2" : "v2"]>
        "g/1" () => () { }""",
        f"""{HEAD} g (float x) => (float y) <float[4] w = ["location": "w.bin", "offset": "0"]>
        {{ y = Add (x, w) }}""",
    ],
)
def test_reads_models_like_onnx(text: str) -> None:
    assert of_onnx(read_text(text)) == of_onnx(parser.parse_model(text))


def test_reads_what_onnx_prints() -> None:
    text = printer.to_text(parser.parse_model(printer.to_text(helper_model())))
    assert of_onnx(read_text(text)) == of_onnx(parser.parse_model(text))


def helper_model() -> onnx.ModelProto:
    nodes = [helper.make_node("Conv", ["/in/x", "w"], ["/out/y"], name="c 1", pads=[1, 1, 1, 1])]
    value = helper.make_tensor_value_info
    weights = helper.make_tensor("w", onnx.TensorProto.FLOAT, [1, 1, 1, 1], [0.1])
    inputs, outputs = [value("/in/x", 1, ["N", 1, None, 4])], [value("/out/y", 1, None)]
    return helper.make_model(helper.make_graph(nodes, "main graph", inputs, outputs, [weights]))


NODE = helper.make_node("Clip", ["x", "", "high"], ["y"], name="n", alpha=0.5, axes=[1, 2], mode="linear")


@pytest.mark.parametrize(
    "text",
    [
        '[n] y = Clip <alpha = 0.5, axes = [1, 2], mode = "linear"> (x, , high)',
        '[n] y = Clip(x, , high, alpha=0.5, axes=(1, 2), mode="linear")',
        "[n] y = op.Clip(x, '', high, alpha=0.5, axes=[1, 2,], mode='linear')",
        '[n] y = opset17.Clip(x, "", high, alpha=0.5, axes=[1, 2], mode="linear",)',
        "[n] %y = Clip[alpha = 0.5, axes = [1, 2], mode = 'linear'](%x, , %high)",
        """node = onnx.helper.make_node(
            "Clip", ["x", "", "high"], ["y"], "n", alpha=0.5, axes=[1, 2], mode="linear",
        )""",
        """make_node(op_type="Clip", inputs=["x", "", "high"], outputs=["y"], name="n",
                     alpha=.5, axes=[1, 2], mode="linear")""",
        str(NODE),
        """{"opType": "Clip", "input": ["x", "", "high"], "output": ["y"], "name": "n", "attribute": [
            {"name": "alpha", "type": "FLOAT", "f": 0.5}, {"name": "axes", "type": "INTS", "ints": ["1", 2]},
            {"name": "mode", "type": "STRING", "s": "bGluZWFy"}]}""",
    ],
)  # fmt: skip
def test_reads_forms_of_a_node(text: str) -> None:
    (node,) = read_text(text).node  # type: ignore[union-attr]
    found = onnx.NodeProto.FromString(node.SerializeToString())
    for each in found.attribute, NODE.attribute:
        each.sort(key=lambda attribute: attribute.name)
    assert found == NODE


def test_reads_calls_without_outputs_and_types_of_inputs() -> None:
    graph = read_text("Relu(float[N, 3] x)\nb = Sub(seq(float) y, True=False, flag=True)")
    assert [(list(each.input), list(each.output)) for each in graph.node] == [(["x"], []), (["y"], ["b"])]  # type: ignore[union-attr]
    assert [each.name for each in graph.value_info] == ["x", "y"]  # type: ignore[union-attr]
    assert [each.i for each in graph.node[1].attribute] == [0, 1]  # type: ignore[union-attr]


def test_reads_graphs_and_text_of_protobuf() -> None:
    graph = parser.parse_graph("g (float[2] x) => (float[2] y) { y = Relu (x) }")
    model = helper.make_model(graph)
    from google.protobuf import json_format

    assert of_onnx(read_text("g (float[2] x) => (float[2] y) { y = Relu(x) }")) == of_onnx(graph)
    for message in graph, model:
        assert of_onnx(read_text(str(message))) == of_onnx(message)
        assert of_onnx(read_text(json_format.MessageToJson(message))) == of_onnx(message)


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("", "line 1, column 1", "expected a node, got the end of the text"),
        ("y = Softmax(x", "line 1, column 14", r"expected '\)', got the end of the text"),
        ("y = Relu(x)\nz = Relu(y))", "line 2, column 12", r"expected a node, got '\)'"),
        ("y Relu(x)", "line 1, column 3", r"expected '\(', got 'Relu'"),
        ("a, b Relu(x)", "line 1, column 6", "expected '=' between outputs and an operator"),
        ("y = Clip(x, 0, 6)", "line 1, column 13", "the name of a value, not a number"),
        ("y = A(x, axis=)", "line 1, column 15", r"expected a number, a string, .* got '\)'"),
        ("y = A <axis: integer = 1> (x)", "line 1, column 14", "expected a type of attributes"),
        ("y = A <axis: int = 1.5> (x)", "line 1, column 8", "'axis' is not of type int"),
        ("y = A <axes: ints = 1> (x)", "line 1, column 8", "'axes' is not of type ints"),
        ("y = A <axes = []> (x)", "line 1, column 8", "an empty list needs a type: axes: ints = \\[\\]"),
        ("y = A <axes = [1, \"a\"]> (x)", "line 1, column 8", "'axes' is not of one type"),
        ("y = A <a = 9223372036854775808> (x)", "line 1, column 12", "from -9223372036854775808 to"),
        ("y = A <a = float[3] {1, 2}> (x)", "line 1, column 21", "has 2 elements, and its dimensions need 3"),
        ("y = A <a = float[N] {1}> (x)", "line 1, column 21", "numbers as dimensions"),
        ("y = A <a = int8[1] {200}> (x)", "line 1, column 21", "from -128 to 127, got '200'"),
        ("y = A <a = float16[1] {1.5}> (x)", "line 1, column 24", "expected an element of float16"),
        ("g (float x) => (float y) { y = A(x) ", "line 1, column 37", "expected a node, got the end"),
        ("g (float[N x) => (float y) { }", "line 1, column 12", r"expected '\]', got 'x'"),
        ("<ir_version: 8> g () => () { } rest", "line 1, column 36", r"expected '\('"),
        ("<ir_versions: 8> g () => () { }", "line 1, column 2", "unknown property 'ir_versions'"),
        ("make_node(inputs=['x'])", "line 1, column 24", "expected an operator"),
        ("make_node('A', ['x'], ['y'], '', '', '', '', 'more')", "line 1, column 46", "an attribute"),
        ("y = A(x) \N{GRINNING FACE}", "line 1, column 10", "expected a node, got"),
        ('{"opType": 3}', "", "cannot be parsed as a NodeProto"),
        ("y = Relu(\ud800)", "", "bytes that are not UTF-8"),
        ("graph { node { op: 1 } }", "", "cannot be parsed as a ModelProto"),
    ],
)  # fmt: skip
def test_errors_name_line_column_and_remedy(text: str, place: str, reason: str) -> None:
    with pytest.raises(InvalidModel, match=reason) as caught:
        read_text(text)
    assert str(caught.value.place) == place
    assert pickle.loads(pickle.dumps(caught.value)).as_dict() == caught.value.as_dict()


@pytest.mark.some_cases(4)
@pytest.mark.parametrize(
    "text",
    [
        "y = A <t: type_proto = " + "seq(" * 100_000,
        "y = A(x, b=g () => () {" * 10_000,
        "y = A(x, a=" + "[" * 100_000,
        "y = A(x, a=" + "9" * 1_000_000 + ")",
        "(" * 100_000,
        "[" * 100_000,
        "{" * 100_000,
        '{"graph":' * 10_000,
        "graph { node { attribute { g { " * 5_000,
        '"' * 99_999,
        "\\" * 100_000,
        "y = A <a = float[99999999999999999] {1}> (x)",
    ],
    ids=range(12),
)
def test_hostile_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidModel):
        read_text(text)


def test_reads_the_prefix_of_a_model_as_an_error() -> None:
    text = printer.to_text(helper_model())
    for end in range(len(text) - 2):
        with pytest.raises(InvalidModel):
            read_text(text[:end])
