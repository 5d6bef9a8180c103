"""Sequences that stay inside of a model are replaced by their tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser
from support.deadline import deadline
from support.execution import assert_equal, run, run_reference

from opshift.converter.convert import convert, convert_version, plan_version
from opshift.converter.refusals import ConversionRefused
from opshift.converter.streaming.convert_file import convert_file

X = np.arange(12, dtype=np.float32).reshape(4, 3) / 7 - 0.6
FEEDS = {"x": X, "z": X[::-1] * 2, "c": np.array(True), "i": np.array(1)}

OPERATORS = {
    "construct, at": "s = SequenceConstruct(x, z) p = Constant<value_int = 1>() y = SequenceAt(s, p)",
    "negative position": "s = SequenceConstruct(x, z) p = Constant<value_int = -2>() y = SequenceAt(s, p)",
    "computed position": "s = SequenceConstruct(x, z, x) y = SequenceAt(s, i)",
    "computed positions": """
        s = SequenceConstruct(x, z, x) n = Neg(i) a = SequenceAt(s, i) b = SequenceAt(s, n)
        k = If(c) <
            then_branch = t () => (float[4, 3] q) { q = SequenceAt(s, i) },
            else_branch = e () => (float[4, 3] o) { o = SequenceAt(s, n) }
        >
        d = Sub(a, b) y = Add(d, k)
    """,
    "initializer position": "s = SequenceConstruct(x, z) y = SequenceAt(s, one)",
    "empty, insert": """
        e = SequenceEmpty() a = SequenceInsert(e, x) b = SequenceInsert(a, z, zero)
        y = ConcatFromSequence<axis = 1>(b)
    """,
    "insert before the last": """
        s = SequenceConstruct(x, z) m = Constant<value_int = -1>() n = Neg(x) t = SequenceInsert(s, n, m)
        y = ConcatFromSequence<axis = 0>(t)
    """,
    "insert at the end": """
        s = SequenceConstruct(x, z) n = Neg(x) l = SequenceLength(s) t = SequenceInsert(s, n, l)
        y = ConcatFromSequence<axis = -1>(t)
    """,
    "erase": """
        s = SequenceConstruct(x, z, x) a = SequenceErase(s) b = SequenceErase(a, zero) y = SequenceAt(b, zero)
    """,
    "length": """
        s = SequenceConstruct(x, z, x) n = SequenceLength(s) f = Cast<to = 1>(n) y = Mul(x, f)
    """,
    "stack": "s = SequenceConstruct(x, z) y = ConcatFromSequence<axis = 1, new_axis = 1>(s)",
    "stack at a negative axis": """
        s = SequenceConstruct(x, z) y = ConcatFromSequence<axis = -1, new_axis = 1>(s)
    """,
    "identity": "s = SequenceConstruct(x, z) t = Identity(s) y = ConcatFromSequence<axis = 0>(t)",
    "split by default": "s = SplitToSequence<axis = 0>(x) y = SequenceAt(s, one)",
    "split without the dimension": "s = SplitToSequence<axis = 0, keepdims = 0>(x) y = SequenceAt(s, one)",
    "split along a negative axis": "s = SplitToSequence<axis = -1, keepdims = 0>(x) y = SequenceAt(s, one)",
    "split into pieces": """
        k = Constant<value_int = 3>() s = SplitToSequence<axis = 0>(x, k) y = SequenceAt(s, one)
    """,
    "split into lengths": """
        k = Constant<value_ints = [1, 3]>() s = SplitToSequence<axis = 0, keepdims = 0>(x, k)
        y = SequenceAt(s, one)
    """,
    "length of a split": """
        s = SplitToSequence<axis = 1>(x) n = SequenceLength(s) f = Cast<to = 1>(n) y = Mul(x, f)
    """,
    "split of a tensor in a sequence": """
        s = SequenceConstruct(x, z) t = SequenceAt(s, one) u = SplitToSequence<axis = 0>(t)
        y = ConcatFromSequence<axis = 1>(u)
    """,
    "branches return sequences": """
        s = If(c) <
            then_branch = t () => (seq(float[4, 3]) a) { a = SequenceConstruct(x, z) },
            else_branch = e () => (seq(float[4, 3]) b) { n = Neg(x) b = SequenceConstruct(n, n) }
        >
        y = ConcatFromSequence<axis = 0>(s)
    """,
    "branches read a sequence": """
        s = SequenceConstruct(x, z)
        y = If(c) <
            then_branch = t () => (float[M, N] a) { a = ConcatFromSequence<axis = 0>(s) },
            else_branch = e () => (float[M, N] b) { b = SequenceAt(s, one) }
        >
    """,
    "loop carries a sequence": """
        s = SequenceConstruct(x, z)
        t = Loop(i, c, s) <
            body = b (int64 k, bool c_in, seq(float[4, 3]) s_in) => (bool c_out, seq(float[4, 3]) s_out) {
                c_out = Identity(c_in)
                first = SequenceAt(s_in, zero) neg = Neg(first) rest = SequenceErase(s_in, zero)
                s_out = SequenceInsert(rest, neg)
            }
        >
        y = ConcatFromSequence<axis = 0>(t)
    """,
    "loop reads a sequence": """
        s = SequenceConstruct(x, z)
        y = Loop(i, c, x) <
            body = b (int64 k, bool c_in, float[4, 3] v_in) => (bool c_out, float[4, 3] v_out) {
                c_out = Identity(c_in) e = SequenceAt(s, k) v_out = Add(v_in, e)
            }
        >
    """,
    "loop appends to a sequence": """
        s = SplitToSequence<axis = 0>(x) n = SequenceLength(s) e = SequenceEmpty()
        yes = Constant<value = bool {1}>()
        t, last = Loop(n, yes, e, x) <
            body = b (int64 k, bool c_in, seq(float) s_in, float[4, 3] v_in)
                => (bool c_out, seq(float) s_out, float[4, 3] v_out) {
                c_out = Identity(c_in) row = SequenceAt(s, k) v_out = Add(v_in, row)
        s_out = SequenceInsert(s_in, v_out)
            }
        >
        all = ConcatFromSequence<axis = 1>(t) y = Concat<axis = 1>(all, last)
    """,
    "loop with scan outputs": """
        e = SequenceEmpty() yes = Constant<value = bool {1}>() n = Constant<value_int = 3>()
        t, v = Loop(n, yes, e) <
            body = b (int64 k, bool c_in, seq(float) s_in) => (bool c_out, seq(float)
        s_out, float[4, 3] v_out) {
                c_out = Identity(c_in) f = Cast<to = 1>(k) v_out = Mul(x, f)
        s_out = SequenceInsert(s_in, v_out)
            }
        >
        u = ConcatFromSequence<axis = 0, new_axis = 1>(t) y = Sub(v, u)
    """,
}

LOOP_OF_UNKNOWN_LENGTH = """
    e = SequenceEmpty() two = Add(one, i) yes = Constant<value = bool {1}>()
    r, t, all = Loop(two, yes, zero, e) <
        body = b (int64 k, bool c_in, int64 r_in, seq(float) s_in)
            => (bool c_out, int64 r_out, seq(float) s_out, float[4, 3] v_out) {
            c_out = Identity(c_in) r_out = Add(r_in, k) f = Cast<to = 1>(k) v_out = Mul(x, f)
            s_out = SequenceInsert(s_in, v_out)
        }
    >
"""
OPERATORS |= {
    "loop of unknown length, first new axis": f"""
        {LOOP_OF_UNKNOWN_LENGTH} u = ConcatFromSequence<axis = 0, new_axis = 1>(t) y = Add(u, all)
    """,
    "loop of unknown length, last new axis": f"""
        {LOOP_OF_UNKNOWN_LENGTH} y = ConcatFromSequence<axis = -1, new_axis = 1>(t)
    """,
    "loop of unknown length, rows": f"{LOOP_OF_UNKNOWN_LENGTH} y = ConcatFromSequence<axis = 0>(t)",
    "loop of unknown length, columns": f"{LOOP_OF_UNKNOWN_LENGTH} y = ConcatFromSequence<axis = -1>(t)",
    "loop of unknown length, no iteration": LOOP_OF_UNKNOWN_LENGTH.replace("Add(one, i)", "Sub(one, i)")
    + "n = SequenceLength(t) f = Cast<to = 1>(n) y = Add(x, f)",
    "loop of unknown length, elements": LOOP_OF_UNKNOWN_LENGTH
    + """
        a = SequenceAt(t, i) n = SequenceLength(t) l = Sub(n, two) f = Cast<to = 1>(l) b = Add(a, f)
        y = If(c) <
            then_branch = tb () => (float[4, 3] g) { m = Neg(one) h = SequenceAt(t, m) g = Add(h, b) },
            else_branch = eb () => (float[4, 3] j) { j = Neg(b) }
        >
    """,
}

MAPS = {
    "one sequence": """
        s = SplitToSequence<axis = 0>(x)
        t = SequenceMap(s) <body = b (float[1, 3] e) => (float[1, 3] f) { n = Neg(e) f = Add(n, w) }>
        y = ConcatFromSequence<axis = 0>(t)
    """,
    "sequences and tensors": """
        s = SequenceConstruct(x, z) u = SequenceConstruct(z, z)
        t, v = SequenceMap(s, u, x) <
            body = b (float[4, 3] e, float[4, 3] f, float[4, 3] g) => (float[4, 3] h, float[4, 3] k) {
                a = Add(e, f) h = Mul(a, g) k = Identity(g)
            }
        >
        p = ConcatFromSequence<axis = 0>(t) q = ConcatFromSequence<axis = 0>(v) y = Concat<axis = 1>(p, q)
    """,
}


INPUTS = "float[4, 3] x, float[4, 3] z, bool c, int64 i"


def model_of(
    body: str, opset: int, output: str = "float[a, b] y", inputs: str = INPUTS, *, runs: bool = True
) -> onnx.ModelProto:
    text = f"""
        <ir_version: {8 if opset < 21 else 10}, opset_import: ["" : {opset}]>
        g ({inputs}) => ({output})
            <int64 zero = {{0}}, int64 one = {{1}}, float[3] w = {{1, 2, 3}}>
        {{ {body} }}
    """
    model: onnx.ModelProto = parser.parse_model(text)
    shape = model.graph.output[0].type.tensor_type.shape
    if runs and model.graph.output[0].type.HasField("tensor_type"):
        del shape.dim[:]
        for _ in range(run(model, FEEDS)[0].ndim):
            shape.dim.add()
    return model


def operators_of(model: Any) -> set[str]:
    found, graphs = set(), [model.graph]
    while graphs:
        for node in graphs.pop().node:
            found.add(node.op_type)
            graphs += [each.g for each in node.attribute if each.HasField("g")]
    return found


FIRST_OPSETS = {
    "identity": 14,
    **{name: 13 for name in OPERATORS if name.startswith(("branches return", "loop"))},
}
"""First opsets in which the operators support sequences; opset 11 has the others."""


def assert_replaced(model: onnx.ModelProto, target: int) -> onnx.ModelProto:
    """Convert a model without sequences among its inputs and outputs, run it, and return the result."""
    onnx.checker.check_model(model, full_check=True)
    converted = convert_version(model, target, allow="assume-nonnegative")
    onnx.checker.check_model(converted, full_check=True)
    assert not any("Sequence" in each for each in operators_of(converted))
    assert_equal(run(converted, FEEDS), run(model, FEEDS))
    return converted


@pytest.mark.some_cases(12)
@pytest.mark.parametrize("opset", [11, 13, 24])
@pytest.mark.parametrize("name", OPERATORS)
def test_replaces_sequences(name: str, opset: int) -> None:
    if "value_int" in OPERATORS[name]:
        opset = max(opset, 12)
    model = model_of(OPERATORS[name], max(opset, FIRST_OPSETS.get(name, 11)))
    for target in (10, 9, 8):
        assert_replaced(model, target)


@pytest.mark.parametrize("name", MAPS)
def test_replaces_sequence_map(name: str) -> None:
    model = model_of(MAPS[name], 17)
    for target in (10, 8):
        assert_replaced(model, target)


NEEDS_SHAPES = {
    *(name for name in OPERATORS if "split" in name and "lengths" not in name),
    *("computed position", "computed positions", "loop reads a sequence", "loop appends to a sequence"),
}
"""Models that depend on shapes, which calls pass to a function."""


@pytest.mark.parametrize("name", OPERATORS)
def test_replaces_sequences_in_functions(name: str) -> None:
    opset = max(13, FIRST_OPSETS.get(name, 11))
    plain = model_of(OPERATORS[name], opset)
    body = [
        onnx.helper.make_node("Constant", [], ["zero"], value_int=0),
        onnx.helper.make_node("Constant", [], ["one"], value_int=1),
        *plain.graph.node,
    ]
    inputs = [each.name for each in plain.graph.input]
    imports = [onnx.helper.make_opsetid("", opset)]
    function = onnx.helper.make_function("local", "F", inputs, ["y"], body, imports)
    model = onnx.ModelProto()
    model.CopyFrom(plain)
    del model.graph.node[:], model.graph.initializer[:]
    model.graph.node.add(op_type="F", domain="local", input=inputs, output=["y"])
    model.functions.append(function)
    model.opset_import.add(domain="local", version=1)
    if name in NEEDS_SHAPES:
        with pytest.raises(ConversionRefused, match=r"unknown|known only at run time|not constants"):
            convert_version(model, 10)
        return
    converted = convert_version(model, 10, allow="assume-nonnegative")
    assert_equal(run(converted, FEEDS), run(model, FEEDS))


REFUSALS = {
    "position": (
        "s = SequenceConstruct(x, z, v) y = SequenceAt(s, i)",
        "'i', a position in a sequence, is known only",
    ),
    "position out of range": (
        "s = SequenceConstruct(x, z) p = Constant<value_int = 2>() y = SequenceAt(s, p)",
        "has 2 tensors, and no position 2",
    ),
    "dimension": ("s = SplitToSequence<axis = 1>(v) y = SequenceAt(s, one)", "dimension 1 of 'v' is unknown"),
    "lengths": (
        "s = SplitToSequence<axis = 0>(x, i) y = SequenceAt(s, one)",
        "'i', the lengths of pieces, is known only",
    ),
    "pieces without the dimension": (
        """
            k = Constant<value_int = 1>() s = SplitToSequence<axis = 0, keepdims = 0>(x, k)
            y = SequenceAt(s, one)
        """,
        "runtimes differ in the shapes of the pieces",
    ),
    "input": ("y = SequenceAt(given, one)", "the tensors of sequence 'given' are known only"),
    "empty": ("s = SequenceEmpty() y = ConcatFromSequence<axis = 0>(s)", "'s' is empty"),
    "optional": (
        "s = SequenceConstruct(x, z) o = Optional(s) t = OptionalGetElement(o) y = SequenceAt(t, one)",
        "Optional reads sequence 's'",
    ),
    "length of branches": (
        """
        s = If(c) <
            then_branch = t () => (seq(float[4, 3]) a) { a = SequenceConstruct(x, z) },
            else_branch = e () => (seq(float[4, 3]) b) { b = SequenceConstruct(x) }
        >
        y = ConcatFromSequence<axis = 0>(s)
    """,
        "different numbers of tensors",
    ),
    "iterations": (
        """
        e = SequenceEmpty()
        s = Loop(i, c, e) <
            body = b (int64 k, bool c_in, seq(float) s_in) => (bool c_out, seq(float) s_out) {
                c_out = Identity(c_in) s_out = SequenceInsert(s_in, x, zero)
            }
        >
        y = ConcatFromSequence<axis = 0>(s)
    """,
        "the iterations change the number of tensors",
    ),
    "iterations that read the sequence": (
        """
        e = SequenceEmpty()
        s = Loop(i, c, e) <
            body = b (int64 k, bool c_in, seq(float) s_in) => (bool c_out, seq(float) s_out) {
                n = SequenceLength(s_in) c_out = Cast<to = 9>(n) s_out = SequenceInsert(s_in, x)
            }
        >
        y = ConcatFromSequence<axis = 0>(s)
    """,
        "the iterations change the number of tensors",
    ),
    "iterations with tensors of unknown shape": (
        """
        e = SequenceEmpty()
        s = Loop(i, c, e) <
            body = b (int64 k, bool c_in, seq(float) s_in) => (bool c_out, seq(float) s_out) {
                c_out = Identity(c_in) s_out = SequenceInsert(s_in, v)
            }
        >
        y = ConcatFromSequence<axis = 0>(s)
    """,
        "the shapes of the tensors in sequence 's' are unknown and may differ",
    ),
    "sequence of unknown length": (
        f"{LOOP_OF_UNKNOWN_LENGTH} s = SequenceErase(t) y = SequenceAt(s, one)",
        "the number of tensors in sequence 't' is known only",
    ),
    "many tensors": (
        """
            r = Constant<value_ints = [3000, 1]>() t = Expand(one, r) s = SplitToSequence<axis = 0>(t)
            a = SequenceAt(s, zero) y = Cast<to = 1>(a)
        """,
        "would add 3,000 tensors, more than 2,000",
    ),
    "many tensors along a new axis": (
        f"s = SequenceConstruct({', '.join(['x'] * 2_000)}) t = ConcatFromSequence<axis = 0, new_axis = 1>(s)"
        " y = ReduceSum<keepdims = 0>(t, zero)",
        "would add 2,001 nodes, more than 2,000",
    ),
    "many nodes in total": (
        f"s = SequenceConstruct({', '.join(['x'] * 1_000)})"
        + "".join(f" t{each} = ConcatFromSequence<axis = 0, new_axis = 1>(s)" for each in range(17))
        + " y = ReduceSum<keepdims = 0>(t16, zero)",
        "the conversion would add more than 16,384 nodes to the model",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refuses(name: str) -> None:
    body, reason = REFUSALS[name]
    model = model_of(body, 15, inputs=f"{INPUTS}, float[a, b] v, seq(float[4, 3]) given", runs=False)
    onnx.checker.check_model(model, full_check=True)
    with pytest.raises(ConversionRefused) as caught:
        convert_version(model, 10)
    assert any(reason in str(each) and each.remedy for each in caught.value.refusals), caught.value.refusals


@pytest.mark.parametrize("target", [10, 8])
@pytest.mark.parametrize(
    "nodes",
    [
        "s = SequenceConstruct (a, b) y = SequenceAt (s, p)",
        "s = SequenceConstruct (a, b) t = SequenceInsert (s, b) y = SequenceAt (t, p)",
    ],
    ids=["list", "inserted"],
)
def test_selects_all_strings_of_a_tensor(nodes: str, target: int) -> None:
    """For each index, onnxruntime's Gather copies only the first of the strings that follow the axis."""
    header = '<ir_version: 8, opset_import: ["": 13]>'
    model = parser.parse_model(
        f"{header} g (string[2, 2] a, string[2, 2] b, int64 p) => (string y) {{ {nodes} }}"
    )
    strings = np.array(list("abcdefgh"), object).reshape(2, 2, 2)
    feeds = {"a": strings[0], "b": strings[1], "p": np.array(1)}
    (expected,) = run_reference(model, feeds)
    (found,) = run(convert_version(model, target), feeds)
    assert found.tolist() == expected.tolist()


def test_refuses_returned_sequence() -> None:
    model = model_of("s = SequenceConstruct(x, z) t = SequenceInsert(s, x)", 13, "seq(float[4, 3]) t")
    with pytest.raises(ConversionRefused, match="the graph or function returns sequence 't'") as caught:
        convert_version(model, 10)
    assert [each.place for each in caught.value.refusals] == [
        "graph, node SequenceInsert -> t",
        "graph, node SequenceConstruct -> s",
    ]


def test_reports_the_replacement() -> None:
    model = model_of(OPERATORS["construct, at"], 13)
    sentence = "model: the sequences were replaced by their tensors"
    assert plan_version(model, 10).repairs == (sentence,)
    assert convert(model, 10).report.repairs == (sentence,)
    assert convert(model, 11).report.repairs == ()


def test_keeps_metadata_and_unrelated_nodes() -> None:
    model = model_of("r = Relu(x) s = SequenceConstruct(r, z) a = SequenceAt(s, one) y = Neg(a)", 13)
    model.graph.node[0].name, model.graph.node[2].name = "relu", "at"
    model.graph.node[2].doc_string = "second"
    model.graph.node[2].metadata_props.add(key="k", value="v")
    model.graph.value_info.append(onnx.helper.make_tensor_sequence_value_info("s", 1, None))
    model.graph.value_info.append(onnx.helper.make_tensor_value_info("a", 1, [4, 3]))
    model.ir_version = 10
    converted = convert_version(model, 10, ir_version="keep")
    assert [(each.op_type, each.name) for each in converted.graph.node] == [
        ("Relu", "relu"), ("Identity", "at"), ("Neg", ""),
    ]  # fmt: skip
    assert converted.graph.node[1].doc_string == "second"
    assert converted.graph.node[1].metadata_props[0].value == "v"
    assert [each.name for each in converted.graph.value_info] == ["a"]


def test_converts_files(tmp_path: Path) -> None:
    weights = np.arange(60_000, dtype=np.float32).reshape(4, 15_000)
    model = model_of("s = SequenceConstruct(x, big) y = ConcatFromSequence<axis = 1>(s)", 13, runs=False)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "big"))
    model.graph.output[0].type.tensor_type.shape.dim.add()
    model.graph.output[0].type.tensor_type.shape.dim.add()
    onnx.save(model, tmp_path / "model.onnx")
    convert_file(tmp_path / "model.onnx", tmp_path / "out.onnx", 9)
    assert_equal(run(onnx.load(tmp_path / "out.onnx"), FEEDS), [np.concatenate([X, weights], 1)])


def test_converts_in_place() -> None:
    model = model_of(OPERATORS["stack"], 13)
    before = run(model, FEEDS)
    assert convert_version(model, 10, inplace=True) is model
    assert_equal(run(model, FEEDS), before)


def test_subgraphs_may_define_names_again() -> None:
    body = """
        r = Relu(x) s = SequenceConstruct(r, z)
        y = If(c) <
            then_branch = t () => (float[M, N] a) { r2 = Neg(x) q = SequenceAt(s, zero) a = Sub(q, r2) },
            else_branch = e () => (float[M, N] b) { b = SequenceAt(s, one) }
        >
    """
    expected = run(model_of(body, 13), FEEDS)
    # onnxruntime refuses names that are defined again
    model = model_of(body.replace("r2", "r"), 13, runs=False)
    assert_equal(run_reference(convert_version(model, 10), FEEDS), expected)


def test_nodes_of_unrolled_loops_have_unique_names() -> None:
    body = MANY_NODES.replace("700", "3").partition("p = ")[0] + "y = ConcatFromSequence<axis = 0>(t)"
    model = model_of(body, 13)
    loop = next(each for each in model.graph.node if each.op_type == "Loop")
    loop.attribute[0].g.node[1].name = "to float"
    converted = assert_replaced(model, 10)
    names = [each.name for each in converted.graph.node if each.op_type == "Cast"]
    assert names == ["to float", "to float_1", "to float_2"]


def test_unrolled_loops_keep_attribute_references() -> None:
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 13, "local" : 1]>
        g (float[4, 3] x) => (float[4, 12] y) { y = local.F<alpha = 0.25>(x) }
        <domain: "local", opset_import: ["" : 13]>
        F <alpha>(x) => (y) {
            e = SequenceEmpty() n = Constant<value_int = 3>() yes = Constant<value = bool {1}>()
            t, last = Loop(n, yes, e, x) <
                body = b (int64 k, bool c_in, seq(float) s_in, float[4, 3] v_in)
                    => (bool c_out, seq(float) s_out, float[4, 3] v_out) {
                    c_out = Identity(c_in) v_out = Elu<alpha: float = @alpha>(v_in)
                    s_out = SequenceInsert(s_in, v_out)
                }
            >
            all = ConcatFromSequence<axis = 1>(t) y = Concat<axis = 1>(all, last)
        }
    """)
    feeds = {"x": X}
    converted = convert_version(model, 10)
    assert_equal(run(converted, feeds), run(model, feeds))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda node: node.input.pop(), "has 1 input;"),
        (lambda node: node.input.append("x"), "has 3 inputs"),
        (lambda node: node.attribute.add(name="axis", type=2, i=1), "has no attribute 'axis'"),
    ],
)
def test_refuses_invalid_nodes(change: Any, reason: str) -> None:
    model = model_of(OPERATORS["construct, at"], 13)
    change(model.graph.node[2])
    with pytest.raises(ConversionRefused, match=reason):
        convert_version(model, 10)


def test_bounds_the_work() -> None:
    """Nested loops with constant numbers of iterations end with a refusal, not after hours."""
    body = "r0 = SequenceInsert(q0, x)"
    for level in range(1, 5):
        body = f"""
            n{level} = Constant<value_int = 1500>()
            r{level} = Loop(n{level}, , q{level}) <
                body = b{level} (int64 k{level}, bool c{level}, seq(float) q{level - 1})
                    => (bool d{level}, seq(float) r{level - 1}) {{ d{level} = Identity(c{level}) {body} }}
            >
        """
    model = model_of(f"q4 = SequenceEmpty() {body} y = SequenceAt(r4, zero)", 13, runs=False)
    with deadline(30, 500), pytest.raises(ConversionRefused, match="more than 1,048,576 steps"):
        convert_version(model, 10)


MANY_NODES = """
    n = Constant<value_int = 700>() e = SequenceEmpty()
    t = Loop(n, , e) <
        body = b (int64 k, bool c_in, seq(float) s_in) => (bool c_out, seq(float) s_out) {
            c_out = Identity(c_in) f = Cast<to = 1>(k) v = Add(x, f) w2 = Neg(v)
            s_out = SequenceInsert(s_in, w2)
        }
    >
    p = Constant<value_int = -1>() y = SequenceAt(t, p)
"""


def test_counts_the_nodes_of_unrolled_loops_once() -> None:
    """Each loop adds 1,800 nodes in the attempt to keep it, and again after that, when it is unrolled."""
    loops = [
        f"""
            r{each}, q{each} = Loop (once, , e, x) <
                body = b (int64 k, bool c_in, seq(float[4, 3]) s_in, float[4, 3] v_in)
                    => (bool c_out, seq(float[4, 3]) s_out, float[4, 3] v_out) {{
                    c_out = Identity(c_in) s_out = SequenceInsert(s_in, v_in)
                    f = ConcatFromSequence<axis = 0, new_axis = 1>(s)
                    g = ConcatFromSequence<axis = 0, new_axis = 1>(s)
                    h = Add(f, g) v_out = ReduceSum<keepdims = 0>(h, axes)
                }}
            >
        """
        for each in range(6)
    ]
    body = f"""
        once = Constant<value_int = 1>() axes = Constant<value_ints = [0]>() e = SequenceConstruct(x)
        s = SequenceConstruct({", ".join(["x"] * 450)}) {" ".join(loops)} y = Sum(q0, q1, q2, q3, q4, q5)
    """
    converted = convert_version(model_of(body, 13), 10)
    assert len(converted.graph.node) > 6 * 900


@pytest.mark.full
def test_limits_the_nodes_of_unrolled_loops() -> None:
    model = model_of(MANY_NODES, 13)
    with pytest.raises(ConversionRefused, match=r"would add \d,\d+ nodes, more than 2,000"):
        convert_version(model, 10)
    converted = convert(model, 10, allow="large")
    assert [kind for kind, _ in converted.report.allowances] == ["large"]
    assert_equal(run(converted.model, FEEDS), run(model, FEEDS))


def test_selects_from_many_tensors_with_few_nodes() -> None:
    positions = " ".join(f"a{each} = SequenceAt(s, i)" for each in range(100))
    total = f"y = Sum({', '.join(f'a{each}' for each in range(100))})"
    model = model_of(f"s = SequenceConstruct({', '.join(['x', 'z'] * 100)}) {positions} {total}", 11)
    converted = convert_version(model, 10)
    assert len(converted.graph.node) < 1_000
    assert_equal(run(converted, FEEDS), run(model, FEEDS))


def test_keeps_no_negative_number_of_nodes() -> None:
    report = convert(
        model_of("s = SequenceConstruct(x, z) y = ConcatFromSequence<axis = -1>(s)", 11), 8
    ).report
    assert (report.kept, len(report.changed)) == (0, 1)


def test_branches_may_return_empty_sequences() -> None:
    body = """
        s = If(c) <
            then_branch = t () => (seq(float[4, 3]) a) { a = SequenceEmpty() },
            else_branch = e () => (seq(float[4, 3]) b) { b = SequenceEmpty() }
        >
        n = SequenceLength(s) f = Cast<to = 1>(n) y = Add(x, f)
    """
    converted = assert_replaced(model_of(body, 13), 10)
    assert operators_of(converted) == {"Constant", "Cast", "Add"}
