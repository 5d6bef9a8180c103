"""Inference of types and shapes that the model does not declare."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, NodeProto, TensorProto, helper, shape_inference
from onnx.backend.test.loader import load_node_model_tests
from support.execution import build

from opshift.converter.convert import convert_version
from opshift.inference.fact_kinds import FactKind, InferenceCache
from opshift.inference.scope import SHAPES, Scope
from opshift.model.types import element_type_of, shape_of

ScopeFactory = Callable[..., Scope]
NodeFactory = Callable[[int, str, str], list[NodeProto]]
ML = "ai.onnx.ml"
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
X = np.ones((2, 3), np.float32)
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def node(
    op_type: str, inputs: Sequence[str], outputs: Sequence[str], domain: str = "", **attributes: Any
) -> NodeProto:
    result: NodeProto = helper.make_node(op_type, inputs, outputs, domain=domain, **attributes)
    return result


def build_scope(scope_of: ScopeFactory, *nodes: NodeProto, opset: int = 17, **weights: Any) -> Scope:
    """Return the scope of nodes that read `x`, a float of shape (2, 3), and `yes`, a boolean."""
    arrays = {name: np.asarray(each) for name, each in weights.items()}
    feeds = {"x": X, "yes": np.array(True)}
    model = build(nodes, feeds, [], {"": opset, "com.acme": 1, ML: 5}, initializers=arrays)
    return scope_of(model.graph, model.opset_import)


Row = tuple[str, list[NodeProto], str | None, tuple[int | None, ...] | None]
ROWS: list[Row] = [
    ("type of the data", [node("Relu", ["x"], ["y"])], "float", (2, 3)),
    ("fixed type", [node("Shape", ["x"], ["y"])], "int64", (2,)),
    ("type from an attribute", [node("Cast", ["x"], ["y"], to=INT64)], "int64", (2, 3)),
    ("type from an optional attribute", [node("EyeLike", ["x"], ["y"], dtype=INT64)], "int64", (2, 3)),
    ("optional attribute omitted", [node("EyeLike", ["x"], ["y"])], "float", (2, 3)),
    (
        "type of a tensor attribute",
        [
            node("Shape", ["x"], ["s"]),
            node("ConstantOfShape", ["s"], ["y"], value=helper.make_tensor("", INT64, [1], [7])),
        ],
        "int64",
        (2, 3),
    ),
    (
        "tensor attribute omitted",
        [node("Shape", ["x"], ["s"]), node("ConstantOfShape", ["s"], ["y"])],
        "float",
        (2, 3),
    ),
    (
        "type of the values in a list attribute",
        [node("LabelEncoder", ["x"], ["y"], ML, keys_floats=[1.0], values_strings=["a"])],
        "string",
        (2, 3),
    ),
    (
        "type of the second of two list attributes",
        [node("LinearClassifier", ["x"], ["y", "z"], ML, coefficients=[1.0], classlabels_ints=[1])],
        "int64",
        (2,),
    ),
    (
        "list attributes omitted",
        [node("LinearClassifier", ["x"], ["y", "z"], ML, coefficients=[1.0])],
        "int64",
        (2,),
    ),
    ("type of the second output", [node("TopK", ["x", "k"], ["v", "y"])], "int64", (2, 1)),
    ("sequence", [node("SequenceConstruct", ["x", "x"], ["y"])], "seq(tensor(float))", None),
    (
        "element of a sequence",
        [
            node("SplitToSequence", ["x"], ["s"]),
            node("Constant", [], ["i"], value_int=0),
            node("SequenceAt", ["s", "i"], ["y"]),
        ],
        "float",
        None,
    ),
    (
        "element of an optional",
        [
            node("SequenceConstruct", ["x"], ["s"]),
            node("Optional", ["s"], ["o"]),
            node("OptionalGetElement", ["o"], ["y"]),
        ],
        "seq(tensor(float))",
        None,
    ),
    ("empty sequence", [node("SequenceEmpty", [], ["y"], dtype=INT64)], "seq(tensor(int64))", None),
    ("empty sequence of the default type", [node("SequenceEmpty", [], ["y"])], "seq(tensor(float))", None),
    ("broadcasting", [node("Add", ["x", "row"], ["y"])], "float", (4, 2, 3)),
    ("undefined domain", [node("F", ["x"], ["y"], "com.acme")], None, None),
    ("unknown operator", [node("Nonesuch", ["x"], ["y"])], None, None),
    ("operator of a later opset", [node("Gelu", ["x"], ["y"])], None, None),
    (
        "consumer of an unknown value",
        [node("F", ["x"], ["f"], "com.acme"), node("Relu", ["f"], ["y"])],
        None,
        None,
    ),
    (
        "fixed type after an unknown value",
        [node("F", ["x"], ["f"], "com.acme"), node("Cast", ["f"], ["y"], to=BOOL)],
        "bool",
        None,
    ),
    ("node without inputs", [node("Add", [], ["y"])], None, None),
    ("node with an empty input", [node("Relu", [""], ["y"])], None, None),
]


@pytest.mark.parametrize(
    ("nodes", "element_type", "shape"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_infers_types_and_shapes(
    nodes: list[NodeProto],
    element_type: str | None,
    shape: tuple[int | None, ...] | None,
    scope_of: ScopeFactory,
) -> None:
    scope = build_scope(scope_of, *nodes, k=np.array([1]), row=np.ones((4, 1, 3), np.float32))
    assert (scope.element_type("y"), scope.shape("y")) == (element_type, shape)


def test_declared_types_take_precedence(scope_of: ScopeFactory) -> None:
    model = build([node("F", ["x"], ["y"], "com.acme")], {"x": X}, [], {"": 17, "com.acme": 1, ML: 5})
    model.graph.value_info.append(helper.make_tensor_value_info("y", TensorProto.DOUBLE, ["n", 3]))
    scope = scope_of(model.graph, model.opset_import)
    assert (scope.element_type("y"), scope.shape("y")) == ("double", (None, 3))


def test_queries_an_unknown_input_during_branch_inference(scope_of: ScopeFactory) -> None:
    """A branch queries the input while the output of the branch is inferred."""
    nodes = [node("MaxPool", ["c"], ["v"], kernel_shape=[2, 2]), node("Identity", ["v"], ["t"])]
    body = helper.make_graph(nodes, "body", [], [helper.make_tensor_value_info("t", FLOAT, None)])
    nodes = [node("Cast", ["x"], ["c"], to=FLOAT)]
    nodes.append(node("If", ["yes"], ["y"], then_branch=body, else_branch=body))
    model = build(nodes, {"x": X, "yes": np.array(True)}, ["y"], 17)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    scope = scope_of(model.graph, model.opset_import)
    inner = scope.child(model.graph.node[1].attribute[0].g)
    assert inner.shape("t") == inner.shape("v")
    assert (scope.shape("c"), scope.element_type("c")) == (None, "float")


def test_omitted_outputs_are_cached_separately(scope_of: ScopeFactory) -> None:
    """Models share cached inference, and the rank follows from the shape."""
    for output, expected in (("", None), ("y", 2), ("", None), ("y", 2)):
        model = build([node("Squeeze", ["x"], [output])], {"x": np.ones((1, 2, 3), np.float32)}, [], 11)
        scope = scope_of(model.graph, model.opset_import)
        assert scope.rank(output) == expected


def test_infers_values_declared_without_a_type(scope_of: ScopeFactory) -> None:
    model = build([node("Relu", ["x"], ["y"])], {"x": X}, [], 17)
    model.graph.value_info.add(name="y")
    scope = scope_of(model.graph, model.opset_import)
    assert (scope.element_type("y"), scope.shape("y")) == ("float", (2, 3))


def test_uses_the_operator_version_of_the_opset(scope_of: ScopeFactory) -> None:
    """The mask of Dropout has the type of the data before opset 10 and is boolean since."""
    nodes = [node("Dropout", ["x"], ["y", "mask"])]
    assert build_scope(scope_of, *nodes, opset=9).element_type("mask") == "float"
    assert build_scope(scope_of, *nodes, opset=10).element_type("mask") == "bool"


# Ranks from lists of sizes


def size(*axes: int) -> list[NodeProto]:
    """Return nodes that produce `p`, a list of one size: an unknown value to which Unsqueeze adds axes."""
    attributes: dict[str, Any] = {"axes": axes} if axes else {}
    return [node("F", [], ["size"], "com.acme"), node("Unsqueeze", ["size"], ["p"], **attributes)]


LISTS: list[tuple[str, list[NodeProto], int, int | None]] = [
    ("single sizes", [*size(0), node("Concat", ["p", "p"], ["s"], axis=0)], 11, 2),
    ("last axis", [*size(-1), node("Concat", ["p"], ["s"], axis=-1)], 11, 1),
    ("sizes and a constant", [*size(0), node("Concat", ["p", "two"], ["s"], axis=0)], 11, 3),
    (
        "axes in an initializer",
        [
            node("F", [], ["size"], "com.acme"),
            node("Unsqueeze", ["size", "one"], ["p"]),
            node("Concat", ["p", "two", "p"], ["s"], axis=0),
        ],
        17,
        4,
    ),
    (
        "axes in a Constant",
        [
            node("F", [], ["size"], "com.acme"),
            node("Constant", [], ["axes"], value=helper.make_tensor("", INT64, [1], [0])),
            node("Unsqueeze", ["size", "axes"], ["p"]),
            node("Concat", ["p", "p"], ["s"], axis=0),
        ],
        17,
        2,
    ),
    ("no axes", [*size(), node("Concat", ["p", "p"], ["s"], axis=0)], 11, None),
    ("part of unknown length", [*size(0), node("Concat", ["p", "size"], ["s"], axis=0)], 11, None),
    (
        "computed axes",
        [
            node("F", [], ["size", "axes"], "com.acme"),
            node("Unsqueeze", ["size", "axes"], ["p"]),
            node("Concat", ["p", "p"], ["s"], axis=0),
        ],
        17,
        None,
    ),
    ("another operator", [node("F", [], ["s"], "com.acme")], 17, None),
]


@pytest.mark.parametrize(
    ("nodes", "opset", "rank"), [row[1:] for row in LISTS], ids=[row[0] for row in LISTS]
)
def test_rank_is_the_length_of_a_list(
    nodes: list[NodeProto], opset: int, rank: int | None, scope_of: ScopeFactory
) -> None:
    """The list is 1-D, as ONNX requires, so that each of its parts is, whatever their producers are."""
    weights: dict[str, Any] = {"one": [0], "two": [3, 4]}
    scope = build_scope(scope_of, *nodes, node("Reshape", ["x", "s"], ["y"]), opset=opset, **weights)
    assert scope.rank("y") == rank


# Long chains


def branches(source: str, output: str) -> dict[str, onnx.GraphProto]:
    """Return two branches that forward an outer value and declare no type."""
    return {
        name: helper.make_graph(
            [node("Identity", [source], [output + name[0]])],
            name,
            [],
            [onnx.ValueInfoProto(name=output + name[0])],
        )
        for name in ("then_branch", "else_branch")
    }


CHAINS: list[tuple[str, NodeFactory]] = [
    ("Relu", lambda i, a, b: [node("Relu", [a], [b])]),
    ("Add of a value to itself", lambda i, a, b: [node("Add", [a, a], [b])]),
    ("Sum of three", lambda i, a, b: [node("Sum", ["x", a, a], [b])]),
    ("EyeLike with the type of its input", lambda i, a, b: [node("EyeLike", [a], [b])]),
    (
        "Cast there and back",
        lambda i, a, b: [node("Cast", [a], [b + "_"], to=INT64), node("Cast", [b + "_"], [b], to=FLOAT)],
    ),
    (
        "Reshape to a computed shape",
        lambda i, a, b: [node("Shape", [a], [b + "_"]), node("Reshape", [a, b + "_"], [b])],
    ),
    ("Transpose", lambda i, a, b: [node("Transpose", [a], [b + "_"]), node("Transpose", [b + "_"], [b])]),
    (
        "Concat and Split",
        lambda i, a, b: [
            node("Concat", [a, a], [b + "_"], axis=0),
            node("Split", [b + "_"], [b, ""], axis=0),
        ],
    ),
    (
        "If with branches that read the previous value",
        lambda i, a, b: [node("If", ["yes"], [b], **branches(a, b))],
    ),
]


@pytest.mark.full
@pytest.mark.parametrize("make_nodes", [row[1] for row in CHAINS], ids=[row[0] for row in CHAINS])
def test_infers_chains_of_5000_nodes(make_nodes: NodeFactory, scope_of: ScopeFactory) -> None:
    nodes = [each for i in range(5_000) for each in make_nodes(i, f"v{i - 1}" if i else "x", f"v{i}")]
    scope = build_scope(scope_of, *nodes)
    assert (scope.element_type("v4999"), scope.shape("v4999")) == ("float", (2, 3))


@pytest.mark.parametrize("make_nodes", [row[1] for row in CHAINS[:4]], ids=[row[0] for row in CHAINS[:4]])
def test_converts_the_end_of_a_long_chain(make_nodes: NodeFactory) -> None:
    """Clip needs the type, Softmax the rank."""
    nodes = [each for i in range(2_000) for each in make_nodes(i, f"v{i - 1}" if i else "x", f"v{i}")]
    nodes += [node("Clip", ["v1999"], ["c"], min=0.5), node("Softmax", ["c"], ["y"], axis=-1)]
    result = convert_version(build(nodes, {"x": X}, ["y"], 10), 13)
    assert [each.op_type for each in result.graph.node][-2:] == ["Clip", "Softmax"]


def test_infers_each_value_once(scope_of: ScopeFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every value is read twice, so the chain has 2 ** 40 paths."""
    nodes = [node("Add", [f"v{i - 1}" if i else "x"] * 2, [f"v{i}"]) for i in range(40)]
    scope = build_scope(scope_of, *nodes)
    assert scope.element_type("v39") == "float"
    assert scope.shape("v39") == (2, 3)


# Subgraphs and functions


def loop() -> NodeProto:
    body = helper.make_graph(
        [
            node("Identity", ["go"], ["go_on"]),
            node("Cast", ["carried"], ["c"], to=FLOAT),
            node("Identity", ["c"], ["next"]),
            node("Shape", ["x"], ["part"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("turn", INT64, []),
            helper.make_tensor_value_info("go", BOOL, []),
            helper.make_tensor_value_info("carried", FLOAT, [2, 3]),
        ],
        [onnx.ValueInfoProto(name=name) for name in ("go_on", "next", "part")],
    )
    return node("Loop", ["", "yes", "x"], ["y", "parts"], body=body)


def test_loop_outputs_have_the_types_of_the_body(scope_of: ScopeFactory) -> None:
    scope = build_scope(scope_of, loop())
    assert (scope.element_type("y"), scope.element_type("parts")) == ("float", "int64")
    assert scope.shape("parts") == (None, 2)


def test_if_outputs_have_the_types_of_the_branches(scope_of: ScopeFactory) -> None:
    scope = build_scope(
        scope_of, node("Cast", ["x"], ["i"], to=INT64), node("If", ["yes"], ["y"], **branches("i", "b"))
    )
    assert (scope.element_type("y"), scope.shape("y")) == ("int64", (2, 3))


def test_subgraph_reads_types_of_the_enclosing_graph(scope_of: ScopeFactory) -> None:
    outer = build_scope(scope_of, node("Cast", ["x"], ["i"], to=INT64))
    inner = onnx.GraphProto(node=[node("Neg", ["i"], ["y"])])
    scope = scope_of(inner, [helper.make_opsetid("", 17)], outer)
    assert (scope.element_type("y"), scope.shape("y")) == ("int64", (2, 3))


def test_inner_value_shadows_an_outer_value(scope_of: ScopeFactory) -> None:
    outer = build_scope(scope_of)
    inner = onnx.GraphProto(node=[node("F", [], ["y"], "com.acme"), node("Neg", ["y"], ["x"])])
    assert scope_of(inner, [helper.make_opsetid("", 17)], outer).element_type("x") is None


def test_infers_types_in_functions_from_value_info(scope_of: ScopeFactory) -> None:
    imports = [helper.make_opsetid("", 17)]
    nodes = [node("Relu", ["a"], ["r"]), node("Add", ["r", "c"], ["b"]), node("Shape", ["b"], ["s"])]
    function = helper.make_function("local", "F", ["a", "c"], ["b", "s"], nodes, imports)
    assert scope_of(function, imports).element_type("b") is None
    assert scope_of(function, imports).element_type("s") == "int64"
    function.value_info.append(helper.make_tensor_value_info("a", FLOAT, [5]))
    assert scope_of(function, imports).element_type("b") == "float"
    assert scope_of(function, imports).shape("r") == (5,)


@pytest.mark.parametrize(("name", "expected"), [("FLOAT16", "float16"), ("ab,bc->ac", None), ("\xff", None)])
def test_type_from_a_name_is_an_element_type(name: str, expected: str | None, scope_of: ScopeFactory) -> None:
    scope = build_scope(scope_of, node("Cast", ["x"], ["y"], to=name), opset=1)
    assert scope.element_type("y") == expected


def test_type_from_an_attribute_reference_is_unknown(scope_of: ScopeFactory) -> None:
    imports = [helper.make_opsetid("", 17)]
    cast = node("Cast", ["a"], ["b"])
    cast.attribute.add(name="to", ref_attr_name="given", type=AttributeProto.INT)
    function = helper.make_function("local", "F", ["a"], ["b"], [cast], imports)
    assert scope_of(function, imports).element_type("b") is None


# Comparison with ONNX


def differences(model: onnx.ModelProto, scope_of: ScopeFactory) -> Iterator[str]:
    """Yield the values for which ONNX and this project infer contradicting facts."""
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    del bare.graph.value_info[:]
    for output in bare.graph.output:
        output.type.Clear()
    graph = shape_inference.infer_shapes(bare, data_prop=True).graph
    del bare.graph.output[:]
    scope = scope_of(bare.graph, bare.opset_import)
    for value in (*graph.value_info, *graph.output):
        theirs = element_type_of(value.type), shape_of(value.type)
        inferred = scope.element_type(value.name), scope.shape(value.name)
        if not _agree(theirs, inferred):
            yield f"{value.name}: ONNX infers {theirs}, opshift {inferred}"


def _agree(theirs: tuple[Any, Any], ours: tuple[Any, Any]) -> bool:
    if None not in (theirs[0], ours[0]) and theirs[0] != ours[0]:
        return False
    if None in (theirs[1], ours[1]):
        return True
    pairs = zip(theirs[1], ours[1], strict=False)
    return len(theirs[1]) == len(ours[1]) and all(None in pair or pair[0] == pair[1] for pair in pairs)


@pytest.mark.parametrize("name", sorted(path.stem for path in LIGHT.glob("*.onnx")))
def test_agrees_with_onnx_on_light_models(name: str, scope_of: ScopeFactory) -> None:
    model = onnx.load(LIGHT / f"{name}.onnx")
    assert list(differences(model, scope_of)) == []


def test_infers_all_types_and_shapes_of_a_light_model(scope_of: ScopeFactory) -> None:
    model = onnx.load(LIGHT / "light_squeezenet.onnx")
    scope = scope_of(model.graph, model.opset_import)
    for each in model.graph.node:
        for output in each.output:
            assert scope.element_type(output) == "float"
            assert scope.shape(output) is not None


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_agrees_with_onnx_on_node_cases(scope_of: ScopeFactory) -> None:
    """Check every eighth operator case of ONNX, each at the newest version of its operator."""
    models = [case.model for case in load_node_model_tests() if case.model is not None][::8]
    assert len(models) > 100
    wrong = {each.graph.name: list(differences(each, scope_of)) for each in models}
    assert {name: lines for name, lines in wrong.items() if lines} == {}


def test_shapes_of_equal_nodes_follow_their_constants(scope_of: ScopeFactory) -> None:
    shapes = {"a": [3, 2], "b": [6], "c": [3, 2], "d": [1, -1], "e": [1, -1]}
    nodes = [node("Reshape", ["x", f"{name}_shape"], [name]) for name in shapes]
    weights: dict[str, Any] = {f"{name}_shape": np.array(sizes, np.int64) for name, sizes in shapes.items()}
    scope = build_scope(scope_of, *nodes, **weights)
    assert [scope.shape(name) for name in shapes] == [(3, 2), (6,), (3, 2), (1, 6), (1, 6)]


def test_cached_shapes_depend_on_the_positions_of_constants(
    scope_of: ScopeFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads share the positions, and may replace them between two nodes."""
    caches: defaultdict[FactKind[Any], InferenceCache] = defaultdict(InferenceCache)
    monkeypatch.setattr(Scope, "inference_cache", lambda scope, kind: caches[kind])
    weights: dict[str, Any] = {"zero": np.array([0]), "one": np.array([1]), "axes": np.array([0])}
    nodes = [
        node("Slice", ["axes", "zero", "one", "axes"], ["y"]),
        node("Slice", ["axes", "one", "zero", "axes"], ["z"]),
    ]
    scope = build_scope(scope_of, *nodes, **weights)
    caches[SHAPES].constants["Slice"] = (1, 2, 3)
    assert scope.shape("y") == (1,)
    caches[SHAPES].constants["Slice"] = (0, 1, 2)
    assert scope.shape("z") == (0,)
