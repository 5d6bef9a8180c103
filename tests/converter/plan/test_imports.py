"""Opset imports after a conversion."""

from __future__ import annotations

import onnx
import pytest
from onnx import helper, parser
from support.execution import assert_equal, build, run
from support.tree_ensembles import ML, data, forest_node

import opshift
from random_graphs.forests import Forest, votes

UNUSED = {"ai.onnx.ml": 5, "com.ms.internal.nhwc": 20, "com.microsoft": 1, "com.acme": 3}


def model_with(imports: dict[str, int], opset: int = 20, nodes: str = "y = Relu (x)") -> onnx.ModelProto:
    """Return a model with a node and further opset imports."""
    model = parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : {opset}]> g (float[2] x) => (y) {{{nodes}}}'
    )
    model.opset_import.extend(helper.make_opsetid(*each) for each in imports.items())
    return model


def local_function(imports: dict[str, int]) -> onnx.FunctionProto:
    """Return a function of opset 20 with further opset imports."""
    opsets = [helper.make_opsetid(*each) for each in {"": 20, **imports}.items()]
    return helper.make_function("local", "f", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"])], opsets)


def imports_of(model: onnx.ModelProto | onnx.FunctionProto) -> dict[str, int]:
    return {each.domain: each.version for each in model.opset_import}


@pytest.mark.parametrize(
    ("target", "kept"),
    [
        (17, {"": 17, "com.microsoft": 1, "com.acme": 3}),
        (21, {"": 21, "ai.onnx.ml": 5, "com.microsoft": 1, "com.acme": 3}),
        ("onnxruntime-1.14", {"": 18, "ai.onnx.ml": 3, "com.microsoft": 1, "com.acme": 3}),
        ("onnxruntime-1.17", {"": 20, "ai.onnx.ml": 4, "com.microsoft": 1, "com.acme": 3}),
        ("tensorrt-10.1", {"": 20}),
        (["tensorrt-8.6", "onnxruntime-1.17"], {"": 17, "ai.onnx.ml": 4}),
        ({"": 17, "ai.onnx.ml": 4}, {"": 17, "ai.onnx.ml": 4, "com.microsoft": 1, "com.acme": 3}),
    ],
)
def test_removes_unused_imports_that_the_target_lacks(
    target: int | str | list[str] | dict[str, int], kept: dict[str, int]
) -> None:
    model = model_with(UNUSED)
    before = model.SerializeToString()
    found = opshift.convert(model, target)
    assert imports_of(found.model) == kept
    assert any("import of com.ms.internal.nhwc 20 was removed" in each for each in found.report.repairs)
    assert set(found.report.removed_imports) == {*imports_of(model)} - {*kept}
    assert model.SerializeToString() == before


def test_ir_version_does_not_depend_on_a_removed_import() -> None:
    assert opshift.convert_version(model_with({"ai.onnx.ml": 5}), 17).ir_version == 8


def test_folding_removes_unused_imports() -> None:
    model = model_with(UNUSED)
    assert imports_of(opshift.simplify(model)) == {"": 20}
    assert set(opshift.convert(model, fold=True).report.removed_imports) == {*imports_of(model)} - {""}
    assert imports_of(opshift.convert_version(model, 20, fold=True)) == {"": 20}


def test_keeps_imports_if_the_opset_stays() -> None:
    model = model_with(UNUSED)
    assert opshift.convert_version(model, 20) == model


def test_keeps_imports_that_nodes_and_functions_need() -> None:
    nodes = (
        "z = ai.onnx.ml.ArrayFeatureExtractor (x, i)  i = Constant <value = int64[1] {0}> ()  y = Relu (z)"
    )
    model = model_with({"ai.onnx.ml": 4, "local": 1}, nodes=nodes)
    function = local_function({"ai.onnx.ml": 4})
    model.functions.append(function)
    found = opshift.convert_version(model, 17)
    assert imports_of(found) == {"": 17, "ai.onnx.ml": 4, "local": 1}
    assert imports_of(found.functions[0]) == {"": 17, "ai.onnx.ml": 4}


def test_removes_unused_imports_of_functions() -> None:
    model = model_with({"local": 1}, nodes="y = local.f (x)")
    function = local_function({"com.ms.internal.nhwc": 20})
    model.opset_import.append(helper.make_opsetid("com.ms.internal.nhwc", 20))
    model.functions.append(function)
    found = opshift.convert_version(model, 17)
    assert imports_of(found) == {"": 17, "local": 1}
    assert imports_of(found.functions[0]) == {"": 17}


def test_merges_equal_imports() -> None:
    model = model_with({})
    model.opset_import.append(helper.make_opsetid("ai.onnx", 20))
    found = opshift.convert(model, 17)
    assert [(each.domain, each.version) for each in found.model.opset_import] == [("", 17)]
    assert "model: 2 equal imports of ai.onnx were merged" in found.report.repairs


def model_with_trees(own: int | None, of_function: int | None, *, in_function: bool) -> onnx.ModelProto:
    """Return a model with trees, which become nodes of ai.onnx, too, and a call of a function with Relu.

    The graph imports opset `own` of ai.onnx, and the function opset `of_function`. With `in_function`, the
    trees are in a function without an import.
    """
    forest = Forest(votes([0]), attributes={"base_values": [0.5]})
    trees = forest_node("TreeEnsembleRegressor", forest, ["t"], n_targets=1)
    relu = helper.make_node("Relu", ["t"], ["y"])
    functions = [function_of("Relu", relu, {"": of_function})] if of_function else []
    nodes = [trees, helper.make_node("Relu", ["t"], ["y"], domain="local" if of_function else "")]
    if in_function:
        functions.append(function_of("Trees", trees, {ML: 3}))
        nodes[0] = helper.make_node("Trees", ["x"], ["t"], domain="local")
    made = build(nodes, {"x": data()}, ["y"], {ML: 3, "local": 1, **({"": own} if own else {})})
    made.functions.extend(functions)
    return made


def function_of(name: str, node: onnx.NodeProto, imports: dict[str, int]) -> onnx.FunctionProto:
    opsets = [helper.make_opsetid(*each) for each in imports.items()]
    return helper.make_function("local", name, node.input, node.output, [node], opsets)


@pytest.mark.parametrize(
    ("own", "of_function", "in_function", "target", "opset"),
    [
        pytest.param(17, None, True, {ML: 5}, 17, id="import of the model"),
        pytest.param(None, 13, True, {ML: 5}, 13, id="import of another function"),
        pytest.param(None, 13, False, {ML: 5}, 13, id="import of a function, for the graph"),
        pytest.param(17, 17, True, {"": 19, ML: 5}, 19, id="target"),
        pytest.param(7, None, True, {ML: 5}, 7, id="older than the emitted operators"),
    ],
)
def test_added_imports_agree_with_the_others(
    own: int | None, of_function: int | None, in_function: bool, target: dict[str, int], opset: int
) -> None:
    model = model_with_trees(own, of_function, in_function=in_function)
    result = opshift.convert_version(model, target)
    assert "function.opset" not in {each.rule for each in opshift.check(result)}
    assert {imports_of(each)[""] for each in (result, *result.functions) if "" in imports_of(each)} == {opset}
    assert_equal(run(result, {"x": data()}), run(model, {"x": data()}))


def test_the_import_of_an_identity_agrees_with_the_model() -> None:
    scaler = helper.make_node("Scaler", ["x"], ["y"], domain=ML, offset=[1.0], scale=[2.0])
    inner = function_of("Inner", scaler, {ML: 3})
    inner.output.append("x")
    call = helper.make_node("Inner", ["x"], ["y", "z"], domain="local")
    outer = function_of("Outer", call, {"local": 1})
    nodes = [helper.make_node("Outer", ["x"], ["y", "z"], domain="local")]
    model = build(nodes, {"x": data()}, ["y", "z"], {ML: 3, "local": 1, "": 18})
    model.functions.extend([inner, outer])
    result = opshift.convert_version(model, without="local.Inner")
    assert [imports_of(each) for each in result.functions] == [{"local": 1, ML: 3, "": 18}]
    assert_equal(run(result, {"x": data()}), [(data() - 1) * 2, data()])
