"""Attributes of functions need a newer IR version only if nodes use them as newer element types."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import AttributeProto, NodeProto, TensorProto, helper
from support.execution import assert_equal, run
from support.ir_models import X, node, plain_model

from opshift.checker.check import check
from opshift.converter.convert import convert_version
from opshift.converter.refusals import ConversionRefused

FLOAT8E8M0, FLOAT8E4M3FN = 24, 17
"""Element types that IR versions 12 and 9 added."""

DEFAULT = "function local.F, attribute 'kind'"
CALL = "graph, node F -> y, attribute 'kind'"


def using(op_type: str, attribute: str, source: str, domain: str = "") -> NodeProto:
    """Return a node that sets an attribute to an attribute of the function."""
    result = node(op_type, ["a"], ["b"], domain)
    result.attribute.add(name=attribute, ref_attr_name=source, type=AttributeProto.INT)
    return result


def function(name: str, *nodes: NodeProto, domain: str = "local", **defaults: int) -> onnx.FunctionProto:
    """Return a function of the attribute `kind`, which may have a default."""
    options: dict[str, Any] = {
        "attributes": [] if defaults else ["kind"],
        "attribute_protos": [helper.make_attribute(*each) for each in defaults.items()],
    }
    imports = [
        helper.make_opsetid("", 21),
        *(helper.make_opsetid(each, 1) for each in ("local", "com.microsoft")),
    ]
    made: onnx.FunctionProto = helper.make_function(
        domain, name, ["a"], ["b"], nodes or [node("Identity", ["a"], ["b"])], imports, **options
    )
    return made


def model(*functions: onnx.FunctionProto, domain: str = "local", **attributes: int) -> onnx.ModelProto:
    """Return a model that calls the first function."""
    result = plain_model(nodes=[node(functions[0].name, ["x"], ["y"], domain, **attributes)])
    result.functions.extend(functions)
    result.ir_version = 9
    return result


def branches(inner: NodeProto) -> NodeProto:
    value = helper.make_tensor_value_info("b", TensorProto.FLOAT, None)
    graph = helper.make_graph([inner], "branch", [], [value])
    return node("If", ["a"], ["b"], then_branch=graph, else_branch=graph)


CAST = using("Cast", "to", "kind")
TO_F = using("F", "kind", "kind", "local")
TO_G = using("G", "other", "kind", "local")

MODELS = {
    "default without use": (model(function("F", kind=FLOAT8E8M0)), None),
    "default": (model(function("F", CAST, kind=FLOAT8E8M0)), DEFAULT),
    "call": (model(function("F", CAST), kind=FLOAT8E8M0), CALL),
    "call without use": (model(function("F"), kind=FLOAT8E8M0), None),
    "number": (model(function("F", using("Softmax", "axis", "kind")), kind=FLOAT8E8M0), None),
    "in a subgraph": (model(function("F", branches(CAST)), kind=FLOAT8E8M0), CALL),
    "other domain": (
        model(function("F", using("GatherPacked", "output_dtype", "kind", "com.microsoft")), kind=FLOAT8E8M0),
        CALL,
    ),
    "through a call": (
        model(function("F", TO_G), function("G", using("Cast", "to", "other")), kind=FLOAT8E8M0),
        CALL,
    ),
    "through a call to an unused attribute": (
        model(function("F", TO_G), function("G"), kind=FLOAT8E8M0),
        None,
    ),
    "cycle of calls": (
        model(
            function("F", TO_G), function("G", using("F", "kind", "other", "local"), CAST), kind=FLOAT8E8M0
        ),
        None,
    ),
    "cycle of calls with a use": (model(function("F", TO_F, CAST), kind=FLOAT8E8M0), CALL),
    "function with the name of an operator": (
        model(function("F", CAST), function("Cast", domain=""), kind=FLOAT8E8M0),
        None,
    ),
}


@pytest.mark.parametrize(("model", "place"), MODELS.values(), ids=MODELS)
def test_finds_newer_element_types(model: onnx.ModelProto, place: str | None) -> None:
    found = [each.place for each in check(model) if each.rule == "ir.element-types"]
    assert [str(each) for each in found] == [place] * (place is not None)


@pytest.mark.parametrize("version", [8, 7])
def test_lowers_models_with_numbers_of_newer_types(version: int) -> None:
    before = model(function("F", node("Neg", ["a"], ["b"]), kind=FLOAT8E8M0))
    result = convert_version(before, ir_version=version)
    assert result.ir_version == version
    for each in (before, result):
        assert_equal(run(each, {"x": X}), [-X])


def test_refuses_newer_types_in_calls() -> None:
    casts = [using("Cast", "to", "kind"), node("Cast", ["t"], ["b"], to=TensorProto.FLOAT)]
    casts[0].output[0] = "t"
    before = model(function("F", *casts), kind=FLOAT8E4M3FN)
    with pytest.raises(ConversionRefused, match="does not support element type float8e4m3fn") as caught:
        convert_version(before, ir_version=8)
    assert str(caught.value.place) == CALL
    assert_equal(run(convert_version(before, ir_version=9), {"x": X}), run(before, {"x": X}))
