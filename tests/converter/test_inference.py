"""Types and shapes of values that the model says nothing about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, NodeProto, TensorProto, helper, shape_inference
from onnx.backend.test.loader import load_node_model_tests
from support.running import build

from opshift.converter.convert import convert_version
from opshift.inference.scope import Scope
from opshift.model.node import Node
from opshift.model.types import element_type_of, shape_of

Scoping = Callable[..., Scope]
Rewire = Callable[[int, str, str], list[NodeProto]]
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
X = np.ones((2, 3), np.float32)
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def node(
    op_type: str, inputs: Sequence[str], outputs: Sequence[str], domain: str = "", **stated: Any
) -> NodeProto:
    made: NodeProto = helper.make_node(op_type, inputs, outputs, domain=domain, **stated)
    return made


def scope(scoping: Scoping, *nodes: NodeProto, opset: int = 17, **weights: Any) -> Scope:
    """The facts about nodes that read `x`, float of 2 by 3, and `yes`, a boolean."""
    arrays = {name: np.asarray(each) for name, each in weights.items()}
    feeds = {"x": X, "yes": np.array(True)}
    model = build(nodes, feeds, [], {"": opset, "com.acme": 1}, initializers=arrays)
    return scoping(model.graph, model.opset_import)


Row = tuple[str, list[NodeProto], str | None, tuple[int | None, ...] | None]
ROWS: list[Row] = [
    ("the type of the data", [node("Relu", ["x"], ["y"])], "float", (2, 3)),
    ("a fixed type", [node("Shape", ["x"], ["y"])], "int64", (2,)),
    ("a type that an attribute names", [node("Cast", ["x"], ["y"], to=INT64)], "int64", (2, 3)),
    ("a type that an attribute could name", [node("EyeLike", ["x"], ["y"], dtype=INT64)], "int64", (2, 3)),
    ("an attribute left out, so the input's", [node("EyeLike", ["x"], ["y"])], "float", (2, 3)),
    (
        "a type that a tensor in an attribute has",
        [
            node("Shape", ["x"], ["s"]),
            node("ConstantOfShape", ["s"], ["y"], value=helper.make_tensor("", INT64, [1], [7])),
        ],
        "int64",
        (2, 3),
    ),
    (
        "a type that is left out in an attribute",
        [node("Shape", ["x"], ["s"]), node("ConstantOfShape", ["s"], ["y"])],
        "float",
        (2, 3),
    ),
    ("a second output's type", [node("TopK", ["x", "k"], ["v", "y"])], "int64", (2, 1)),
    ("a sequence", [node("SequenceConstruct", ["x", "x"], ["y"])], "seq(tensor(float))", None),
    (
        "an element of a sequence",
        [
            node("SplitToSequence", ["x"], ["s"]),
            node("Constant", [], ["i"], value_int=0),
            node("SequenceAt", ["s", "i"], ["y"]),
        ],
        "float",
        None,
    ),
    (
        "what an optional holds",
        [
            node("SequenceConstruct", ["x"], ["s"]),
            node("Optional", ["s"], ["o"]),
            node("OptionalGetElement", ["o"], ["y"]),
        ],
        "seq(tensor(float))",
        None,
    ),
    ("an empty sequence", [node("SequenceEmpty", [], ["y"], dtype=INT64)], "seq(tensor(int64))", None),
    ("an empty sequence of what is usual", [node("SequenceEmpty", [], ["y"])], "seq(tensor(float))", None),
    ("numpy's rule for shapes", [node("Add", ["x", "row"], ["y"])], "float", (4, 2, 3)),
    ("a node of a domain that nobody defined", [node("F", ["x"], ["y"], "com.acme")], None, None),
    ("a node of an operator that nobody knows", [node("Nonesuch", ["x"], ["y"])], None, None),
    ("a node that is not in its opset yet", [node("Gelu", ["x"], ["y"])], None, None),
    (
        "what follows from an unknown",
        [node("F", ["x"], ["f"], "com.acme"), node("Relu", ["f"], ["y"])],
        None,
        None,
    ),
    (
        "what follows from an unknown and does not care",
        [node("F", ["x"], ["f"], "com.acme"), node("Cast", ["f"], ["y"], to=BOOL)],
        "bool",
        None,
    ),
    ("a node without its inputs", [node("Add", [], ["y"])], None, None),
    ("a node that leaves its input out", [node("Relu", [""], ["y"])], None, None),
]


@pytest.mark.parametrize(
    ("nodes", "element_type", "shape"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_inferred_is(
    nodes: list[NodeProto],
    element_type: str | None,
    shape: tuple[int | None, ...] | None,
    scope_of: Scoping,
) -> None:
    found = scope(scope_of, *nodes, k=np.array([1]), row=np.ones((4, 1, 3), np.float32))
    assert (found.element_type("y"), found.shape("y")) == (element_type, shape)


def test_what_the_model_states_comes_first(scope_of: Scoping) -> None:
    model = build([node("F", ["x"], ["y"], "com.acme")], {"x": X}, [], {"": 17, "com.acme": 1})
    model.graph.value_info.append(helper.make_tensor_value_info("y", TensorProto.DOUBLE, ["n", 3]))
    found = scope_of(model.graph, model.opset_import)
    assert (found.element_type("y"), found.shape("y")) == ("double", (None, 3))


def test_an_input_of_unknown_shape_is_asked_for_at_any_time(scope_of: Scoping) -> None:
    """Also from within a branch, while the branch is looked at to tell what comes out of it."""
    nodes = [node("MaxPool", ["c"], ["v"], kernel_shape=[2, 2]), node("Identity", ["v"], ["t"])]
    body = helper.make_graph(nodes, "body", [], [helper.make_tensor_value_info("t", FLOAT, None)])
    nodes = [node("Cast", ["x"], ["c"], to=FLOAT)]
    nodes.append(node("If", ["yes"], ["y"], then_branch=body, else_branch=body))
    model = build(nodes, {"x": X, "yes": np.array(True)}, ["y"], 17)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    found = scope_of(model.graph, model.opset_import)
    within = found.child(model.graph.node[1].attribute[0].g)
    assert within.shape("t") == within.shape("v")
    assert (found.shape("c"), found.element_type("c")) == (None, "float")


def test_outputs_that_are_left_out_tell_nothing_of_those_that_are_not(scope_of: Scoping) -> None:
    """Not even in another model: the rank follows from the shape."""
    for output, expected in (("", None), ("y", 2), ("", None), ("y", 2)):
        model = build([node("Squeeze", ["x"], [output])], {"x": np.ones((1, 2, 3), np.float32)}, [], 11)
        found = scope_of(model.graph, model.opset_import)
        assert found.rank(output) == expected


def test_what_the_model_states_without_a_type_or_shape_is_inferred(scope_of: Scoping) -> None:
    model = build([node("Relu", ["x"], ["y"])], {"x": X}, [], 17)
    model.graph.value_info.add(name="y")
    found = scope_of(model.graph, model.opset_import)
    assert (found.element_type("y"), found.shape("y")) == ("float", (2, 3))


def test_the_opset_decides_which_operator_it_is(scope_of: Scoping) -> None:
    """The mask of Dropout had the data's type before 10, and is boolean since."""
    nodes = [node("Dropout", ["x"], ["y", "mask"])]
    assert scope(scope_of, *nodes, opset=9).element_type("mask") == "float"
    assert scope(scope_of, *nodes, opset=10).element_type("mask") == "bool"


# Long chains


def branches(read: str, made: str) -> dict[str, onnx.GraphProto]:
    """Two graphs that pass on a value from around them, and say nothing of its type."""
    return {
        name: helper.make_graph(
            [node("Identity", [read], [made + name[0]])], name, [], [onnx.ValueInfoProto(name=made + name[0])]
        )
        for name in ("then_branch", "else_branch")
    }


CHAINS: list[tuple[str, Rewire]] = [
    ("Relu", lambda i, a, b: [node("Relu", [a], [b])]),
    ("Add of one value and itself", lambda i, a, b: [node("Add", [a, a], [b])]),
    ("Sum of three", lambda i, a, b: [node("Sum", ["x", a, a], [b])]),
    ("EyeLike, whose type is its input's", lambda i, a, b: [node("EyeLike", [a], [b])]),
    (
        "Cast to and fro",
        lambda i, a, b: [node("Cast", [a], [b + "_"], to=INT64), node("Cast", [b + "_"], [b], to=FLOAT)],
    ),
    (
        "Reshape by a shape on the way",
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
    ("If, whose graphs read the one before", lambda i, a, b: [node("If", ["yes"], [b], **branches(a, b))]),
]


@pytest.mark.parametrize("step", [row[1] for row in CHAINS], ids=[row[0] for row in CHAINS])
def test_a_chain_of_5000_is_followed_to_its_end(step: Rewire, scope_of: Scoping) -> None:
    nodes = [each for i in range(5_000) for each in step(i, f"v{i - 1}" if i else "x", f"v{i}")]
    found = scope(scope_of, *nodes)
    assert (found.element_type("v4999"), found.shape("v4999")) == ("float", (2, 3))


@pytest.mark.parametrize("step", [row[1] for row in CHAINS[:4]], ids=[row[0] for row in CHAINS[:4]])
def test_the_end_of_a_chain_is_asked_for_in_a_conversion(step: Rewire) -> None:
    """Clip asks for the type, Softmax for the rank."""
    nodes = [each for i in range(2_000) for each in step(i, f"v{i - 1}" if i else "x", f"v{i}")]
    nodes += [node("Clip", ["v1999"], ["c"], min=0.5), node("Softmax", ["c"], ["y"], axis=-1)]
    result = convert_version(build(nodes, {"x": X}, ["y"], 10), 13)
    assert [each.op_type for each in result.graph.node][-2:] == ["Clip", "Softmax"]


def test_a_value_is_inferred_once(scope_of: Scoping, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it is read: a ladder where every value is read twice has 2 ** 40 ways through it."""
    nodes = [node("Add", [f"v{i - 1}" if i else "x"] * 2, [f"v{i}"]) for i in range(40)]
    found = scope(scope_of, *nodes)
    assert found.element_type("v39") == "float"
    assert found.shape("v39") == (2, 3)


# Graphs within, and functions


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


def test_what_comes_out_of_a_loop_has_the_types_within(scope_of: Scoping) -> None:
    found = scope(scope_of, loop())
    assert (found.element_type("y"), found.element_type("parts")) == ("float", "int64")
    assert found.shape("parts") == (None, 2)


def test_what_comes_out_of_a_branch_has_the_type_within(scope_of: Scoping) -> None:
    found = scope(
        scope_of, node("Cast", ["x"], ["i"], to=INT64), node("If", ["yes"], ["y"], **branches("i", "b"))
    )
    assert (found.element_type("y"), found.shape("y")) == ("int64", (2, 3))


def test_within_a_graph_the_types_around_it_are_known(scope_of: Scoping) -> None:
    outer = scope(scope_of, node("Cast", ["x"], ["i"], to=INT64))
    inner = onnx.GraphProto(node=[node("Neg", ["i"], ["y"])])
    found = scope_of(inner, [helper.make_opsetid("", 17)], outer)
    assert (found.element_type("y"), found.shape("y")) == ("int64", (2, 3))


def test_a_value_of_its_own_hides_the_one_around_it(scope_of: Scoping) -> None:
    outer = scope(scope_of)
    inner = onnx.GraphProto(node=[node("F", [], ["y"], "com.acme"), node("Neg", ["y"], ["x"])])
    assert scope_of(inner, [helper.make_opsetid("", 17)], outer).element_type("x") is None


def test_in_a_function_types_follow_from_what_it_states(scope_of: Scoping) -> None:
    imports = [helper.make_opsetid("", 17)]
    nodes = [node("Relu", ["a"], ["r"]), node("Add", ["r", "c"], ["b"]), node("Shape", ["b"], ["s"])]
    function = helper.make_function("local", "F", ["a", "c"], ["b", "s"], nodes, imports)
    assert scope_of(function, imports).element_type("b") is None
    assert scope_of(function, imports).element_type("s") == "int64"
    function.value_info.append(helper.make_tensor_value_info("a", FLOAT, [5]))
    assert scope_of(function, imports).element_type("b") == "float"
    assert scope_of(function, imports).shape("r") == (5,)


def test_what_the_call_of_a_function_decides_is_not_known(scope_of: Scoping) -> None:
    imports = [helper.make_opsetid("", 17)]
    cast = node("Cast", ["a"], ["b"])
    cast.attribute.add(name="to", ref_attr_name="given", type=AttributeProto.INT)
    function = helper.make_function("local", "F", ["a"], ["b"], [cast], imports)
    assert scope_of(function, imports).element_type("b") is None


# Nodes that adapters emitted


def test_emitted_values_are_inferred_as_others_are(scope_of: Scoping) -> None:
    found = scope(scope_of)
    name, constant = found.fresh("shape"), found.fresh("cast")
    found.add_emitted(Node("Shape", ["x"], [name], {}), 13)
    found.add_emitted(Node("Cast", [name], [constant], {"to": FLOAT}), 13)
    assert (found.element_type(name), found.shape(name)) == ("int64", (2,))
    assert (found.element_type(constant), found.shape(constant)) == ("float", (2,))


# Against ONNX


def differences(model: onnx.ModelProto, scoping: Scoping) -> Iterator[str]:
    """Where ONNX's inference and ours both know something, and it is not the same."""
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    del bare.graph.value_info[:]
    for output in bare.graph.output:
        output.type.Clear()
    inferred = shape_inference.infer_shapes(bare, data_prop=True).graph
    del bare.graph.output[:]
    ours = scoping(bare.graph, bare.opset_import)
    for value in (*inferred.value_info, *inferred.output):
        theirs = element_type_of(value.type), shape_of(value.type)
        found = ours.element_type(value.name), ours.shape(value.name)
        if not _agree(theirs, found):
            yield f"{value.name}: {theirs} is here {found}"


def _agree(theirs: tuple[Any, Any], ours: tuple[Any, Any]) -> bool:
    if None not in (theirs[0], ours[0]) and theirs[0] != ours[0]:
        return False
    if None in (theirs[1], ours[1]):
        return True
    pairs = zip(theirs[1], ours[1], strict=False)
    return len(theirs[1]) == len(ours[1]) and all(None in pair or pair[0] == pair[1] for pair in pairs)


@pytest.mark.parametrize("name", sorted(path.stem for path in LIGHT.glob("*.onnx")))
def test_light_models_have_the_types_and_shapes_that_onnx_infers(name: str, scope_of: Scoping) -> None:
    model = onnx.load(LIGHT / f"{name}.onnx")
    assert list(differences(model, scope_of)) == []


def test_the_types_and_ranks_of_a_light_model_are_known_in_full(scope_of: Scoping) -> None:
    model = onnx.load(LIGHT / "light_squeezenet.onnx")
    found = scope_of(model.graph, model.opset_import)
    for each in model.graph.node:
        for output in each.output:
            assert found.element_type(output) == "float"
            assert found.shape(output) is not None


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_node_cases_have_the_types_and_shapes_that_onnx_infers(scope_of: Scoping) -> None:
    """Every eighth of ONNX's operator cases, each at the newest version of its operator."""
    models = [case.model for case in load_node_model_tests() if case.model is not None][::8]
    assert len(models) > 100
    wrong = {each.graph.name: list(differences(each, scope_of)) for each in models}
    assert {name: found for name, found in wrong.items() if found} == {}
