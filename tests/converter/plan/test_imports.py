"""Opset imports after a conversion."""

from __future__ import annotations

import onnx
import pytest
from onnx import helper, parser

import opshift

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
