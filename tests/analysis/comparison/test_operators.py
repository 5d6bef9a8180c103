"""Comparison of operators: the same computation in a different form, different ones, and restamped nodes."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from support.execution import run

from opshift import InvalidModel, compare, convert_version
from opshift.analysis.comparison.compare import Comparison
from opshift.analysis.comparison.operators import MAX_PARAMETER_ELEMENTS

SIGNATURE = "g (float[2, 3, 4] x, bool c) => (float[2, 3, 4] y)"


def model(text: str, opset: int = 17, functions: str = "") -> onnx.ModelProto:
    """Return a model with the nodes and, before them in angle brackets, the initializers of a text."""
    weights, _, nodes = text.rpartition(">>")
    initializers = f"{weights}>" if weights else ""
    imports = f'"" : {opset}, "f" : 1'
    header = f"<ir_version: 8, model_version: 281474976710656, opset_import: [{imports}]>"
    return onnx.parser.parse_model(f"{header} {SIGNATURE} {initializers} {{ {nodes} }} {functions}")


def rules(comparison: Comparison) -> set[str]:
    return {change.rule for change in comparison.changes}


def function(name: str, op_type: str, opset: int = 17) -> str:
    return f'<domain: "f", opset_import: ["" : {opset}]> {name} (a) => (b) {{ b = {op_type} (a) }}'


def branch(op_type: str) -> str:
    def graph(op: str) -> str:
        return f"g () => (float[2, 3, 4] o) {{ o = {op} (x) }}"

    return f"y = If (c) <then_branch = {graph(op_type)}, else_branch = {graph('Abs')}>"


AXES = "<int64[1] axes = {%d}>> s = ReduceSum (x, axes) y = Add (x, s)"

SAME = {
    "renamed values": ("a = Neg (x) y = Abs (a)", "b = Neg (x) y = Abs (b)"),
    "order of nodes": ("a = Neg (x) b = Abs (x) y = Sub (a, b)", "b = Abs (x) a = Neg (x) y = Sub (a, b)"),
    "unused node": ("y = Abs (x)", "a = Neg (x) y = Abs (x)"),
    "inserted Identity": ("y = Abs (x)", "a = Identity (x) y = Abs (a)"),
    "Constant instead of an initializer": (
        AXES % 1,
        "axes = Constant <value_ints = [1]> () s = ReduceSum (x, axes) y = Add (x, s)",
    ),
    "Constant with an empty text": (
        '<string t = {""}>> s = Equal (t, t) y = Identity (x)',
        't = Constant <value_string = ""> () s = Equal (t, t) y = Identity (x)',
    ),
    "different weight": ("<float[1] w = {1}>> y = Mul (x, w)", "<float[1] w = {2}>> y = Mul (x, w)"),
    "larger weight": ("<float[1] w = {1}>> y = Mul (x, w)", "<float[4] w = {1, 2, 3, 4}>> y = Mul (x, w)"),
    "omitted input": ("<float l = {0}>> y = Clip (x, l)", '<float l = {0}>> y = Clip (x, l, "")'),
}

DIFFERENT = {
    "operator": ("y = Softmax (x)", "y = LogSoftmax (x)"),
    "attribute": ("y = Softmax <axis = 1> (x)", "y = Softmax <axis = 2> (x)"),
    "swapped inputs": ("a = Abs (x) y = Sub (a, x)", "a = Abs (x) y = Sub (x, a)"),
    "removed node": ("a = Neg (x) y = Abs (a)", "y = Abs (x)"),
    "inserted node": ("y = Abs (x)", "a = Abs (x) y = Neg (a)"),
    "integer constant": (AXES % 1, AXES % 2),
    "operator in a branch": (branch("Neg"), branch("Exp")),
    "tensor attribute": (
        "s = Shape (x) y = ConstantOfShape <value = float[1] {1}> (s)",
        "s = Shape (x) y = ConstantOfShape <value = float[1] {2}> (s)",
    ),
}


@pytest.mark.parametrize(("old", "new"), SAME.values(), ids=SAME)
def test_same_computation_requires_patch(old: str, new: str) -> None:
    assert rules(compare(model(old), model(new))) == {"GRAPH_CHANGED"}


@pytest.mark.parametrize(("old", "new"), DIFFERENT.values(), ids=DIFFERENT)
def test_different_computation_requires_major(old: str, new: str) -> None:
    comparison = compare(model(old), model(new))
    assert rules(comparison) == {"OPERATORS_CHANGED"}
    assert comparison.lowest == "2.0.0"


@pytest.mark.parametrize(("old", "new"), DIFFERENT.values(), ids=DIFFERENT)
def test_same_meaning_requires_minor(old: str, new: str) -> None:
    comparison = compare(model(old), model(new), same_meaning=True)
    assert rules(comparison) == {"OPERATORS_REPLACED"}
    assert comparison.lowest == "1.1.0"


def test_compares_the_content_of_functions_and_not_their_names() -> None:
    old = model("y = f.F (x)", functions=function("F", "Abs"))
    renamed = model("y = f.G (x)", functions=function("G", "Abs"))
    edited = model("y = f.F (x)", functions=function("F", "Neg"))
    assert rules(compare(old, renamed)) == {"GRAPH_CHANGED"}
    assert rules(compare(old, edited)) == {"OPERATORS_CHANGED"}


def test_names_the_operators_that_differ() -> None:
    (change,) = compare(model("a = Abs (x) y = Abs (a)"), model("a = Exp (x) y = Neg (a)")).changes
    assert (change.before, change.after) == ("2 Abs", "1 Exp, 1 Neg")


def test_large_integer_tables_are_weights() -> None:
    def table(value: int) -> onnx.ModelProto:
        count = MAX_PARAMETER_ELEMENTS + 1
        values = ", ".join([str(value)] * count)
        nodes = "a = Cast <to = 1> (t) s = ReduceMax <keepdims = 0> (a) y = Mul (x, s)"
        return model(f"<int64[{count}] t = {{{values}}}>> {nodes}")

    assert rules(compare(table(1), table(2))) == {"GRAPH_CHANGED"}


RESTAMPED = {
    "last axis": ("y = Softmax <axis = -1> (x)", 11, 13, False),
    "axis of a wider block": ("y = Softmax <axis = 1> (x)", 11, 13, True),
    "axis of a wider block, down": ("y = Softmax <axis = 1> (x)", 13, 11, True),
    "default axis": ("y = LogSoftmax (x)", 12, 13, True),
    "added types": ("y = Abs (x)", 11, 17, False),
    "in a branch": (branch("Hardmax"), 11, 13, True),
    "added attribute with the old meaning": ("z = Shape (x) y = Cast <to = 1> (x)", 11, 17, False),
}


@pytest.mark.parametrize(("nodes", "source", "target", "is_changed"), RESTAMPED.values(), ids=RESTAMPED)
def test_restamped_node_requires_major_if_its_meaning_changes(
    nodes: str, source: int, target: int, is_changed: bool
) -> None:
    old, new = model(nodes, source), model(nodes, target)
    comparison = compare(old, new)
    assert ("OPERATOR_MEANING_CHANGED" in rules(comparison)) is is_changed
    assert (comparison.lowest == "2.0.0") is is_changed
    feeds = {"x": np.random.default_rng(1).normal(size=(2, 3, 4)).astype(np.float32), "c": np.array(True)}
    before, after = (run(each, feeds)[0] for each in (old, new))
    assert np.allclose(before, after) is not is_changed


def test_restamped_function_requires_major() -> None:
    old, new = (model("y = f.F (x)", 17, function("F", "Softmax", opset)) for opset in (11, 13))
    (change,) = compare(old, new).changes[:1]
    assert change.rule == "OPERATOR_MEANING_CHANGED"
    assert (change.place, change.before) == ("function f.F, node Softmax -> b", "ai.onnx.Softmax:11")


def test_restamped_node_next_to_an_edit_requires_major() -> None:
    old = model("a = Softmax <axis = 1> (x) y = Abs (a)", 11)
    new = model("a = Softmax <axis = 1> (x) y = Neg (a)", 13)
    assert rules(compare(old, new)) == {"OPERATOR_MEANING_CHANGED", "OPERATORS_CHANGED", "OPSET_RAISED"}


@pytest.mark.parametrize(("source", "target"), [(11, 13), (13, 11), (9, 21), (21, 9)])
def test_conversion_keeps_operators_and_meaning(source: int, target: int) -> None:
    old = model("a = Softmax <axis = 1> (x) b = Hardmax <axis = 1> (a) y = Sub (a, b)", source)
    comparison = compare(old, convert_version(old, target))
    assert not {"OPERATOR_MEANING_CHANGED", "OPERATORS_CHANGED"} & rules(comparison)


@pytest.mark.parametrize(("axis", "is_changed"), [(1, True), (2, False)])
def test_finds_restamped_nodes_with_new_names(axis: int, is_changed: bool) -> None:
    nodes = f"{{0}} = Abs (x) {{1}} = Softmax <axis = {axis}> ({{0}}) y = Exp ({{1}})"
    old, new = model(nodes.format("a", "b"), 11), model(nodes.format("s", "t"), 13)
    assert ("OPERATOR_MEANING_CHANGED" in rules(compare(old, new))) is is_changed


def test_new_names_at_the_same_opset_keep_the_meaning() -> None:
    nodes = "{0} = Softmax <axis = 1> (x) y = Abs ({0})"
    assert rules(compare(model(nodes.format("a"), 11), model(nodes.format("b"), 11))) == {"GRAPH_CHANGED"}


def test_finds_restamped_functions_with_new_names() -> None:
    old = model("y = f.F (x)", 17, function("F", "Softmax", 11))
    new = model("y = f.G (x)", 17, function("G", "Softmax", 13))
    assert "OPERATOR_MEANING_CHANGED" in rules(compare(old, new))


def test_finds_restamped_nodes_with_repeated_names() -> None:
    nodes = "[n] a = Softmax <axis = 1> (x) [n] y = Abs (a)"
    assert "OPERATOR_MEANING_CHANGED" in rules(compare(model(nodes, 11), model(nodes, 13)))


def test_nodes_with_unknown_facts_change_their_meaning() -> None:
    nodes = "a = Softmax (u) y = Add (x, a)"
    old, new = model(nodes, 11), model(nodes, 13)  # `u` is undefined, so no conversion is possible
    assert "OPERATOR_MEANING_CHANGED" in rules(compare(old, new))


def test_unknown_opsets_do_not_fail() -> None:
    old, new = model("y = Abs (x)", 13), model("y = Neg (x)", 999)
    assert rules(compare(old, new)) == {"OPSET_RAISED", "OPERATORS_CHANGED"}


def calls(names: list[str], last: str) -> str:
    """Return functions that each call the next one; the last one calls `last`."""
    callees = [f"f.{name}" for name in names[1:]] + [last]
    header = '<domain: "f", opset_import: ["" : 17, "f" : 1]>'
    return "".join(
        f"{header} {name} (a) => (b) {{ b = {callee} (a) }}"
        for name, callee in zip(names, callees, strict=True)
    )


def test_compares_long_chains_of_calls() -> None:
    names = [f"F{number}" for number in range(1500)]
    old, new = (model("y = f.F0 (x)", functions=calls(names, op)) for op in ("Abs", "Neg"))
    assert not compare(old, old).changes
    assert "OPERATORS_CHANGED" in rules(compare(old, new))


def test_rejects_functions_that_call_each_other() -> None:
    recursive = model("y = f.F (x)", functions=calls(["F", "G"], "f.F"))
    with pytest.raises(
        InvalidModel, match=r"call each other in a cycle: f.F -> f.G -> f.F|f.G -> f.F -> f.G"
    ):
        compare(recursive, model("y = Abs (x)"))


@pytest.mark.parametrize("field", [b"alpha", b"Elu"])
def test_compares_names_that_are_not_text(field: bytes) -> None:
    old = model("y = Elu <alpha = 0.5, beta = 1.0> (x)")
    data = old.SerializeToString().replace(field, b"\xff" * len(field))
    assert rules(compare(old, data)) == {"OPERATORS_CHANGED"}
