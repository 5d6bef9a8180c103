"""Model-local functions: their own opset imports, no initializers, and attribute references."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import pytest
from onnx import AttributeProto, NodeProto, TensorProto, helper
from support.calls import FEEDS, calling_model, function, model, node, with_references
from support.execution import assert_equal, build, opset_of, run, run_reference

from opshift.converter.convert import convert_version, plan_version
from opshift.converter.refusals import ConversionRefused
from opshift.model.errors import InvalidModel


def squeeze_and_softmax() -> list[NodeProto]:
    return [node("Squeeze", ["a"], ["s"], axes=[0]), node("Softmax", ["s"], ["b"], axis=0)]


def nested_functions() -> onnx.ModelProto:
    """Return a model with a function that calls a function; both change."""
    inner = function("Inner", squeeze_and_softmax())
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


def function_named_softmax() -> onnx.ModelProto:
    """local.Softmax is a function; the Softmax in its body is the operator."""
    return calling_model(function("Softmax", [node("Softmax", ["a"], ["b"], axis=1)]))


def called_twice() -> onnx.ModelProto:
    nodes = [node("Cut", ["x"], ["c"], "local"), node("Unsqueeze", ["c"], ["d"], axes=[0])]
    return model([*nodes, node("Cut", ["d"], ["y"], "local")], [function("Cut", squeeze_and_softmax())])


def function_with_branches() -> onnx.ModelProto:
    """Return a model with a function that contains an If whose branches change."""
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
    [
        lambda: calling_model(function("Cut", squeeze_and_softmax())),
        nested_functions,
        function_named_softmax,
        called_twice,
        function_with_branches,
    ],
    ids=[
        "one function",
        "nested functions",
        "function with the name of an operator",
        "function called twice",
        "function with subgraphs",
    ],
)
def test_preserves_outputs(make: Callable[[], onnx.ModelProto], target: int) -> None:
    before = make()
    after = convert_version(before, target)
    assert {opset_of(each) for each in (after, *after.functions)} == {target}
    assert_equal(run(after, FEEDS), run(before, FEEDS))


@pytest.mark.parametrize(
    ("function_opset", "model_opset", "target"),
    [(11, 18, 18), (11, 13, 18), (13, 11, 13), (18, 13, 15), (13, 13, 13)],
    ids=[
        "only the function is converted",
        "both are upgraded, the function further",
        "only the model is converted",
        "the model is upgraded, the function downgraded",
        "neither is converted",
    ],
)
def test_converts_functions_from_their_own_opset(function_opset: int, model_opset: int, target: int) -> None:
    """The reference runs the original, because onnxruntime uses the opset of the model for its functions."""
    axes: dict[str, Any] = {"axes": [0]} if function_opset < 13 else {}
    constant = node("Constant", [], ["axes"], value=helper.make_tensor("axes", TensorProto.INT64, [1], [0]))
    squeeze = node("Squeeze", ["a", *([] if axes else ["axes"])], ["b"], **axes)
    body = function("Cut", [*([] if axes else [constant]), squeeze], function_opset)
    before = calling_model(body, model_opset)
    after = convert_version(before, target)
    assert {opset_of(each) for each in (after, *after.functions)} == {target}
    assert_equal(run(after, FEEDS), run_reference(before, FEEDS))


def test_function_without_imports_uses_those_of_the_model() -> None:
    before = calling_model(function("Cut", squeeze_and_softmax()))
    del before.functions[0].opset_import[:]
    after = convert_version(before, 13)
    assert len(after.functions[0].opset_import) == 0
    assert len(next(each for each in after.functions[0].node if each.op_type == "Squeeze").input) == 2


def test_adds_constants_as_nodes_of_the_function() -> None:
    after = convert_version(calling_model(function("Cut", squeeze_and_softmax())), 13)
    assert [each.op_type for each in after.functions[0].node][:2] == ["Constant", "Squeeze"]
    assert after.functions[0].node[1].input[1] == after.functions[0].node[0].output[0]
    assert len(after.graph.initializer) == 0


def test_new_names_are_unique_across_functions() -> None:
    after = convert_version(nested_functions(), 13)
    outputs = [name for each in (after.graph, *after.functions) for one in each.node for name in one.output]
    fresh = [name for name in outputs if name.startswith(("const", "shape", "flatten"))]
    assert len(fresh) == len(set(fresh)) > 3


def test_function_without_rewrites_changes_only_its_import() -> None:
    body = function("Plain", [node("Relu", ["a"], ["b"], name="relu", doc_string="kept")])
    body.doc_string, body.overload = "of the function", "first"
    body.metadata_props.add(key="k", value="v")
    after = convert_version(calling_model(body), 13).functions[0]
    body.opset_import[0].version = 13
    assert after == body


# Attribute references


def test_keeps_references_on_kept_nodes() -> None:
    leaky = with_references(node("LeakyRelu", ["a"], ["b"]), alpha=("slope", AttributeProto.FLOAT))
    before = calling_model(function("Leak", [leaky], attributes=["slope"]), slope=0.25)
    after = convert_version(before, 13)
    assert after.functions[0].node[0] == leaky
    assert_equal(run(after, FEEDS), run(before, FEEDS))


def test_keeps_references_on_rewritten_nodes() -> None:
    reduce = with_references(
        node("ReduceMean", ["a"], ["b"], axes=[1]), keepdims=("keep", AttributeProto.INT)
    )
    before = calling_model(function("Mean", [reduce], 13, attributes=["keep"]), 13, keep=0)
    after = convert_version(before, 18)
    assert [each.name for each in after.functions[0].node[1].attribute] == ["keepdims"]
    assert after.functions[0].node[1].attribute[0].ref_attr_name == "keep"
    assert_equal(run(after, FEEDS), run(before, FEEDS))


def test_keeps_attribute_defaults() -> None:
    leaky = with_references(node("LeakyRelu", ["a"], ["b"]), alpha=("slope", AttributeProto.FLOAT))
    body = function("Leak", [leaky])
    body.attribute_proto.append(helper.make_attribute("slope", 0.5))
    before = calling_model(body)
    after = convert_version(before, 13)
    assert after.functions[0].attribute_proto == before.functions[0].attribute_proto
    assert_equal(run(after, FEEDS), run(before, FEEDS))


# Scope of a function


def test_function_cannot_read_values_of_the_caller() -> None:
    before = calling_model(function("Peek", [node("Add", ["a", "x"], ["b"])]))
    with pytest.raises(InvalidModel) as caught:
        convert_version(before, 13)
    assert "'x' is not produced by any node" in caught.value.reason
    assert str(caught.value.place).startswith("function local.Peek")


def test_uses_value_info_of_functions() -> None:
    clip = node("Clip", ["a"], ["b"], min=0.5)
    body = function("Cut", [clip], 10)
    body.value_info.append(helper.make_tensor_value_info("a", TensorProto.FLOAT, None))
    before = calling_model(body, 10)
    assert_equal(run(convert_version(before, 13), FEEDS), run(before, FEEDS))


def test_converts_uncalled_functions() -> None:
    cut = [node("Squeeze", ["a"], ["b"], axes=[0])]
    before = model([node("Relu", ["x"], ["y"])], [function("Cut", cut)])
    assert plan_version(before, 13).functions[0].changes


@pytest.mark.parametrize("is_called", [False, True], ids=["without calls", "called by an uncalled function"])
def test_refusal_in_an_uncalled_function_says_so(is_called: bool) -> None:
    """Its input is unknown, and there is no call to specialize it for."""
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


def test_reports_refusals_of_all_functions_together() -> None:
    dropping = [node("Dropout", ["a"], ["b"], name="drop", is_test=0)]
    functions = [function(name, dropping, 6) for name in ("First", "Second")]
    with pytest.raises(ConversionRefused) as caught:
        convert_version(model([node("First", ["x"], ["y"], "local")], functions, 6), 13)
    assert [each.place for each in caught.value.refusals] == [
        "function local.First, node 'drop'",
        "function local.Second, node 'drop'",
    ]


def test_function_imports_the_domains_of_its_nodes() -> None:
    """The function imports every domain that its nodes use, whether or not Scaler is rewritten."""
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
