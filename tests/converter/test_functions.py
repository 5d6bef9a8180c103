"""Model-local functions: own opset imports, no initializers, and attributes that the caller gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import pytest
from onnx import AttributeProto, NodeProto, TensorProto, helper
from support.calling import FEEDS, calling_model, function, model, node, with_references
from support.running import assert_equal, build, opset_of, run, run_reference

from opshift.converter.convert import convert_version, plan_version
from opshift.converter.errors import ConversionRefused
from opshift.model.errors import InvalidModel


def squeezing() -> list[NodeProto]:
    return [node("Squeeze", ["a"], ["s"], axes=[0]), node("Softmax", ["s"], ["b"], axis=0)]


def nested() -> onnx.ModelProto:
    """A function that calls a function, and changes itself."""
    inner = function("Inner", squeezing())
    outer = function(
        "Outer",
        [
            node("LogSoftmax", ["a"], ["soft"], axis=1),
            node("Inner", ["soft"], ["i"], "local"),
            node("Unsqueeze", ["i"], ["b"], axes=[1]),
        ],
        {"": 11, "local": 1},
    )
    nodes = [node("Outer", ["x"], ["o"], "local"), node("ReduceSum", ["o"], ["y"], axes=[1])]
    return model(nodes, [outer, inner])


def named_as_an_operator() -> onnx.ModelProto:
    """local.Softmax is a function, the Softmax within is the operator."""
    return calling_model(function("Softmax", [node("Softmax", ["a"], ["b"], axis=1)]))


def twice() -> onnx.ModelProto:
    nodes = [node("Cut", ["x"], ["c"], "local"), node("Unsqueeze", ["c"], ["d"], axes=[0])]
    return model([*nodes, node("Cut", ["d"], ["y"], "local")], [function("Cut", squeezing())])


def with_graph() -> onnx.ModelProto:
    """If in a function, whose branches are converted too."""
    bodies = {
        name: helper.make_graph(
            [node("Softmax", ["a"], [output], axis=axis)],
            name,
            [],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        )
        for name, output, axis in (("then_branch", "t", 1), ("else_branch", "e", 2))
    }
    nodes = [
        node("ReduceSum", ["a"], ["sum"], keepdims=0),
        node("Constant", [], ["zero"], value=helper.make_tensor("zero", TensorProto.FLOAT, [], [0.5])),
        node("Greater", ["sum", "zero"], ["yes"]),
        node("If", ["yes"], ["b"], **bodies),
    ]
    return calling_model(function("Choose", nodes))


@pytest.mark.parametrize("target", [13, 18, 21])
@pytest.mark.parametrize(
    "make",
    [lambda: calling_model(function("Cut", squeezing())), nested, named_as_an_operator, twice, with_graph],
    ids=[
        "a function",
        "a function that calls a function",
        "a function named as an operator",
        "a function called twice",
        "a function with a graph within",
    ],
)
def test_numbers_stay_the_same_with(make: Callable[[], onnx.ModelProto], target: int) -> None:
    before = make()
    after = convert_version(before, target)
    assert {opset_of(each) for each in (after, *after.functions)} == {target}
    assert_equal(run(after, FEEDS), run(before, FEEDS))


@pytest.mark.parametrize(
    ("of_function", "of_model", "target"),
    [(11, 18, 18), (11, 13, 18), (13, 11, 13), (18, 13, 15), (13, 13, 13)],
    ids=[
        "only the function is converted",
        "both go up, the function further",
        "only the model is converted",
        "the model goes up, the function down",
        "neither is",
    ],
)
def test_a_function_is_converted_from_its_own_opset(of_function: int, of_model: int, target: int) -> None:
    """Onnxruntime reads a function by the model's opset, so that the reference has to run what came in."""
    axes: dict[str, Any] = {"axes": [0]} if of_function < 13 else {}
    constant = node("Constant", [], ["axes"], value=helper.make_tensor("axes", TensorProto.INT64, [1], [0]))
    squeeze = node("Squeeze", ["a", *([] if axes else ["axes"])], ["b"], **axes)
    body = function("Cut", [*([] if axes else [constant]), squeeze], of_function)
    before = calling_model(body, of_model)
    after = convert_version(before, target)
    assert {opset_of(each) for each in (after, *after.functions)} == {target}
    assert_equal(run(after, FEEDS), run_reference(before, FEEDS))


def test_a_function_without_opset_imports_has_those_of_its_model() -> None:
    before = calling_model(function("Cut", squeezing()))
    del before.functions[0].opset_import[:]
    after = convert_version(before, 13)
    assert len(after.functions[0].opset_import) == 0
    assert len(next(each for each in after.functions[0].node if each.op_type == "Squeeze").input) == 2


def test_constants_are_nodes_of_the_function() -> None:
    after = convert_version(calling_model(function("Cut", squeezing())), 13)
    assert [each.op_type for each in after.functions[0].node][:2] == ["Constant", "Squeeze"]
    assert after.functions[0].node[1].input[1] == after.functions[0].node[0].output[0]
    assert len(after.graph.initializer) == 0


def test_new_names_are_in_no_other_function() -> None:
    after = convert_version(nested(), 13)
    made = [name for each in (after.graph, *after.functions) for one in each.node for name in one.output]
    new = [name for name in made if name.startswith(("const", "shape", "flatten"))]
    assert len(new) == len(set(new)) > 3


def test_what_stays_is_as_it_was() -> None:
    body = function("Plain", [node("Relu", ["a"], ["b"], name="relu", doc_string="kept")])
    body.doc_string, body.overload = "of the function", "first"
    body.metadata_props.add(key="k", value="v")
    after = convert_version(calling_model(body), 13).functions[0]
    body.opset_import[0].version = 13
    assert after == body


# Attributes that the call gives


def test_a_reference_is_kept_on_a_node_that_stays() -> None:
    leaky = with_references(node("LeakyRelu", ["a"], ["b"]), alpha=("slope", AttributeProto.FLOAT))
    before = calling_model(function("Leak", [leaky], attributes=["slope"]), slope=0.25)
    after = convert_version(before, 13)
    assert after.functions[0].node[0] == leaky
    assert_equal(run(after, FEEDS), run(before, FEEDS))


def test_a_reference_is_kept_on_a_node_whose_other_attributes_change() -> None:
    reduce = with_references(
        node("ReduceMean", ["a"], ["b"], axes=[1]), keepdims=("keep", AttributeProto.INT)
    )
    before = calling_model(function("Mean", [reduce], 13, attributes=["keep"]), 13, keep=0)
    after = convert_version(before, 18)
    assert [each.name for each in after.functions[0].node[1].attribute] == ["keepdims"]
    assert after.functions[0].node[1].attribute[0].ref_attr_name == "keep"
    assert_equal(run(after, FEEDS), run(before, FEEDS))


def test_a_default_that_the_function_states_is_kept() -> None:
    leaky = with_references(node("LeakyRelu", ["a"], ["b"]), alpha=("slope", AttributeProto.FLOAT))
    body = function("Leak", [leaky])
    body.attribute_proto.append(helper.make_attribute("slope", 0.5))
    before = calling_model(body)
    after = convert_version(before, 13)
    assert after.functions[0].attribute_proto == before.functions[0].attribute_proto
    assert_equal(run(after, FEEDS), run(before, FEEDS))


# What a function sees


def test_a_function_does_not_see_the_graph_that_calls_it() -> None:
    before = calling_model(function("Peek", [node("Add", ["a", "x"], ["b"])]))
    with pytest.raises(InvalidModel) as caught:
        convert_version(before, 13)
    assert "'x' is not produced by any node" in caught.value.reason
    assert str(caught.value.place).startswith("function local.Peek")


def test_a_type_in_a_function_is_known_where_it_is_stated() -> None:
    clip = node("Clip", ["a"], ["b"], min=0.5)
    body = function("Cut", [clip], 10)
    body.value_info.append(helper.make_tensor_value_info("a", TensorProto.FLOAT, None))
    before = calling_model(body, 10)
    assert_equal(run(convert_version(before, 13), FEEDS), run(before, FEEDS))


def test_functions_that_nobody_calls_are_converted() -> None:
    cut = [node("Squeeze", ["a"], ["b"], axes=[0])]
    before = model([node("Relu", ["x"], ["y"])], [function("Cut", cut)])
    assert plan_version(before, 13).functions[0].changes


@pytest.mark.parametrize("is_called", [False, True], ids=["by no node", "by a function that no node calls"])
def test_a_refusal_in_a_function_that_nothing_calls_says_so(is_called: bool) -> None:
    """Of its input nothing is known, and there is no call to specialise it for."""
    functions = [function("Soft", [node("Softmax", ["a"], ["b"], axis=0)], 13)]
    if is_called:
        functions.append(function("Outer", [node("Soft", ["a"], ["b"], "local")], 13))
    before = model([node("Relu", ["x"], ["y"])], functions, 13)
    with pytest.raises(ConversionRefused) as caught:
        convert_version(before, 11)
    (refusal,) = caught.value.refusals
    assert refusal.place == "function local.Soft, node Softmax -> b"
    assert refusal.reason.endswith("; nothing calls the function")
    assert refusal.remedy == "remove the function"


def test_all_refusals_of_all_functions_are_told_at_once() -> None:
    dropping = [node("Dropout", ["a"], ["b"], name="drop", is_test=0)]
    functions = [function(name, dropping, 6) for name in ("First", "Second")]
    with pytest.raises(ConversionRefused) as caught:
        convert_version(model([node("First", ["x"], ["y"], "local")], functions, 6), 13)
    assert [each.place for each in caught.value.refusals] == [
        "function local.First, node 'drop'",
        "function local.Second, node 'drop'",
    ]


def test_a_function_imports_the_domain_of_its_new_nodes() -> None:
    """LabelEncoder-1 becomes nodes of the default domain or stays; either way every domain is imported."""
    body = function(
        "Scale", [node("Scaler", ["a"], ["b"], "ai.onnx.ml", offset=[0.0], scale=[2.0])], {"ai.onnx.ml": 1}
    )
    before = build(
        [node("Scale", ["x"], ["y"], "local")], FEEDS, ["y"], {"local": 1, "ai.onnx.ml": 1, "": 11}
    )
    before.functions.append(body)
    after = convert_version(before, {"ai.onnx.ml": 3})
    used = {each.domain for each in after.functions[0].node}
    assert used <= {each.domain for each in after.functions[0].opset_import}
    assert opset_of(after.functions[0], "ai.onnx.ml") == 3
