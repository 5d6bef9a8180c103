"""Subgraphs are converted like the graphs that contain them, and read their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper
from support.execution import Array, Feeds, assert_equal, build, op_types, run

from opshift.converter.convert import convert_version
from opshift.converter.refusals import ConversionRefused
from opshift.model.errors import InvalidModel

FLOAT, INT64, BOOL, DOUBLE = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.DOUBLE
X = np.linspace(-3, 3, 12, dtype=np.float32).reshape(1, 3, 4)
PADS = [0, 1, 0, 0, 0, 1]
YES, NO = np.array(True), np.array(False)


def node(
    op_type: str, inputs: Sequence[str], outputs: Sequence[str], name: str = "", **attributes: Any
) -> NodeProto:
    result: NodeProto = helper.make_node(op_type, inputs, outputs, name, **attributes)
    return result


def graph(
    nodes: Sequence[NodeProto], outputs: dict[str, int], inputs: dict[str, int] | None = None
) -> GraphProto:
    """Return a subgraph that declares types, and shapes only for scalars."""
    result: GraphProto = helper.make_graph(list(nodes), "body", _values(inputs or {}), _values(outputs))
    return result


def _values(types: dict[str, int]) -> list[onnx.ValueInfoProto]:
    shapes: dict[int, list[int]] = {INT64: [], BOOL: []}
    return [helper.make_tensor_value_info(name, each, shapes.get(each)) for name, each in types.items()]


def if_node(
    then: Sequence[NodeProto], other: Sequence[NodeProto], output: str = "y", element: int = FLOAT
) -> NodeProto:
    """Return an If with branches that return the outputs of their last nodes."""
    subgraphs = {
        "then_branch": graph(then, {then[-1].output[0]: element}),
        "else_branch": graph(other, {other[-1].output[0]: element}),
    }
    return node("If", ["yes"], [output], "if", **subgraphs)


def if_model() -> onnx.ModelProto:
    """Both branches change and read outer values."""
    nodes = [
        node("Relu", ["x"], ["outer"]),
        if_node(
            [node("Clip", ["outer"], ["a"], min=0.5, max=1.5), node("Squeeze", ["a"], ["t"], axes=[0])],
            [node("Softmax", ["x"], ["b"], axis=1), node("Squeeze", ["b"], ["e"], axes=[0])],
        ),
    ]
    return build(nodes, {"x": X, "yes": YES}, ["y"], 10)


def if_model_with_equal_names() -> onnx.ModelProto:
    """The branches use equal names for different values."""
    nodes = [
        if_node(
            [node("Clip", ["x"], ["a"], min=0.5), node("ReduceSum", ["a"], ["t"], axes=[1])],
            [node("Clip", ["x"], ["a"], max=0.5), node("ReduceSum", ["a"], ["t"], axes=[1])],
        )
    ]
    return build(nodes, {"x": X, "yes": YES}, ["y"], 10)


def loop_node(body: Sequence[NodeProto], result: str = "y") -> NodeProto:
    """Return a Loop that carries `carried`, which starts as `x`."""
    body_graph = graph(
        [node("Identity", ["go"], ["go_on"]), *body],
        {"go_on": BOOL, "next": FLOAT},
        {"turn": INT64, "go": BOOL, "carried": FLOAT},
    )
    return node("Loop", ["turns", "", "x"], [result], "loop", body=body_graph)


def loop_model() -> onnx.ModelProto:
    body = [
        node("Clip", ["carried"], ["a"], min=-1.0, max=1.0),
        node("ReduceMean", ["a"], ["mean"], axes=[2], keepdims=1),
        node("Add", ["a", "mean"], ["b"]),
        node("Mul", ["b", "scale"], ["next"]),
    ]
    nodes = [node("Exp", ["x"], ["e"]), node("ReduceMean", ["e"], ["scale"]), loop_node(body)]
    return build(nodes, {"x": X, "turns": np.array(3)}, ["y"], 10)


def nested_loops_model() -> onnx.ModelProto:
    """The innermost of three subgraphs reads values of the main graph and of the middle one."""
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
    body = [if_node(then, other, "next")]
    nodes = [node("Clip", ["x"], ["outer"], min=-0.25, max=0.25), loop_node(body)]
    return build(nodes, {"x": X, "turns": np.array(2), "yes": YES}, ["y"], 10)


def scan_model() -> onnx.ModelProto:
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


def outer_type_model() -> onnx.ModelProto:
    """The padding value of Pad has to be double, which only outer nodes determine."""
    nodes = [
        node("Cast", ["x"], ["wide"], to=DOUBLE),
        node("Identity", ["wide"], ["outer"]),
        if_node(
            [node("Pad", ["outer"], ["a"], pads=PADS, value=0.5), node("Cast", ["a"], ["t"], to=FLOAT)],
            [node("Pad", ["outer"], ["b"], pads=PADS, value=0.1), node("Cast", ["b"], ["e"], to=FLOAT)],
        ),
    ]
    return build(nodes, {"x": X, "yes": YES}, ["y"], 10)


def branch_type_model() -> onnx.ModelProto:
    """The padding value of Pad has to be double, which only nodes in the branches determine."""
    then = [node("Cast", ["x"], ["t"], to=DOUBLE)]
    other = [node("Cast", ["x"], ["e"], to=DOUBLE)]
    nodes = [
        if_node(then, other, "wide", DOUBLE),
        node("Pad", ["wide"], ["padded"], pads=PADS, value=0.5),
        node("Cast", ["padded"], ["y"], to=FLOAT),
    ]
    return build(nodes, {"x": X, "yes": YES}, ["y"], 10)


class Case(NamedTuple):
    """A model, its inputs, and the opsets to convert it to."""

    title: str
    model: Callable[[], onnx.ModelProto]
    feeds: dict[str, Array]
    targets: tuple[int, ...] = (11, 13, 18, 21)


CASES = [
    Case("first branch of If", if_model, {"x": X, "yes": YES}),
    Case("second branch of If", if_model, {"x": X, "yes": NO}),
    Case("first branch with equal names", if_model_with_equal_names, {"x": X, "yes": YES}),
    Case("second branch with equal names", if_model_with_equal_names, {"x": X, "yes": NO}),
    Case("body of Loop", loop_model, {"x": X, "turns": np.array(3)}),
    Case("Loop in If in Loop", nested_loops_model, {"x": X, "turns": np.array(2), "yes": YES}),
    Case("other branch of If in Loop", nested_loops_model, {"x": X, "turns": np.array(2), "yes": NO}),
    Case("body of Scan", scan_model, {"x": X}),
    Case("subgraph that needs an outer type", outer_type_model, {"x": X, "yes": YES}),
    Case("node that needs the type of a subgraph output", branch_type_model, {"x": X, "yes": YES}),
]


@pytest.mark.parametrize("case", CASES, ids=[case.title for case in CASES])
def test_preserves_outputs(case: Case) -> None:
    model = case.model()
    before = run(model, case.feeds)
    for target in case.targets:
        result = convert_version(model, target)
        assert_equal(run(result, case.feeds), before)


def subgraphs(top: GraphProto) -> Iterator[GraphProto]:
    """Yield all nested subgraphs of a graph."""
    for each in top.node:
        for attribute in each.attribute:
            for body in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield body
                yield from subgraphs(body)


def values_of(top: GraphProto) -> list[str]:
    """Return the names of all values that a graph and its subgraphs define."""
    return [
        name
        for each in (top, *subgraphs(top))
        for name in (
            *(value.name for value in each.input),
            *(value.name for value in each.initializer),
            *(name for producer in each.node for name in producer.output if name),
        )
    ]


def test_adds_constants_to_the_subgraph_that_reads_them() -> None:
    result = convert_version(if_model(), 13)
    then = subgraph_named("then_branch", result)
    values = [numpy_helper.to_array(each).tolist() for each in then.initializer]
    assert values == [0.5, 1.5, [0]]
    assert op_types_of(then) == ["Clip", "Squeeze"]
    assert len(subgraph_named("else_branch", result).initializer) >= 1
    assert len(result.graph.initializer) == 0


def subgraph_named(attribute: str, model: onnx.ModelProto) -> GraphProto:
    """Return the subgraph in an attribute of the only If."""
    (owner,) = (each for each in model.graph.node if each.op_type == "If")
    result: GraphProto = next(each.g for each in owner.attribute if each.name == attribute)
    return result


def op_types_of(body: GraphProto) -> list[str]:
    return [each.op_type for each in body.node]


def test_casts_integer_constants_of_subgraphs_below_ir_version_4() -> None:
    """Tile-6 needs a new list of repeats; opset 6 has IR version 3, and no Constant of integers."""
    count, axis = (numpy_helper.from_array(np.array(each, np.float32)) for each in (2, 1))
    then = [
        node("Constant", [], ["count"], value=count),
        node("Constant", [], ["axis"], value=axis),
        node("Tile", ["x", "count", "axis"], ["t"]),
    ]
    nodes = [if_node(then, [node("Relu", ["x"], ["e"])])]
    model = build(nodes, {"x": X, "yes": YES}, ["y"], 5, ir_version=3)
    result = convert_version(model, 6)
    body = subgraph_named("then_branch", result)
    assert result.ir_version == 3
    assert op_types_of(body) == ["Constant", "Cast", "Tile"]
    assert result.graph.input == model.graph.input
    assert [len(each.initializer) for each in (result.graph, *subgraphs(result.graph))] == [0, 0, 0]
    assert_equal(run(result, {"x": X, "yes": YES}), [np.tile(X, (1, 2, 1))])


NAMES = ["const", "const_1", "const_2", "reshape", "reshape_1", "shape", "flatten", "mask", "cast", "softmax"]


@pytest.mark.parametrize("used", NAMES)
def test_new_names_differ_from_outer_values(used: str) -> None:
    nodes = [
        node("Relu", ["x"], [used]),
        if_node(
            [node("Clip", [used], ["a"], min=0.5), node("Softmax", ["a"], ["t"], axis=1)],
            [node("Softmax", [used], ["e"], axis=1)],
        ),
    ]
    _assert_unique_names_and_same_outputs(build(nodes, {"x": X, "yes": YES}, ["y"], 10))


@pytest.mark.parametrize("used", NAMES)
def test_new_names_differ_from_inner_values(used: str) -> None:
    nodes = [
        if_node(
            [node("Softmax", ["x"], [used], axis=1), node("Clip", [used], ["t"], min=0.5)],
            [node("Relu", ["x"], ["e"])],
            "a",
        ),
        node("Clip", ["a"], ["b"], min=0.25),
        node("Softmax", ["b"], ["y"], axis=1),
    ]
    _assert_unique_names_and_same_outputs(build(nodes, {"x": X, "yes": YES}, ["y"], 10))


def test_new_names_differ_from_subgraph_inputs() -> None:
    body = graph(
        [node("Identity", ["go"], ["go_on"]), node("Clip", ["const"], ["next"], max=0.5)],
        {"go_on": BOOL, "next": FLOAT},
        {"const_1": INT64, "go": BOOL, "const": FLOAT},
    )
    nodes = [node("Clip", ["x"], ["a"], min=-0.5), node("Loop", ["turns", "", "a"], ["y"], body=body)]
    model = build(nodes, {"x": X, "turns": np.array(2)}, ["y"], 10)
    _assert_unique_names_and_same_outputs(model, {"x": X, "turns": np.array(2)})


def _assert_unique_names_and_same_outputs(model: onnx.ModelProto, feeds: Feeds | None = None) -> None:
    feeds = feeds or {"x": X, "yes": YES}
    result = convert_version(model, 13)
    values = values_of(result.graph)
    assert len(values) == len(set(values))
    assert_equal(run(result, feeds), run(model, feeds))


def test_subgraph_reads_outer_constants() -> None:
    nodes = [
        if_node(
            [node("Squeeze", ["x", "axes"], ["t"])],
            [node("Neg", ["x"], ["n"]), node("Squeeze", ["n", "axes"], ["e"])],
        )
    ]
    feeds = {"x": X, "yes": NO}
    model = build(nodes, feeds, ["y"], 13, initializers={"axes": np.array([0])})
    result = convert_version(model, 11)
    assert all(list(each.input) in (["x"], ["n"]) for body in subgraphs(result.graph) for each in body.node)
    assert_equal(run(result, feeds), run(model, feeds))


def test_keeps_the_type_of_a_value_that_only_a_subgraph_reads() -> None:
    """Since opset 10 the mask of Dropout is boolean; a Cast restores its type for the branch."""
    nodes = [
        node("Dropout", ["x"], ["dropped", "mask"]),
        if_node([node("Add", ["dropped", "mask"], ["t"])], [node("Relu", ["dropped"], ["e"])]),
    ]
    result = convert_version(build(nodes, {"x": X, "yes": YES}, ["y"], 9), 11)
    assert op_types(result) == ["Dropout", "Cast", "If"]
    assert_equal(run(result, {"x": X, "yes": NO}), [np.maximum(X, 0)])


def test_moves_holder_behind_the_values_that_its_subgraphs_read() -> None:
    nodes = [
        if_node([node("Relu", ["late"], ["t"])], [node("Relu", ["x"], ["e"])]),
        node("Abs", ["x"], ["late"]),
    ]
    result = convert_version(build(nodes, {"x": X, "yes": YES}, ["y"], 10), 13)
    assert op_types(result) == ["Abs", "If"]
    assert_equal(run(result, {"x": X, "yes": YES}), [np.abs(X)])


def test_rejects_reads_from_the_other_branch() -> None:
    nodes = [if_node([node("Relu", ["x"], ["t"])], [node("Relu", ["t"], ["e"])])]
    with pytest.raises(InvalidModel) as caught:
        convert_version(build(nodes, {"x": X, "yes": YES}, ["y"], 10), 13)
    assert "if.else_branch" in str(caught.value)


def test_refusal_names_the_enclosing_graphs() -> None:
    nodes = [if_node([node("Dropout", ["x"], ["t"], "drop", is_test=0)], [node("Relu", ["x"], ["e"])])]
    with pytest.raises(ConversionRefused) as caught:
        convert_version(build(nodes, {"x": X, "yes": YES}, ["y"], 6), 13)
    assert caught.value.refusals[0].place == "graph / if.then_branch, node 'drop'"


def test_converts_subgraphs_of_custom_nodes() -> None:
    """One attribute holds a graph, another a list of graphs; the node itself stays unchanged."""
    first, second, third = (graph([squeeze(name)], {name: FLOAT}) for name in ("p", "q", "r"))
    custom = node("Choose", ["x"], ["y"], "choose", domain="com.acme", body=first, more=[second, third])
    model = build([custom], {"x": X}, ["y"], {"": 11, "com.acme": 1})
    result = convert_version(model, 13)
    assert [len(body.node[0].input) for body in subgraphs(result.graph)] == [2, 2, 2]
    assert [len(body.initializer) for body in subgraphs(result.graph)] == [1, 1, 1]
    assert result.graph.node[0].name == "choose"


def test_replaces_branches_whose_inferred_ranks_differ() -> None:
    """Inference of a branch queries the input of unknown shape."""
    subgraphs = {}
    for name, dims in (("then_branch", ["n", 3]), ("else_branch", [])):
        squeeze = node("Squeeze", ["c"], [f"v_{name}"])
        pool = node("MaxPool", ["c"], [f"v_{name}"], kernel_shape=[2, 2])
        inner = [squeeze if dims else pool]
        subgraphs[name] = graph([*inner, node("Identity", [f"v_{name}"], [name])], {name: FLOAT})
        if dims:
            subgraphs[name].value_info.append(helper.make_tensor_value_info(f"v_{name}", FLOAT, dims))
    nodes = [node("Cast", ["x"], ["c"], to=FLOAT), node("If", ["yes"], ["y"], **subgraphs)]
    model = build(nodes, {"x": X, "yes": YES}, ["y"], 16)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    result = convert_version(model, 10)
    assert [each.op_type for each in result.graph.node if each.op_type in ("If", "Loop")] == ["Loop", "Loop"]


def squeeze(output: str) -> NodeProto:
    return node("Squeeze", ["x"], [output], axes=[0])


def test_distinguishes_subgraphs_of_nodes_without_outputs() -> None:
    nodes = [
        node("Watch", ["x"], [], domain="com.acme", body=graph([squeeze("p")], {"p": FLOAT})),
        node("Watch", ["x"], [], domain="com.acme", body=graph([node("Relu", ["x"], ["q"])], {"q": FLOAT})),
        node("Watch", ["x"], [], domain="com.acme", body=graph([squeeze("r")], {"r": FLOAT})),
        node("Relu", ["x"], ["y"]),
    ]
    result = convert_version(build(nodes, {"x": X}, ["y"], {"": 11, "com.acme": 1}), 13)
    converted = [
        (each.op_type, list(each.output), len(each.input))
        for body in subgraphs(result.graph)
        for each in body.node
    ]
    assert converted == [("Squeeze", ["p"], 2), ("Relu", ["q"], 1), ("Squeeze", ["r"], 2)]


def test_unchanged_subgraph_is_byte_identical() -> None:
    nodes = [if_node([node("Relu", ["x"], ["t"])], [node("Clip", ["x"], ["e"], min=0.0)])]
    model = build(nodes, {"x": X, "yes": YES}, ["y"], 10)
    model.graph.node[0].attribute[0].doc_string = "kept"
    result = convert_version(model, 13)
    assert [a == b for a, b in zip(subgraphs(result.graph), subgraphs(model.graph), strict=True)].count(
        True
    ) == 1


def test_rewritten_node_keeps_its_converted_subgraph() -> None:
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
        inner = next(subgraphs(result.graph))
        assert op_types_of(inner) == ["Add", "Clip"]
        assert len(inner.node[1].input) == 3
        assert_equal(run(result, feeds), before)
