"""Graphs within nodes: what they hold is converted as what is around them, and sees what is around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper
from support.running import Array, Feeds, assert_equal, build, op_types, run

from opshift.converter.convert import convert_version
from opshift.converter.errors import ConversionRefused
from opshift.model.errors import InvalidModel

FLOAT, INT64, BOOL, DOUBLE = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.DOUBLE
X = np.linspace(-3, 3, 12, dtype=np.float32).reshape(1, 3, 4)
PADS = [0, 1, 0, 0, 0, 1]
YES, NO = np.array(True), np.array(False)


def node(
    op_type: str, inputs: Sequence[str], outputs: Sequence[str], name: str = "", **stated: Any
) -> NodeProto:
    made: NodeProto = helper.make_node(op_type, inputs, outputs, name, **stated)
    return made


def graph(
    nodes: Sequence[NodeProto], outputs: dict[str, int], inputs: dict[str, int] | None = None
) -> GraphProto:
    """A body that states types, and shapes only where they are scalars."""
    made: GraphProto = helper.make_graph(list(nodes), "body", _values(inputs or {}), _values(outputs))
    return made


def _values(types: dict[str, int]) -> list[onnx.ValueInfoProto]:
    shapes: dict[int, list[int]] = {INT64: [], BOOL: []}
    return [helper.make_tensor_value_info(name, each, shapes.get(each)) for name, each in types.items()]


def branch(
    then: Sequence[NodeProto], other: Sequence[NodeProto], output: str = "y", element: int = FLOAT
) -> NodeProto:
    """If, whose branches give what the last of their nodes makes."""
    bodies = {
        "then_branch": graph(then, {then[-1].output[0]: element}),
        "else_branch": graph(other, {other[-1].output[0]: element}),
    }
    return node("If", ["yes"], [output], "if", **bodies)


def branches() -> onnx.ModelProto:
    """Both branches change, and read what is made outside."""
    nodes = [
        node("Relu", ["x"], ["outer"]),
        branch(
            [node("Clip", ["outer"], ["a"], min=0.5, max=1.5), node("Squeeze", ["a"], ["t"], axes=[0])],
            [node("Softmax", ["x"], ["b"], axis=1), node("Squeeze", ["b"], ["e"], axes=[0])],
        ),
    ]
    return build(nodes, {"x": X, "yes": YES}, ["y"], 10)


def same_names_in_both() -> onnx.ModelProto:
    """Each branch has values of its own by the same names."""
    nodes = [
        branch(
            [node("Clip", ["x"], ["a"], min=0.5), node("ReduceSum", ["a"], ["t"], axes=[1])],
            [node("Clip", ["x"], ["a"], max=0.5), node("ReduceSum", ["a"], ["t"], axes=[1])],
        )
    ]
    return build(nodes, {"x": X, "yes": YES}, ["y"], 10)


def loop(body: Sequence[NodeProto], result: str = "y") -> NodeProto:
    """Loop over `carried`, which starts as `x`."""
    inside = graph(
        [node("Identity", ["go"], ["go_on"]), *body],
        {"go_on": BOOL, "next": FLOAT},
        {"turn": INT64, "go": BOOL, "carried": FLOAT},
    )
    return node("Loop", ["turns", "", "x"], [result], "loop", body=inside)


def looped() -> onnx.ModelProto:
    body = [
        node("Clip", ["carried"], ["a"], min=-1.0, max=1.0),
        node("ReduceMean", ["a"], ["mean"], axes=[2], keepdims=1),
        node("Add", ["a", "mean"], ["b"]),
        node("Mul", ["b", "scale"], ["next"]),
    ]
    nodes = [node("Exp", ["x"], ["e"]), node("ReduceMean", ["e"], ["scale"]), loop(body)]
    return build(nodes, {"x": X, "turns": np.array(3)}, ["y"], 10)


def loop_in_branch_in_loop() -> onnx.ModelProto:
    """Three deep, and the innermost reads a value of the outermost and one of the middle."""
    inner = graph(
        [
            node("Identity", ["go"], ["inner_go_on"]),
            node("Add", ["inner_carried", "outer"], ["p"]),
            node("Add", ["p", "middle"], ["q"]),
            node("Clip", ["q"], ["inner_next"], max=2.0),
        ],
        {"inner_go_on": BOOL, "inner_next": FLOAT},
        {"inner_turn": INT64, "inner_go": BOOL, "inner_carried": FLOAT},
    )
    then = [
        node("Clip", ["carried"], ["middle"], min=0.0),
        node("Loop", ["turns", "", "middle"], ["t"], "inner", body=inner),
    ]
    other = [node("LogSoftmax", ["carried"], ["u"], axis=1)]
    body = [branch(then, other, "next")]
    nodes = [node("Clip", ["x"], ["outer"], min=-0.25, max=0.25), loop(body)]
    return build(nodes, {"x": X, "turns": np.array(2), "yes": YES}, ["y"], 10)


def scanned() -> onnx.ModelProto:
    body = graph(
        [
            node("Add", ["sum", "slice"], ["total"]),
            node("Unsqueeze", ["total"], ["wide"], axes=[0]),
            node("Softmax", ["wide"], ["soft"], axis=1),
            node("Squeeze", ["soft"], ["part"], axes=[0]),
        ],
        {"total": FLOAT, "part": FLOAT},
        {"sum": FLOAT, "slice": FLOAT},
    )
    nodes = [
        node("Constant", [], ["start"], value=numpy_helper.from_array(np.zeros(4, np.float32))),
        node("Squeeze", ["x"], ["rows"], axes=[0]),
        node("Scan", ["start", "rows"], ["last", "y"], "scan", body=body, num_scan_inputs=1),
    ]
    return build(nodes, {"x": X}, ["y", "last"], 10)


def type_from_outside() -> onnx.ModelProto:
    """The number that Pad fills in is to be double, as only nodes around the branch say."""
    nodes = [
        node("Cast", ["x"], ["wide"], to=DOUBLE),
        node("Identity", ["wide"], ["outer"]),
        branch(
            [node("Pad", ["outer"], ["a"], pads=PADS, value=0.5), node("Cast", ["a"], ["t"], to=FLOAT)],
            [node("Pad", ["outer"], ["b"], pads=PADS, value=0.1), node("Cast", ["b"], ["e"], to=FLOAT)],
        ),
    ]
    return build(nodes, {"x": X, "yes": YES}, ["y"], 10)


def type_out_of_branch() -> onnx.ModelProto:
    """The number that Pad fills in is to be double, as only a node within a branch says."""
    then = [node("Cast", ["x"], ["t"], to=DOUBLE)]
    other = [node("Cast", ["x"], ["e"], to=DOUBLE)]
    nodes = [
        branch(then, other, "wide", DOUBLE),
        node("Pad", ["wide"], ["padded"], pads=PADS, value=0.5),
        node("Cast", ["padded"], ["y"], to=FLOAT),
    ]
    return build(nodes, {"x": X, "yes": YES}, ["y"], 10)


class Case(NamedTuple):
    """A model, what to run it on, and what to convert it to."""

    title: str
    model: Callable[[], onnx.ModelProto]
    feeds: dict[str, Array]
    targets: tuple[int, ...] = (11, 13, 18, 21)


CASES = [
    Case("the first branch of If", branches, {"x": X, "yes": YES}),
    Case("the second branch of If", branches, {"x": X, "yes": NO}),
    Case("the first of branches that share names", same_names_in_both, {"x": X, "yes": YES}),
    Case("the second of branches that share names", same_names_in_both, {"x": X, "yes": NO}),
    Case("the body of Loop", looped, {"x": X, "turns": np.array(3)}),
    Case("Loop in If in Loop", loop_in_branch_in_loop, {"x": X, "turns": np.array(2), "yes": YES}),
    Case("the other branch of If in Loop", loop_in_branch_in_loop, {"x": X, "turns": np.array(2), "yes": NO}),
    Case("the body of Scan", scanned, {"x": X}),
    Case("a body that takes a type from around it", type_from_outside, {"x": X, "yes": YES}),
    Case("a node that takes a type out of a body", type_out_of_branch, {"x": X, "yes": YES}),
]


@pytest.mark.parametrize("case", CASES, ids=[case.title for case in CASES])
def test_numbers_stay_the_same_in(case: Case) -> None:
    model = case.model()
    before = run(model, case.feeds)
    for target in case.targets:
        result = convert_version(model, target)
        assert_equal(run(result, case.feeds), before)


def bodies(top: GraphProto) -> Iterator[GraphProto]:
    """All graphs within a graph."""
    for each in top.node:
        for attribute in each.attribute:
            for body in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield body
                yield from bodies(body)


def values_of(top: GraphProto) -> list[str]:
    """Every name that a graph, or a graph within it, gives to a value."""
    return [
        name
        for each in (top, *bodies(top))
        for name in (
            *(value.name for value in each.input),
            *(value.name for value in each.initializer),
            *(name for made in each.node for name in made.output if name),
        )
    ]


def test_constants_are_added_to_the_body_that_reads_them() -> None:
    result = convert_version(branches(), 13)
    then = body_called("then_branch", result)
    values = [numpy_helper.to_array(each).tolist() for each in then.initializer]
    assert values == [0.5, 1.5, [0]]
    assert op_types_of(then) == ["Clip", "Squeeze"]
    assert len(body_called("else_branch", result).initializer) >= 1
    assert len(result.graph.initializer) == 0


def body_called(attribute: str, model: onnx.ModelProto) -> GraphProto:
    """The graph in an attribute of the only If."""
    (holder,) = (each for each in model.graph.node if each.op_type == "If")
    found: GraphProto = next(each.g for each in holder.attribute if each.name == attribute)
    return found


def op_types_of(body: GraphProto) -> list[str]:
    return [each.op_type for each in body.node]


def test_below_ir_version_4_constants_are_nodes_of_the_body() -> None:
    """Tile-1 has a count and an axis, for which Tile-6 wants a list; opset 6 goes with IR version 3."""
    count, axis = (numpy_helper.from_array(np.array(each, np.float32)) for each in (2, 1))
    then = [
        node("Constant", [], ["count"], value=count),
        node("Constant", [], ["axis"], value=axis),
        node("Tile", ["x", "count", "axis"], ["t"]),
    ]
    nodes = [branch(then, [node("Relu", ["x"], ["e"])])]
    result = convert_version(build(nodes, {"x": X, "yes": YES}, ["y"], 5, ir_version=3), 6)
    body = body_called("then_branch", result)
    assert result.ir_version == 3
    assert op_types_of(body) == ["Constant", "Constant", "Constant", "Tile"]
    assert list(body.node[3].input) == ["x", body.node[0].output[0]]
    assert [len(each.initializer) for each in bodies(result.graph)] == [0, 0]


NAMES = ["const", "const_1", "const_2", "reshape", "reshape_1", "shape", "flatten", "mask", "cast", "softmax"]


@pytest.mark.parametrize("taken", NAMES)
def test_new_names_are_nowhere_else_when_an_outer_value_is_called(taken: str) -> None:
    nodes = [
        node("Relu", ["x"], [taken]),
        branch(
            [node("Clip", [taken], ["a"], min=0.5), node("Softmax", ["a"], ["t"], axis=1)],
            [node("Softmax", [taken], ["e"], axis=1)],
        ),
    ]
    _assert_unique_and_equal(build(nodes, {"x": X, "yes": YES}, ["y"], 10))


@pytest.mark.parametrize("taken", NAMES)
def test_new_names_are_nowhere_else_when_an_inner_value_is_called(taken: str) -> None:
    nodes = [
        branch(
            [node("Softmax", ["x"], [taken], axis=1), node("Clip", [taken], ["t"], min=0.5)],
            [node("Relu", ["x"], ["e"])],
            "a",
        ),
        node("Clip", ["a"], ["b"], min=0.25),
        node("Softmax", ["b"], ["y"], axis=1),
    ]
    _assert_unique_and_equal(build(nodes, {"x": X, "yes": YES}, ["y"], 10))


def test_new_names_are_nowhere_else_when_an_input_of_a_body_is_called_so() -> None:
    body = graph(
        [node("Identity", ["go"], ["go_on"]), node("Clip", ["const"], ["next"], max=0.5)],
        {"go_on": BOOL, "next": FLOAT},
        {"const_1": INT64, "go": BOOL, "const": FLOAT},
    )
    nodes = [node("Clip", ["x"], ["a"], min=-0.5), node("Loop", ["turns", "", "a"], ["y"], body=body)]
    model = build(nodes, {"x": X, "turns": np.array(2)}, ["y"], 10)
    _assert_unique_and_equal(model, {"x": X, "turns": np.array(2)})


def _assert_unique_and_equal(model: onnx.ModelProto, feeds: Feeds | None = None) -> None:
    feeds = feeds or {"x": X, "yes": YES}
    result = convert_version(model, 13)
    values = values_of(result.graph)
    assert len(values) == len(set(values))
    assert_equal(run(result, feeds), run(model, feeds))


def test_a_constant_of_the_graph_around_is_known_within() -> None:
    nodes = [
        branch(
            [node("Squeeze", ["x", "axes"], ["t"])],
            [node("Neg", ["x"], ["n"]), node("Squeeze", ["n", "axes"], ["e"])],
        )
    ]
    feeds = {"x": X, "yes": NO}
    model = build(nodes, feeds, ["y"], 13, initializers={"axes": np.array([0])})
    result = convert_version(model, 11)
    assert all(list(each.input) in (["x"], ["n"]) for body in bodies(result.graph) for each in body.node)
    assert_equal(run(result, feeds), run(model, feeds))


def test_a_value_that_only_a_body_reads_is_used() -> None:
    """The mask of Dropout became boolean in 10: the branch gets it as it was."""
    nodes = [
        node("Dropout", ["x"], ["dropped", "mask"]),
        branch([node("Add", ["dropped", "mask"], ["t"])], [node("Relu", ["dropped"], ["e"])]),
    ]
    result = convert_version(build(nodes, {"x": X, "yes": YES}, ["y"], 9), 11)
    assert op_types(result) == ["Dropout", "Cast", "If"]
    assert_equal(run(result, {"x": X, "yes": NO}), [np.maximum(X, 0)])


def test_a_value_that_is_made_after_the_body_is_not_seen_in_it() -> None:
    nodes = [
        branch([node("Relu", ["late"], ["t"])], [node("Relu", ["x"], ["e"])]),
        node("Abs", ["x"], ["late"]),
    ]
    with pytest.raises(InvalidModel) as caught:
        convert_version(build(nodes, {"x": X, "yes": YES}, ["y"], 10), 13)
    assert "late" in caught.value.reason
    assert "if.then_branch" in str(caught.value)


def test_a_value_of_one_branch_is_not_seen_in_the_other() -> None:
    nodes = [branch([node("Relu", ["x"], ["t"])], [node("Relu", ["t"], ["e"])])]
    with pytest.raises(InvalidModel) as caught:
        convert_version(build(nodes, {"x": X, "yes": YES}, ["y"], 10), 13)
    assert "if.else_branch" in str(caught.value)


def test_a_refusal_names_the_graphs_it_lies_in() -> None:
    nodes = [branch([node("Dropout", ["x"], ["t"], "drop", is_test=0)], [node("Relu", ["x"], ["e"])])]
    with pytest.raises(ConversionRefused) as caught:
        convert_version(build(nodes, {"x": X, "yes": YES}, ["y"], 6), 13)
    assert caught.value.refusals[0].place == "graph / if.then_branch, node 'drop'"


def test_graphs_of_other_domains_nodes_are_converted() -> None:
    """One graph in an attribute, a list of graphs in another; the node itself is nobody's business."""
    first, second, third = (graph([squeeze(name)], {name: FLOAT}) for name in ("p", "q", "r"))
    custom = node("Choose", ["x"], ["y"], "choose", domain="com.acme", body=first, more=[second, third])
    model = build([custom], {"x": X}, ["y"], {"": 11, "com.acme": 1})
    result = convert_version(model, 13)
    assert [len(body.node[0].input) for body in bodies(result.graph)] == [2, 2, 2]
    assert [len(body.initializer) for body in bodies(result.graph)] == [1, 1, 1]
    assert result.graph.node[0].name == "choose"


def test_branches_of_different_shapes_are_told_whatever_was_asked_before() -> None:
    """The input whose shape nobody knows is asked for while a branch is looked at."""
    bodies = {}
    for name, dims in (("then_branch", ["n", 3]), ("else_branch", None)):
        pooled = [node("MaxPool", ["c"], [f"v_{name}"], kernel_shape=[2, 2])]
        bodies[name] = graph([*pooled, node("Identity", [f"v_{name}"], [name])], {name: FLOAT})
        if dims:
            bodies[name].value_info.append(helper.make_tensor_value_info(f"v_{name}", FLOAT, dims))
    nodes = [node("Cast", ["x"], ["c"], to=FLOAT), node("If", ["yes"], ["y"], **bodies)]
    model = build(nodes, {"x": X, "yes": YES}, ["y"], 16)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(ConversionRefused, match="differ between the branches"):
        convert_version(model, 10)


def squeeze(output: str) -> NodeProto:
    return node("Squeeze", ["x"], [output], axes=[0])


def test_nodes_without_outputs_keep_their_graphs_apart() -> None:
    nodes = [
        node("Watch", ["x"], [], domain="com.acme", body=graph([squeeze("p")], {"p": FLOAT})),
        node("Watch", ["x"], [], domain="com.acme", body=graph([node("Relu", ["x"], ["q"])], {"q": FLOAT})),
        node("Watch", ["x"], [], domain="com.acme", body=graph([squeeze("r")], {"r": FLOAT})),
        node("Relu", ["x"], ["y"]),
    ]
    result = convert_version(build(nodes, {"x": X}, ["y"], {"": 11, "com.acme": 1}), 13)
    made = [
        (each.op_type, list(each.output), len(each.input))
        for body in bodies(result.graph)
        for each in body.node
    ]
    assert made == [("Squeeze", ["p"], 2), ("Relu", ["q"], 1), ("Squeeze", ["r"], 2)]


def test_a_body_that_does_not_change_is_byte_for_byte_the_same() -> None:
    nodes = [branch([node("Relu", ["x"], ["t"])], [node("Clip", ["x"], ["e"], min=0.0)])]
    model = build(nodes, {"x": X, "yes": YES}, ["y"], 10)
    model.graph.node[0].attribute[0].doc_string = "kept"
    result = convert_version(model, 13)
    assert [a == b for a, b in zip(bodies(result.graph), bodies(model.graph), strict=True)].count(True) == 1


def test_a_node_with_a_graph_that_is_rewritten_itself_keeps_its_converted_graph() -> None:
    """Scan-8 has a batch dimension and a leading input for lengths, Scan-9 has neither."""
    body = graph(
        [node("Add", ["sum", "slice"], ["total"]), node("Clip", ["total"], ["part"], min=-1.0, max=1.0)],
        {"total": FLOAT, "part": FLOAT},
        {"sum": FLOAT, "slice": FLOAT},
    )
    for value in (*body.input, *body.output):
        value.type.tensor_type.shape.dim.add().dim_value = 4
    nodes = [node("Scan", ["", "start", "x"], ["last", "y"], body=body, num_scan_inputs=1)]
    feeds = {"start": np.zeros((1, 4), np.float32), "x": X}
    model = build(nodes, feeds, ["last", "y"], 8)
    before = run(model, feeds)
    for target in (11, 13):
        result = convert_version(model, target)
        inner = next(bodies(result.graph))
        assert op_types_of(inner) == ["Add", "Clip"]
        assert len(inner.node[1].input) == 3
        assert_equal(run(result, feeds), before)
