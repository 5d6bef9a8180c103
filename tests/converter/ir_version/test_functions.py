"""Function features of newer IR versions, and their equivalents in older versions."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from support.execution import Array, assert_equal, op_types, run
from support.ir_models import MODELS, X, function, node, plain_model

from opshift.converter.convert import convert_version
from opshift.converter.refusals import ConversionRefused
from opshift.registry.registry import default_registry

ACME = Path(__file__).parents[2] / "support" / "acme"


def test_renames_overloads_and_their_calls() -> None:
    result = convert_version(MODELS["overloads"](), ir_version=9)
    assert [each.name for each in result.functions] == ["Leak", "Leak_double"]
    assert op_types(result) == ["Leak", "Leak_double"]


def test_overload_names_avoid_existing_functions() -> None:
    model = MODELS["overloads"]()
    model.functions.append(function("Leak_double", attributes=["alpha"]))
    result = convert_version(model, ir_version=9)
    assert [each.name for each in result.functions] == ["Leak", "Leak_double_", "Leak_double"]
    expected = convert_version(MODELS["overloads"](), ir_version=10)
    assert_equal(run(result, {"x": X}), run(expected, {"x": X}))


def with_operator(name: str, *, is_nested: bool) -> onnx.ModelProto:
    """Build a model that calls an overloaded function and an operator of the same domain."""
    model = MODELS["overloads"]()
    operator = node(name, ["h"], ["t"], "local")
    output = helper.make_tensor_value_info("t", onnx.TensorProto.FLOAT, [2, 3])
    branch = helper.make_graph([operator], "branch", [], [output])
    nodes = [operator, node("Identity", ["t"], ["y"])]
    if is_nested:
        nodes = [node("If", ["yes"], ["y"], then_branch=branch, else_branch=branch)]
        model.graph.initializer.append(helper.make_tensor("yes", onnx.TensorProto.BOOL, [], [True]))
    del model.graph.node[0]
    model.graph.node[0].input[0], model.graph.node[0].output[0] = "x", "h"
    model.graph.node.extend(nodes)
    return model


class Leak_double(OpRun):  # type: ignore[misc]  # noqa: N801 -- the name of the class is that of the operator
    """Operator with the name that the overload `double` of the function `Leak` would get."""

    op_domain = "local"

    def _run(self, x: Array) -> tuple[Array]:
        return (x + 10,)


@pytest.mark.parametrize("is_nested", [False, True], ids=["main graph", "subgraph"])
def test_overload_names_avoid_operators(is_nested: bool) -> None:
    result = convert_version(with_operator("Leak_double", is_nested=is_nested), ir_version=9)
    assert [each.name for each in result.functions] == ["Leak", "Leak_double_"]
    (found,) = ReferenceEvaluator(result, new_ops=[Leak_double]).run(None, {"x": X})
    assert_equal([found], [2 * X + 10])


def test_overload_names_avoid_operators_of_the_registry(tmp_path: Path) -> None:
    """Later nodes with the name of a defined operator should not call the function."""
    definition = (ACME / "com.acme" / "Scale.yaml").read_text("utf-8")
    (tmp_path / "local").mkdir()
    text = definition.replace("com.acme", "local").replace("name: Scale", "name: Leak_double")
    (tmp_path / "local" / "Leak_double.yaml").write_text(text, "utf-8")
    registry = default_registry().with_folder(tmp_path)
    result = convert_version(MODELS["overloads"](), ir_version=9, registry=registry)
    assert [each.name for each in result.functions] == ["Leak", "Leak_double_"]


def test_moves_value_info_to_main_graph() -> None:
    result = convert_version(MODELS["function_values"](), ir_version=9)
    assert [each.name for each in result.graph.value_info] == ["local::Leak/b"]
    assert not result.functions[0].value_info


def test_writes_default_attributes_into_calls() -> None:
    result = convert_version(MODELS["attribute_defaults"](), ir_version=8)
    slopes = [helper.get_attribute_value(each.attribute[0]) for each in result.graph.node]
    assert slopes == [0.5, 0.25]
    assert list(result.functions[0].attribute) == ["alpha"]
    assert not result.functions[0].attribute_proto


def test_refuses_to_write_too_many_defaults() -> None:
    model = MODELS["attribute_defaults"]()
    defaults = [helper.make_attribute(f"unused_{number}", 1) for number in range(400)]
    model.functions[0].attribute_proto.extend(defaults)
    calls = [node("Leak", ["x"], [f"y{number}"], "local") for number in range(300)]
    model.graph.node.extend(calls)
    with pytest.raises(ConversionRefused, match="the calls omit too many attributes with defaults"):
        convert_version(model, ir_version=8)
    assert len(convert_version(model, 18).functions[0].attribute_proto) == 401


def nested_call(**options: object) -> onnx.ModelProto:
    """Build a model with a function that passes its slope to a function with a default."""
    model = MODELS["attribute_defaults"]()
    call = node("Leak", ["a"], ["b"], "local")
    call.attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]
    model.functions.append(helper.make_function("local", "Outer", ["a"], ["b"], [call], imports, **options))
    model.graph.node[0].op_type = "Outer"
    return model


def test_refuses_default_that_depends_on_outer_call() -> None:
    with pytest.raises(
        ConversionRefused, match="calls of the enclosing function that omit its attribute"
    ) as caught:
        convert_version(nested_call(attributes=["slope"]), ir_version=8)
    assert "function local.Outer, node Leak -> b" in str(caught.value.place)


def test_writes_default_passed_through_functions() -> None:
    model = nested_call(attribute_protos=[helper.make_attribute("slope", 0.125)])
    result = convert_version(model, ir_version=8)
    onnx.checker.check_model(result)
    assert_equal(run(result, {"x": X}), run(convert_version(model, ir_version=9), {"x": X}))


@pytest.mark.parametrize("feature", ["attribute_defaults", "overloads", "function_values"])
def test_inlining_leaves_no_function_features(feature: str) -> None:
    model = MODELS[feature]()
    result = convert_version(model, ir_version=7)
    assert not result.functions
    assert not result.metadata_props
    assert not [each.name for each in result.graph.value_info if "::" in each.name]
    onnx.checker.check_model(result)
    assert_equal(run(result, {"x": X}), run(convert_version(model, ir_version=10), {"x": X}))


def test_inlines_default_that_depends_on_outer_call() -> None:
    model = nested_call(attributes=["slope"])
    result = convert_version(model, ir_version=7)
    assert op_types(result) == ["LeakyRelu", "LeakyRelu"]
    assert_equal(run(result, {"x": X}), run(convert_version(model, ir_version=10), {"x": X}))


def test_inlines_function_only_if_opsets_agree() -> None:
    squeeze = node("Squeeze", ["a"], ["b"], axes=[0])
    old = helper.make_function("local", "Old", ["a"], ["b"], [squeeze], [helper.make_opsetid("", 11)])
    nodes = [node("Unsqueeze", ["x", "axes"], ["u"]), node("Old", ["u"], ["y"], "local")]
    weights = {"axes": onnx.numpy_helper.to_array(helper.make_tensor("axes", 7, [1], [0]))}
    model = plain_model(nodes=nodes, initializers=weights)
    model.functions.append(old)
    with pytest.raises(ConversionRefused, match=r"opset 11 of ai\.onnx, the graph for opset 21"):
        convert_version(model, ir_version=7)
    result = convert_version(model, 14)
    assert result.ir_version == 7
    assert_equal(run(result, {"x": X}), [X])


@pytest.mark.parametrize("name", ["A / B", "Outer / Leak.body", "a, node b"])
def test_refuses_default_in_functions_with_any_name(name: str) -> None:
    model = nested_call(attributes=["slope"])
    model.functions[-1].name = model.graph.node[0].op_type = name
    with pytest.raises(ConversionRefused, match="calls of the enclosing function that omit its attribute"):
        convert_version(model, ir_version=8)
