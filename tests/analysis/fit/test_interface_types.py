"""Models whose inputs, outputs or values have types that a runtime lacks."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.execution import Array, assert_equal, run, run_reference
from support.forms import FORMS, in_form
from support.runtimes import fictional_runtime

from opshift import DoesNotFit, fit
from opshift.model.graphs import nested_nodes
from opshift.registry.runtimes.runtime import Kernel, Runtime
from opshift.runtimes.check_support import check_support

TYPES = ("float", "float16", "double", "int8", "uint8", "int32", "int64", "bool")
OPERATORS = (
    "Abs", "Add", "Cast", "CastLike", "Clip", "Concat", "Constant", "DequantizeLinear", "Div", "Equal",
    "Floor", "Gather", "Greater", "Identity", "If", "IsNaN", "Log", "MatMul", "Mod", "Mul", "QuantizeLinear",
    "Reshape", "Round", "Slice", "Sub", "Tanh", "Transpose", "Where",
)  # fmt: skip
NARROW = (
    "bfloat16",
    "float8e4m3fn",
    "float8e4m3fnuz",
    "float8e5m2",
    "float8e5m2fnuz",
    "float4e2m1",
    "int4",
    "uint2",
)
WIDER = {"bfloat16": "float", "int4": "int8", "uint2": "uint8"}
X = np.array([[0.3, -1, 1.7, 2], [0, 0.26, -0.7, 1]], np.float32)


def _values(element_type: str) -> Array:
    """Return floats to cast to a type; onnx.reference truncates to integers, and others round."""
    return np.round(X) if "int" in element_type else X


def _runtime(types: tuple[str, ...] = TYPES, **options: Any) -> Runtime:
    """Return a runtime without narrow types, and without local functions."""
    named = tuple(f"tensor({each})" for each in types)
    kernel = Kernel(versions=(1, 99), types=dict.fromkeys(("T", "T1", "T2", "T3", "V"), named))
    fields: dict[str, Any] = {
        "opsets": {"ai.onnx": 25},
        "ir_version": 13,
        **options,
    }
    operators: dict[str, tuple[Kernel, ...]] = {f"ai.onnx.{name}": (kernel,) for name in OPERATORS}
    return fictional_runtime(operators=operators, **fields)


def _number(element_type: str) -> int:
    return int(getattr(TensorProto, element_type.upper()))


def _dtype(element_type: str) -> Any:
    return helper.tensor_dtype_to_np_dtype(_number(element_type))


def _fit(model: onnx.ModelProto, **options: Any) -> Any:
    before = model.SerializeToString(deterministic=True)
    fitted = fit(model, _runtime(), **options)
    assert model.SerializeToString(deterministic=True) == before
    assert not check_support(fitted.model, _runtime())
    return fitted


def _assert_same(model: onnx.ModelProto, fitted: onnx.ModelProto, feeds: Mapping[str, Array]) -> None:
    """Assert equal values of the outputs, in their own types."""
    expected = run_reference(model, feeds)
    types = {
        each.name: each.type.tensor_type.elem_type for each in (*fitted.graph.input, *fitted.graph.output)
    }
    wide = {name: array.astype(helper.tensor_dtype_to_np_dtype(types[name])) for name, array in feeds.items()}
    numbers = [types[each.name] for each in fitted.graph.output]
    expected = [
        array.astype(helper.tensor_dtype_to_np_dtype(number))
        for array, number in zip(expected, numbers, strict=True)
    ]
    for run_fitted in (run, run_reference):
        assert_equal(run_fitted(fitted, wide), expected, 0)


@pytest.mark.parametrize("element_type", NARROW)
def test_widens_an_output(element_type: str) -> None:
    node = helper.make_node("Cast", ["x"], ["y"], to=_number(element_type))
    model, feeds = in_form("fed", [node], {"x": _values(element_type)}, {"y": _number(element_type)}, 25)
    model.ir_version = 13
    fitted = _fit(model, allow="interface-types")
    wide = WIDER.get(element_type, "float16")
    assert [str(each) for each in fitted.report.interface] == [
        f"output 'y': {wide} instead of {element_type}"
    ]
    _assert_same(model, fitted.model, feeds)


@pytest.mark.parametrize("element_type", [*NARROW, "float8e8m0"])
def test_widens_an_input(element_type: str) -> None:
    node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)
    model, feeds = in_form(
        "fed", [node], {"x": abs(X).astype(_dtype(element_type))}, {"y": TensorProto.FLOAT}, 25
    )
    model.ir_version = 13
    fitted = _fit(model, allow="interface-types")
    change = fitted.report.as_dict()["interface"][0]
    wide = {**WIDER, "float8e8m0": "float"}.get(element_type, "float16")
    assert change == {"kind": "input", "name": "x", "before": element_type, "after": wide}
    _assert_same(model, fitted.model, feeds)


@pytest.mark.some_cases(6)
@pytest.mark.parametrize("form", [each for each in FORMS if each != "no shapes"])
@pytest.mark.parametrize("element_type", ["bfloat16", "float8e5m2", "int4"])
def test_keeps_results_in_all_forms(element_type: str, form: str) -> None:
    """Types of values inside need no permission, and inputs and outputs of the type do."""
    nodes = [
        helper.make_node("Cast", ["x"], ["a"], to=_number(element_type)),
        helper.make_node("CastLike", ["x", "w"], ["b"]),
        helper.make_node("Cast", ["a"], ["c"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["b"], ["d"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["w"], ["e"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["c", "d"], ["f"]),
        helper.make_node("Add", ["f", "e"], ["y"]),
    ]
    arrays = {"x": _values(element_type), "w": np.ones((2, 4), np.float32).astype(_dtype(element_type))}
    model, feeds = in_form(form, nodes, arrays, {"y": TensorProto.FLOAT}, 25)
    model.ir_version = 13
    if form == "initializer":
        fitted = _fit(model)
        assert fitted.report.interface == ()
        wide = {"float8e5m2": "float16"}.get(element_type) or WIDER[element_type]
        assert fitted.report.bridges == (f"all operators: {wide} instead of {element_type}",)
        assert fitted.report.nodes[0] == len(nodes)
        assert fitted.report.cost >= fitted.report.nodes[1] - len(nodes)
    else:
        with pytest.raises(DoesNotFit) as caught:
            fit(model, _runtime())
        assert "with --allow interface-types (allow= in Python): input 'w" in (caught.value.remedy or "")
        assert pickle.loads(pickle.dumps(caught.value)).missing == caught.value.missing
        fitted = _fit(model, allow=["interface-types"])
        assert [each.before for each in fitted.report.interface] == [element_type]
    _assert_same(model, fitted.model, feeds)


def test_quantizes_to_integers_of_four_bits() -> None:
    text = """
        <ir_version: 10, opset_import: ["" : 21]>
        g (float[2, 4] x, float s, int4 zp) => (int4[2, 4] q, float[2, 4] y)
        { q = QuantizeLinear(x, s, zp) y = DequantizeLinear(q, s, zp) }
    """
    model = onnx.parser.parse_model(text)
    fitted = _fit(model, allow="interface-types")
    assert {each.name: each.after for each in fitted.report.interface} == {"zp": "int8", "q": "int8"}
    feeds = {"x": X, "s": np.array(0.2, np.float32), "zp": np.array(-2).astype(_dtype("int4"))}
    _assert_same(model, fitted.model, feeds)


def test_rounds_after_each_node_of_a_bfloat16_model() -> None:
    text = """
        <ir_version: 10, opset_import: ["" : 21]>
        g (bfloat16[2, 4] x) => (bfloat16[2, 2] y)
        { a = Mul(x, w) b = Tanh(a) t = Transpose<perm = [1, 0]>(w) y = MatMul(b, t) }
    """
    model = onnx.parser.parse_model(text)
    w = np.linspace(0.1, 0.8, 8, dtype=np.float32).reshape(2, 4).astype(_dtype("bfloat16"))
    model.graph.initializer.append(numpy_helper.from_array(w, "w"))
    fitted = _fit(model, allow="interface-types")
    operators = [each.op_type for each in nested_nodes(fitted.model.graph)]
    assert operators.count("Round") == 3
    x = X.astype(_dtype("bfloat16"))
    expected = run_reference(model, {"x": x})[0].astype(np.float32)
    found = run(fitted.model, {"x": x.astype(np.float32)})[0]
    np.testing.assert_allclose(found, expected, rtol=2**-7)  # sums of MatMul may differ in the order


def test_keeps_the_first_error_if_other_nodes_prevent_it() -> None:
    text = """
        <ir_version: 10, opset_import: ["" : 21]>
        g (bfloat16[2] x) => (bfloat16[2] y) { y = Det(x) }
    """
    with pytest.raises(DoesNotFit, match="Det") as caught:
        fit(onnx.parser.parse_model(text), _runtime(), allow="interface-types")
    assert "interface-types" not in (caught.value.remedy or "")


def test_refuses_types_without_a_wider_one() -> None:
    text = """
        <ir_version: 10, opset_import: ["" : 21]>
        g (int4[2] x) => (float[2] y) { y = Cast<to = 1>(x) }
    """
    with pytest.raises(DoesNotFit, match="Cast"):
        fit(onnx.parser.parse_model(text), _runtime(("float", "int64")), allow="interface-types")


def test_keeps_types_that_the_runtime_has() -> None:
    text = """
        <ir_version: 10, opset_import: ["" : 21]>
        g (bfloat16[2] x, int4[2] z) => (float[2] y, float[2] w) { y = Cast<to = 1>(x) w = Cast<to = 1>(z) }
    """
    model = onnx.parser.parse_model(text)
    report = fit(model, _runtime((*TYPES, "bfloat16")), allow="interface-types").report
    assert [each.name for each in report.interface] == ["z"]
