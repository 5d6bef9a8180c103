"""Below opset 9, a Constant holds floats only: other constants become inputs, initializers or casts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser
from support.execution import Array, assert_equal, op_types, run

from opshift import default_registry
from opshift.converter.convert import convert, convert_version
from opshift.converter.refusals import ConversionRefused

X = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
YES = np.array(True)

GRAPHS = {
    "integer Constant": """(float[2, 3] x) => (float[4, 9] y) {
        c = Constant <value = int64[2] {2, 3}> ()
        y = Tile (x, c)
    }""",
    "boolean Constant": """(float[2, 3] x) => (bool[2, 3] y) {
        zero = Constant <value = float {0.0}> ()
        c = Constant <value = bool[3] {1, 0, 1}> ()
        p = Greater (x, zero)
        y = And (p, c)
    }""",
    "int32 Constant that the graph returns": """(float[2, 3] x) => (int32[2] y, float[2, 3] z) {
        y = Constant <value = int32[2] {-3, 2147483647}> ()
        z = Relu (x)
    }""",
    "fill value of a computed shape": """(float[2, 3] x) => (float[2, 3] y) {
        s = Shape (x)
        c = ConstantOfShape <value = float[1] {2.0}> (s)
        y = Add (x, c)
    }""",
    "Constant in branches, with one name": """(float[2, 3] x, bool yes) => (float[4, 9] y) {
        y = If (yes) <
            then_branch = t () => (float[4, 9] a) {
                c = Constant <value = int64[2] {2, 3}> ()
                a = Tile (x, c)
            },
            else_branch = e () => (float[4, 9] b) {
                d = Constant <value = int64[2] {2, 3}> ()
                n = Neg (x)
                b = Tile (n, d)
            }
        >
    }""",
}


def parsed(graph: str, opset: int = 9, ir_version: int = 3) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: {ir_version}, opset_import: ["" : {opset}]> g {graph}')


def feeds_of(model: onnx.ModelProto) -> dict[str, Array]:
    known = {"x": X, "yes": YES}
    return {each.name: known[each.name] for each in model.graph.input}


@pytest.mark.parametrize("target", [8, 7])
@pytest.mark.parametrize("ir_version", [3, 4, 7])
@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_results_are_legal_and_equal(graph: str, ir_version: int, target: int) -> None:
    model = parsed(graph, ir_version=ir_version)
    onnx.checker.check_model(model, full_check=True)
    result = convert_version(model, target)
    assert result.ir_version == 3
    onnx.checker.check_model(result, full_check=True)
    assert_equal(run(result, feeds_of(model)), run(model, feeds_of(model)))
    initializers = {each.name for each in result.graph.initializer}
    assert initializers == {each.name for each in result.graph.input} - {
        each.name for each in model.graph.input
    }


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_results_are_legal_with_the_ir_version_kept(graph: str) -> None:
    model = parsed(graph, ir_version=10)
    result = convert_version(model, 8, ir_version="keep")
    onnx.checker.check_model(result, full_check=True)
    assert_equal(run(result, feeds_of(model)), run(model, feeds_of(model)))


@pytest.mark.parametrize("yes", [False, True])
def test_casts_initializers_that_two_branches_name_alike(yes: bool) -> None:
    branch = """{name} () => (float[2, 6] {name}) <int64[2] c = {{1, 2}}> {{
        {name}s = {op_type} (x)
        {name} = Tile ({name}s, c)
    }}"""
    branches = [branch.format(name=name, op_type=op_type) for name, op_type in (("t", "Neg"), ("e", "Abs"))]
    model = parsed(
        f"""(float[2, 3] x, bool yes) => (float[a, b] y) {{
            y = If (yes) <then_branch = {branches[0]}, else_branch = {branches[1]}>
        }}""",
        11,
        6,
    )
    result = convert_version(model, 8)
    onnx.checker.check_model(result, full_check=True)
    for attribute in result.graph.node[0].attribute:
        assert [each.op_type for each in attribute.g.node] == [
            "Constant",
            "Cast",
            attribute.g.node[2].op_type,
            "Tile",
        ]
    feeds = {"x": X, "yes": np.array(yes)}
    assert_equal(run(result, feeds), run(model, feeds))


FUNCTION = """
<ir_version: 10, opset_import: ["" : 9, "local" : 1]>
g (float[2, 3] x) => (float[a, b] y) { y = local.Repeat (x) }
<domain: "local", opset_import: ["" : 9]>
Repeat (x) => (y) {
    c = Constant <value = int64[2] {2, 3}> ()
    y = Tile (x, c)
}
"""


@pytest.mark.parametrize("target", [8, 6, 5])
def test_casts_integers_in_functions(target: int) -> None:
    model = parser.parse_model(FUNCTION)
    result = convert_version(model, target, ir_version="keep")
    nodes = result.functions[0].node
    assert [each.op_type for each in nodes][:2] == ["Constant", "Cast"]
    (to,) = nodes[1].attribute
    assert onnx.helper.get_attribute_value(to) == (b"INT64" if target == 5 else onnx.TensorProto.INT64)
    if target > 5:
        onnx.checker.check_model(result, full_check=True)
        assert_equal(run(result, {"x": X}), run(model, {"x": X}))


@pytest.mark.parametrize("value", ['string[1] {"text"}', "int64[1] {9223372036854775807}"])
def test_refuses_other_constants_in_functions(value: str) -> None:
    text = FUNCTION.replace("int64[2] {2, 3}", value).replace("y = Tile (x, c)", "y = Identity (c)")
    with pytest.raises(ConversionRefused, match="a function below opset 9 cannot hold") as caught:
        convert_version(parser.parse_model(text), 8, ir_version="keep")
    assert "inline the functions" in str(caught.value)


UNREAD = {
    "Shape": (25, 8, "(float[2, 3] x) => (int64[0] y) { y = Shape <start = 2, end = 1> (x) }"),
    "Trilu": (14, 8, "(float[2, 3] x) => (float[2, 3] y) <int64 k = {1}> { y = Trilu (x, k) }"),
    "TopK": (
        22, 8, "(float[2, 3] x) => (float[2, 1] y, int64[2, 1] i) <int64[1] k = {1}> { y, i = TopK (x, k) }",
    ),
    "ReduceMax": (
        18, 8, """(float[2, 3] x) => (float[3] y) <int64[1] a = {0}> {
            y = ReduceMax <keepdims = 0> (x, a)
        }""",
    ),
    "Resize": (
        13, 8, """(float[1, 1, 2, 3] z) => (float[1, 1, 4, 6] y) <float[4] s = {1.0, 1.0, 2.0, 2.0}> {
            y = Resize <
                mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"
            >
                (z, , s)
        }""",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("opset", "target", "graph"), UNREAD.values(), ids=UNREAD)
def test_leaves_no_constant_without_reader(opset: int, target: int, graph: str) -> None:
    model = parsed(graph, opset, 9)
    # The second conversion uses cached rewrites.
    for _ in range(2):
        converted = convert(model, target)
        result, report = converted.model, converted.report
        read = {name for each in result.graph.node for name in each.input}
        assert {each.name for each in result.graph.initializer} <= read
        assert {each.name for each in result.graph.input} <= read
        assert report.constants <= len(result.graph.initializer) + op_types(result).count("Constant")
        feeds = {"x": X, "z": X.reshape(1, 1, 2, 3)}
        feeds = {each.name: feeds[each.name] for each in model.graph.input}
        assert_equal(run(result, feeds), run(model, feeds))


KEPT = {
    "another node reads it": """(float[2, 3] x) => (float[2, 3] y, int64 z) <int64 k = {1}> {
        y = Trilu (x, k) z = Neg (k)
    }""",
    "the graph returns it": """(float[2, 3] x) => (float[2, 3] y, int64 k) <int64 k = {1}> {
        y = Trilu (x, k)
    }""",
    "it is an input": "(float[2, 3] x, int64 k = {1}) => (float[2, 3] y) { y = Trilu (x, k) }",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT)
def test_keeps_other_initializers(graph: str) -> None:
    result = convert_version(parsed(graph, 14, 7), 13, allow="approximate")
    assert "k" in {each.name for each in result.graph.initializer}


def test_keeps_initializers_with_doc_string() -> None:
    model = parsed(UNREAD["ReduceMax"][2], 18, 9)
    model.graph.initializer[0].doc_string = "axes"
    assert [each.name for each in convert_version(model, 8).graph.initializer] == ["a"]


def test_recorded_conversion_keeps_the_initializers_of_originals() -> None:
    model = parsed(UNREAD["ReduceMax"][2], 18, 8)
    down = convert_version(model, 13, reversible=True)
    assert [each.name for each in down.graph.initializer] == ["a"]
    back = convert_version(down, 18)
    assert back.graph == model.graph


def test_restored_constants_leave_no_input() -> None:
    model = parsed(GRAPHS["integer Constant"])
    down = convert_version(model, 8, reversible=True)
    assert len(down.graph.input) == 2
    assert convert_version(down, 9).graph == model.graph


def test_initializer_of_the_main_graph_that_a_branch_read_is_removed() -> None:
    model = parsed(
        """(float[2, 3] x, bool yes) => (float[3] y) <int64[1] a = {0}, int64[1] unread = {0}> {
            y = If (yes) <
                then_branch = t () => (float[3] p) { p = ReduceMax <keepdims = 0> (x, a) },
                else_branch = e () => (float[3] q) { q = ReduceMin <keepdims = 0> (x, a) }
            >
        }""",
        18,
        8,
    )
    result = convert_version(model, 13)
    assert [each.name for each in result.graph.initializer] == ["unread"]
    assert_equal(run(result, {"x": X, "yes": YES}), run(model, {"x": X, "yes": YES}))


REMOVED = """
domain: com.abc
name: {name}
shape: same_as_first
versions:
- since_version: 1
  descriptions: {{operator: A test.}}
  status: STABLE
  inputs: [{{name: X, type: T}}]
  outputs: [{{name: Y, type: T}}]
  type_constraints: {{T: [tensor(float)]}}
"""

LATER = """
- since_version: {version}
  status: STABLE
  step: {{change: It changed, up: compatible, down: compatible}}
  {removal}
  inputs: [{{name: X, type: T}}]
  outputs: [{{name: Y, type: T}}]
  type_constraints: {{T: [tensor(float)]}}
"""


@pytest.mark.parametrize("source", [1, 2, 3, 4])
def test_older_versions_cross_a_removal(tmp_path: Path, source: int) -> None:
    """Only the last version of an operator declares its removal."""
    removal = "removal: {removed_in: 5, replaced_by: B, mapping: The same., up: [{rename_op: B}]}"
    (tmp_path / "com.abc").mkdir()
    versions = LATER.format(version=2, removal="") + LATER.format(version=3, removal=removal)
    (tmp_path / "com.abc" / "A.yaml").write_text(REMOVED.format(name="A") + versions.replace("\n\n", "\n"))
    (tmp_path / "com.abc" / "B.yaml").write_text(REMOVED.format(name="B"))
    registry = default_registry().with_folder(tmp_path)
    text = f'<ir_version: 14, opset_import: ["" : 26, "com.abc" : {source}]>'
    model = parser.parse_model(text + "g (float[2] x) => (float[2] y) { y = com.abc.A (x) }")
    result = convert_version(model, {"com.abc": 5}, registry=registry)
    assert op_types(result) == ["B"]
    assert result.ir_version == 14
    if source > 1:
        # A private domain is lowered next to an unchanged default domain.
        lowered = convert_version(model, {"com.abc": 1}, registry=registry)
        assert (op_types(lowered), lowered.ir_version) == (["A"], 14)


@pytest.mark.parametrize("target", [8, 6])
def test_restored_constants_of_branches_leave_nothing(target: int) -> None:
    model = parsed(GRAPHS["Constant in branches, with one name"])
    down = convert_version(model, target, reversible=True)
    assert [each.name for each in down.graph.input] == ["x", "yes"]
    assert_equal(run(down, feeds_of(model)), run(model, feeds_of(model)))
    assert convert_version(down, 9).graph == model.graph
    assert convert_version(convert_version(down, 8, reversible=True), 9).graph == model.graph


@pytest.mark.parametrize("target", [8, 6])
def test_restored_constants_of_functions_leave_nothing(target: int) -> None:
    model = parser.parse_model(FUNCTION)
    down = convert_version(model, target, ir_version="keep", reversible=True)
    assert_equal(run(down, {"x": X}), run(model, {"x": X}))
    assert convert_version(down, 9).functions == model.functions


@pytest.mark.parametrize("yes", [False, True])
@pytest.mark.parametrize("is_removed", [False, True])
def test_keeps_edited_constants_of_branches(yes: bool, is_removed: bool) -> None:
    """A constant that changed after the conversion is an edit: its node is not restored."""
    model = parsed(GRAPHS["Constant in branches, with one name"])
    down = convert_version(model, 8, reversible=True)
    for attribute in down.graph.node[0].attribute:
        constant = next(each for each in attribute.g.node if each.op_type == "Constant")
        if is_removed:
            # The Cast reads a value of the main graph in its place.
            cast = next(each for each in attribute.g.node if each.op_type == "Cast")
            attribute.g.node.remove(constant)
            cast.input[0] = "numbers"
        else:
            constant.attribute[0].t.CopyFrom(onnx.numpy_helper.from_array(np.array([1.0, 1.0])))
    if is_removed:
        value = onnx.numpy_helper.from_array(np.array([1.0, 1.0]))
        down.graph.node.insert(0, onnx.helper.make_node("Constant", [], ["numbers"], value=value))
    for graph in (down.graph, *(each.g for each in down.graph.node[-1].attribute)):
        graph.output[0].type.tensor_type.ClearField("shape")
    feeds = {"x": X, "yes": np.array(yes)}
    up = convert_version(down, 9)
    assert_equal(run(up, feeds), [X if yes else -X])


CLASHING = {
    "strings": ('string[1] c = {{"text of {0}"}}', "{0} = Identity (c)", "string[1]"),
    "large integers": ("int64[1] c = {{{1}}}", "{0} = Identity (c)", "int64[1]"),
    "integers that a node reads": ("int64[1] c = {{{1}}}", "{0} = Add (i, c)", "int64[3]"),
}


@pytest.mark.parametrize("yes", [False, True])
@pytest.mark.parametrize("is_nested", [False, True])
@pytest.mark.parametrize(("weights", "node", "kind"), CLASHING.values(), ids=CLASHING)
def test_renames_other_initializers_that_two_branches_name_alike(
    weights: str, node: str, kind: str, is_nested: bool, yes: bool
) -> None:
    then, other = (
        f"{name} () => ({kind} {name}) <{weights.format(name, number)}> {{ {node.format(name)} }}"
        for name, number in (("t", 9223372036854775807), ("e", -9223372036854775807))
    )
    branching = f"If (yes) <then_branch = {then}, else_branch = {other}>"
    if is_nested:
        branches = (f"{name} () => ({kind} n{name}) {{ n{name} = {branching} }}" for name in "ab")
        branching = "If (yes) <then_branch = {}, else_branch = {}>".format(*branches)
    model = parsed(f"(int64[3] i, bool yes) => ({kind} y) {{ y = {branching} }}", 11, 6)
    result = convert_version(model, 8)
    onnx.checker.check_model(result, full_check=True)
    feeds = {"i": np.arange(3), "yes": np.array(yes)}
    assert_equal(run(result, feeds), run(model, feeds))
    names = [each.name for each in result.graph.initializer]
    assert len(names) == len(set(names)) == (4 if is_nested else 2)
    assert [each.name for each in result.graph.input] == ["i", "yes", *names]
