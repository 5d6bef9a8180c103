"""What functions have in newer IR versions, and what takes its place in older ones."""

from __future__ import annotations

import onnx
import pytest
from onnx import helper
from support.ir_models import MODELS, X, function, node, plain
from support.running import assert_equal, op_types, run

from opshift.converter.convert import convert_version
from opshift.converter.errors import ConversionRefused


def test_overloads_get_names_of_their_own_and_their_calls_too() -> None:
    result = convert_version(MODELS["overloads"](), ir_version=9)
    assert [each.name for each in result.functions] == ["Leak", "Leak_double"]
    assert op_types(result) == ["Leak", "Leak_double"]


def test_a_name_that_is_taken_is_not_taken_again() -> None:
    model = MODELS["overloads"]()
    model.functions.append(function("Leak_double", attributes=["alpha"]))
    result = convert_version(model, ir_version=9)
    assert [each.name for each in result.functions] == ["Leak", "Leak_double_", "Leak_double"]
    ort = convert_version(MODELS["overloads"](), ir_version=10)
    assert_equal(run(result, {"x": X}), run(ort, {"x": X}))


def test_types_of_values_go_to_the_main_graph_under_both_names() -> None:
    result = convert_version(MODELS["function_values"](), ir_version=9)
    assert [each.name for each in result.graph.value_info] == ["local::Leak/b"]
    assert not result.functions[0].value_info


def test_calls_state_the_defaults_that_they_left_out() -> None:
    result = convert_version(MODELS["attribute_defaults"](), ir_version=8)
    stated = [helper.get_attribute_value(each.attribute[0]) for each in result.graph.node]
    assert stated == [0.5, 0.25]
    assert list(result.functions[0].attribute) == ["alpha"]
    assert not result.functions[0].attribute_proto


def passing_on(**more: object) -> onnx.ModelProto:
    """A function that passes its slope on to one with a default."""
    model = MODELS["attribute_defaults"]()
    call = node("Leak", ["a"], ["b"], "local")
    call.attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]
    model.functions.append(helper.make_function("local", "Outer", ["a"], ["b"], [call], imports, **more))
    model.graph.node[0].op_type = "Outer"
    return model


def test_a_default_that_counts_for_some_calls_only_is_refused() -> None:
    with pytest.raises(
        ConversionRefused, match="calls of the enclosing function that omit its attribute"
    ) as caught:
        convert_version(passing_on(attributes=["slope"]), ir_version=8)
    assert "function local.Outer, node Leak -> b" in str(caught.value.place)


def test_a_default_that_passes_a_default_on_is_stated() -> None:
    model = passing_on(attribute_protos=[helper.make_attribute("slope", 0.125)])
    result = convert_version(model, ir_version=8)
    onnx.checker.check_model(result)
    assert_equal(run(result, {"x": X}), run(convert_version(model, ir_version=9), {"x": X}))


@pytest.mark.parametrize("feature", ["attribute_defaults", "overloads", "function_values"])
def test_inlined_functions_take_what_they_have_with_them(feature: str) -> None:
    model = MODELS[feature]()
    result = convert_version(model, ir_version=7)
    assert not result.functions
    assert not result.metadata_props
    assert not [each.name for each in result.graph.value_info if "::" in each.name]
    onnx.checker.check_model(result)
    assert_equal(run(result, {"x": X}), run(convert_version(model, ir_version=10), {"x": X}))


def test_what_only_functions_that_are_inlined_have_stands_in_no_way() -> None:
    model = passing_on(attributes=["slope"])
    result = convert_version(model, ir_version=7)
    assert op_types(result) == ["LeakyRelu", "LeakyRelu"]
    assert_equal(run(result, {"x": X}), run(convert_version(model, ir_version=10), {"x": X}))


def test_a_function_of_another_opset_keeps_its_version_where_it_cannot_be_inlined() -> None:
    squeeze = node("Squeeze", ["a"], ["b"], axes=[0])
    old = helper.make_function("local", "Old", ["a"], ["b"], [squeeze], [helper.make_opsetid("", 11)])
    nodes = [node("Unsqueeze", ["x", "axes"], ["u"]), node("Old", ["u"], ["y"], "local")]
    weights = {"axes": onnx.numpy_helper.to_array(helper.make_tensor("axes", 7, [1], [0]))}
    model = plain(nodes=nodes, initializers=weights)
    model.functions.append(old)
    with pytest.raises(ConversionRefused, match=r"opset 11 of ai\.onnx, the graph for opset 21"):
        convert_version(model, ir_version=7)
    result = convert_version(model, 14)
    assert result.ir_version == 7
    assert_equal(run(result, {"x": X}), [X])
