"""Models with other element types compute the same up to rounding, and nodes without kernels keep theirs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NoKernel
from support.execution import Feeds, run, run_reference

from opshift import ConversionRefused, UsageError, convert_types, convert_version, plan_version
from opshift.converter.convert import convert
from opshift.registry.registry import default_registry

X = (np.arange(12, dtype=np.float32).reshape(3, 4) - 5.5) / 4
DTYPES = {"float16": np.float16, "double": np.float64, "float": np.float32}

MODELS = {
    "weights": ("y = MatMul(x, w)", "float[4, 2] w = {1, 2, 3, 4, 5, 6, 7, 8}"),
    "constants": (
        """
        a = Constant<value_float = 1.5>() b = Constant<value_floats = [1.0, 2.0, 3.0, 4.0]>()
        c = Constant<value = float[1] {0.5}>() d = Mul(x, b) e = Add(d, a) y = Div(e, c)
        """,
        "",
    ),
    "casts": ("i = Cast<to = 7>(x) f = Cast<to = 1>(i) y = Add(x, f)", ""),
    "absent type": ("s = Shape(x) z = ConstantOfShape(s) y = Add(x, z)", ""),
    "kept between casts": ("e = Exp(x) s = ReduceSum<keepdims = 0>(e) y = Add(x, s)", ""),
    "kept beside others": (
        "s = ReduceSum(x) t = CumSum(x, axis) u = Add(x, s) y = Mul(u, t)",
        "int64 axis = {1}",
    ),
    "sizes": (
        """
        s = Shape(x) f = Cast<to = 1>(s) g = Mul(f, two) i = Cast<to = 7>(g) z = Expand(one, i)
        r = ReduceSum(z) y = Add(x, r)
        """,
        "float two = {2}, float one = {1}",
    ),
    "fixed types": ('y = Resize(x, "", factors)', "float[2] factors = {2, 2}"),
    "branches": (
        """
        m = ReduceMax<keepdims = 0>(x) p = Greater(m, zero)
        y = If(p) <
            then_branch = t () => (float[3, 4] a) { a = Mul(x, half) },
            else_branch = e () => (float[3, 4] b) { c = ReduceSum(x) b = Sub(x, c) }
        >
        """,
        "float zero = {0}, float half = {0.5}",
    ),
    "loop": (
        """
        n = Constant<value_int = 3>() c = Constant<value = bool {1}>()
        last, scanned = Loop(n, c, x) <
            body = b (int64 k, bool go, float[3, 4] v) => (bool on, float[3, 4] w, float[3, 4] u) {
                on = Identity(go) w = Add(v, x) u = Tanh(v)
            }
        >
        r = ReduceMax<axes = [0], keepdims = 0>(scanned) y = Add(last, r)
        """,
        "",
    ),
    "sequence": (
        "q = SequenceConstruct(x, x) a = SequenceAt(q, one) y = Add(a, x)",
        "int64 one = {1}",
    ),
    "quantized": (
        """
        q = QuantizeLinear(x, scale, zero) d = DequantizeLinear(q, scale, zero)
        v = DequantizeLinear(w, tiny, zero) y = MatMul(d, v)
        """,
        "float scale = {0.02}, float tiny = {0.000001}, int8 zero = {0}, "
        "int8[4, 2] w = {1, -2, 30, 4, 5, 6, 7, 8}",
    ),
}


def model_of(nodes: str, weights: str = "", opset: int = 17, x: str = "float[3, 4] x") -> onnx.ModelProto:
    """Return a model that computes `y`, which has the rank of `x`."""
    dims = ", ".join("AB"[: 1 + x.count(",")])
    graph = f"g ({x}) => ({x.split('[')[0]}[{dims}] y) <{weights}> {{ {nodes} }}"
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> {graph}')


def outputs(model: onnx.ModelProto, feeds: Feeds) -> list[Any]:
    try:
        return run(model, feeds)
    except NoKernel:  # such as Resize of double
        return run_reference(model, feeds)


def assert_close(found: Sequence[Any], wanted: Sequence[Any], tolerance: float) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape
        scale = float(np.abs(other.astype(np.float64)).max(initial=0))
        np.testing.assert_allclose(
            one.astype(np.float64), other.astype(np.float64), atol=tolerance * (scale or 1)
        )


@pytest.mark.every_case
@pytest.mark.parametrize("keep_interface", [False, True])
@pytest.mark.parametrize(("new", "tolerance"), [("float16", 1e-2), ("double", 1e-6)])
@pytest.mark.parametrize("name", MODELS)
def test_computes_the_same(name: str, new: str, tolerance: float, keep_interface: bool) -> None:
    model = model_of(*MODELS[name])
    original = model.SerializeToString()
    options: dict[str, Any] = {
        "types": {"float": new},
        "keep_interface": keep_interface,
        "allow": "approximate",
    }
    result = convert_version(model, **options)
    assert model.SerializeToString() == original
    assert convert_version(result, **options) == result
    onnx.checker.check_model(result, full_check=True)
    expected = DTYPES["float" if keep_interface else new]
    found = outputs(result, {"x": X.astype(expected)})
    assert found[0].dtype == expected
    assert_close(found, run(model, {"x": X}), tolerance)


@pytest.mark.parametrize(
    ("old", "new"),
    [("bfloat16", "float"), ("bfloat16", "float16"), ("float16", "float"), ("double", "float")],
)
def test_converts_weights_exactly_if_the_new_type_has_their_values(old: str, new: str) -> None:
    model = model_of("y = MatMul(x, w)", x=f"{old}[3, 4] x")
    values = np.array([[1.5, -2.0], [0.0, 0.25], [96.0, -0.0], [np.inf, 3.0]], np.float32)
    numbers = (values.view(np.uint32) >> 16).astype(np.uint16)
    data = numbers.tobytes() if old == "bfloat16" else values.astype(DTYPES.get(old)).tobytes()
    number = onnx.TensorProto.DataType.Value(old.upper())
    model.graph.initializer.append(TensorProto(name="w", data_type=number, dims=[4, 2], raw_data=data))
    result = convert_types(model, f"{old}={new}", allow="approximate")
    found = numpy_helper.to_array(result.graph.initializer[0])
    assert found.dtype == DTYPES[new]
    np.testing.assert_array_equal(found.astype(np.float32), values)
    onnx.checker.check_model(result, full_check=True)


def test_rounds_like_a_cast_and_keeps_small_numbers_apart_from_zero() -> None:
    random = np.random.default_rng(0)
    values = (random.normal(size=10_000) * 10.0 ** random.integers(-10, 4, 10_000)).astype(np.float32)
    model = model_of("y = Add(x, w)", x="float[10000] x")
    model.graph.initializer.append(numpy_helper.from_array(values, "w"))
    (tensor,) = convert_types(model, "float=float16", allow="approximate").graph.initializer
    found, wanted = numpy_helper.to_array(tensor), values.astype(np.float16)
    is_lost = (wanted == 0) & (values != 0)
    assert is_lost.any()
    np.testing.assert_array_equal(found[~is_lost], wanted[~is_lost])
    np.testing.assert_array_equal(found[is_lost], np.copysign(np.float16(2.0**-24), values[is_lost]))


def test_uses_float_data_and_sparse_tensors() -> None:
    model = model_of("y = Add(x, w)")
    model.graph.initializer.append(helper.make_tensor("w", TensorProto.FLOAT, [4], [1.0, 2.0, 3.0, 4.0]))
    values = helper.make_tensor("s", TensorProto.FLOAT, [1], [1.5])
    indices = helper.make_tensor("i", TensorProto.INT64, [1], [2])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [4]))
    result = convert_types(model, "float=float16", allow="approximate")
    assert numpy_helper.to_array(result.graph.initializer[0]).tolist() == [1.0, 2.0, 3.0, 4.0]
    assert result.graph.sparse_initializer[0].values.data_type == TensorProto.FLOAT16


@pytest.mark.parametrize("value", [1e6, -3.4e38])
@pytest.mark.parametrize("nodes", ["w = Constant<value_float = VALUE>() y = Add(x, w)", "y = Add(x, w)"])
def test_refuses_constants_out_of_range_unless_clamped(nodes: str, value: float) -> None:
    is_node = "VALUE" in nodes
    model = model_of(nodes.replace("VALUE", f"{value}"), "" if is_node else f"float[1] w = {{{value}}}")
    with pytest.raises(ConversionRefused) as caught:
        convert_types(model, "float=float16", allow="approximate")
    (refusal,) = caught.value.refusals
    assert refusal.code == "value.overflow"
    assert "clamp" in refusal.remedy
    report = convert(model, types="float=float16", allow=("approximate", "clamp")).report
    assert ("clamp", "constants out of the range of float16 become the nearest number") in report.allowances
    result = convert_types(model, "float=float16", allow=("approximate", "clamp"))
    found = result.graph.node[0].attribute[0].t if is_node else result.graph.initializer[0]
    assert numpy_helper.to_array(found).item() == np.copysign(65504, value)


def test_keeps_infinities() -> None:
    model = model_of("y = Add(x, w)", "float[2] w = {inf, -inf}", x="float[2] x")
    (tensor,) = convert_types(model, "float=float16", allow="approximate").graph.initializer
    assert numpy_helper.to_array(tensor).tolist() == [np.inf, -np.inf]


@pytest.mark.parametrize(
    ("types", "reason"),
    [
        ("float=float16", "float16 cannot represent all numbers of float"),
        ("bfloat16=float16", "float16 cannot represent all numbers of bfloat16"),
        ("double=float", "float cannot represent all numbers of double"),
    ],
)
def test_narrowing_needs_permission(types: str, reason: str) -> None:
    plan = plan_version(model_of("y = Relu(x)"), types=types)
    assert [(each.code, each.reason) for each in plan.refusals] == [("deviation.not-allowed", reason)]


@pytest.mark.parametrize(
    ("types", "reason"),
    [
        ("flot=float16", "'flot' is not an element type; did you mean 'float'?"),
        ("float", "'float' is not a change of an element type"),
        ("float16=int8", "cannot convert float16 to int8 in a whole model"),
        (["float=float16", "float=double"], "two new types are requested for float: float16 and double"),
    ],
)
def test_refuses_invalid_types(types: str | list[str], reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        convert_types(model_of("y = Relu(x)"), types)
    assert caught.value.reason == reason


def test_refuses_to_map_sequences_that_keep_their_types() -> None:
    text = "(seq(float[N]) x) => (seq(float[N]) y)"
    body = "{ y = SequenceMap (x) <body = b (float[N] e) => (float[N] o) { o = Exp (e) }> }"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text} {body}')
    with pytest.raises(ConversionRefused) as caught:
        convert_types(model, {"float": "double"}, keep_interface=True)
    assert [each.code for each in caught.value.refusals] == ["type.sequence"]
    onnx.checker.check_model(convert_types(model, {"float": "double"}), full_check=True)


def test_keep_interface_needs_types() -> None:
    with pytest.raises(UsageError, match="keep_interface has no effect without types"):
        convert_version(model_of("y = Relu(x)"), 18, keep_interface=True)


def test_refuses_values_of_unknown_type() -> None:
    model = model_of("h = acme.Secret(x) y = Relu(h)")
    model.opset_import.add(domain="acme", version=1)
    with pytest.raises(ConversionRefused) as caught:
        convert_types(model, "float=float16", allow="approximate")
    assert [each.code for each in caught.value.refusals] == ["unknown.element-type"]
    model.graph.value_info.append(helper.make_tensor_value_info("h", TensorProto.FLOAT, None))
    result = convert_types(model, "float=float16", allow="approximate")
    assert [each.op_type for each in result.graph.node] == ["Cast", "Secret", "Cast", "Relu"]


PRIVATE = """
domain: com.acme
name: {name}
shape: same_as_first
versions:
- since_version: 1
  inputs: [{{name: X, type: T}}]
  outputs: [{{name: Y, type: T}}]
  type_constraints: {{T: [tensor(float16), tensor(float)]}}
"""


class Double(OpRun):  # type: ignore[misc]  # onnx has no types
    op_domain = "com.acme"

    def _run(self, x: Any) -> tuple[Any]:
        return (x * 2,)


@pytest.mark.parametrize("name", ["Cast", "Shape"])
def test_private_operators_may_have_names_of_onnx(tmp_path: Path, name: str) -> None:
    (tmp_path / "com.acme").mkdir()
    for each in (name, "Double"):
        (tmp_path / "com.acme" / f"{each}.yaml").write_text(PRIVATE.format(name=each).lstrip())
    registry = default_registry().with_folder(tmp_path)
    model = model_of("s = ReduceSum(x) t = com.acme.Double(s) u = Mul(t, t) v = Tanh(u) y = Add(v, x)")
    model.opset_import.add(domain="com.acme", version=1)
    options: dict[str, Any] = {"types": "float=float16", "allow": "approximate", "registry": registry}
    result = convert_version(model, **options)
    (found,) = ReferenceEvaluator(result, new_ops=[Double]).run(None, {"x": X.astype(np.float16)})
    assert found.dtype == np.float16
    assert_close([found], ReferenceEvaluator(model, new_ops=[Double]).run(None, {"x": X}), 1e-2)
    for each in (model, result):
        next(node for node in each.graph.node if node.domain).op_type = name
    assert convert_version(model, **options) == result


def test_nodes_of_bfloat16_that_are_kept_compute_in_float() -> None:
    nodes = "s = ReduceSum<keepdims = 0>(x) t = Mul(s, w) u = CumSum(x, axis) y = Add(u, t)"
    model = model_of(nodes, "bfloat16 w = {16320}, int64 axis = {1}", x="bfloat16[3, 4] x")
    result = convert_types(model, "bfloat16=float16", allow="approximate")
    onnx.checker.check_model(result, full_check=True)
    casts = [each.attribute[0].i for each in result.graph.node if each.op_type == "Cast"]
    assert casts == [TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.FLOAT16]
    wanted = run(model_of(nodes, "float w = {1.5}, int64 axis = {1}"), {"x": X})
    assert_close(run(result, {"x": X.astype(np.float16)}), wanted, 1e-2)
    inside = convert_types(model, "bfloat16=float16", allow="approximate", keep_interface=True)
    onnx.checker.check_model(inside, full_check=True)
    assert inside.graph.input[0].type.tensor_type.elem_type == TensorProto.BFLOAT16


def test_keeps_quantized_nodes_without_casts() -> None:
    nodes = """
        q = QuantizeLinear(x, scale, zero) d = DequantizeLinear(q, scale, zero)
        v = DequantizeLinear(w, scale, zero) a = MatMul(d, v) r = Relu(a)
        p = QuantizeLinear(r, scale, zero) e = DequantizeLinear(p, scale, zero) y = Tanh(e)
    """
    weights = "float scale = {0.02}, int8 zero = {0}, int8[4, 2] w = {1, -2, 30, 4, 5, 6, 7, 8}"
    result = convert_types(model_of(nodes, weights), "float=float16", allow="approximate")
    onnx.checker.check_model(result, full_check=True)
    operators = [each.op_type for each in result.graph.node]
    assert operators == [
        "Cast", "QuantizeLinear", "DequantizeLinear", "DequantizeLinear", "MatMul", "Relu", "QuantizeLinear",
        "DequantizeLinear", "Cast", "Tanh",
    ]  # fmt: skip


def test_inlines_functions() -> None:
    text = """
        <ir_version: 8, opset_import: ["": 17, "local": 1]>
        g (float[3, 4] x) => (float[3, 4] y) { y = local.Scale(x) }
        <domain: "local", opset_import: ["": 17]> Scale (a) => (b) {
            c = Constant<value_float = 2.5>() d = ReduceSum<keepdims = 0>(a) e = Mul(a, c) b = Add(e, d)
        }
    """
    model = parser.parse_model(text)
    result = convert_types(model, "float=float16", allow="approximate")
    assert not result.functions
    assert_close(run(result, {"x": X.astype(np.float16)}), run(model, {"x": X}), 1e-2)


@pytest.mark.parametrize("types", ["float=double", "float=float16"], ids=["exact", "inexact"])
def test_refuses_training_graphs(types: str) -> None:
    """The conversion is impossible, also if the caller accepts inexact results."""
    model = model_of("y = Relu(x)")
    model.training_info.add()
    plan = plan_version(model, types=types)
    assert [each.code for each in plan.refusals] == ["training.unsupported"]


@pytest.mark.parametrize("fold", [False, True])
@pytest.mark.parametrize("types", ["bfloat16=float", "bfloat16=float16"])
def test_an_absent_type_changes_nothing(types: str, fold: bool) -> None:
    model = model_of("a = Add(w, w) y = Add(x, a)", "float w = {2}")
    original = model.SerializeToString()
    found = convert(model, types=types, allow="approximate", fold=fold)
    assert model.SerializeToString() == original
    assert (found.model.SerializeToString() == original) is not fold
    assert not [each for each in found.report.repairs if "element types" in each]
    assert found.report.allowances == ()


def test_converts_types_before_the_opset() -> None:
    model = model_of("a = Softmax(x) y = Relu(a)", x="bfloat16[3, 4] x")
    with pytest.raises(ConversionRefused) as caught:
        convert_version(model, 11)
    remedy = "convert the element type of the whole model, too: --types bfloat16=float, or types= in Python"
    assert caught.value.groups[0].remedy == remedy
    result = convert_version(model, 11, types="bfloat16=float")
    assert result.opset_import[0].version == 11
    assert_close(run(result, {"x": X}), run_reference(model_of("a = Softmax(x) y = Relu(a)"), {"x": X}), 1e-5)


@pytest.mark.parametrize("opset", [5, 6])
def test_casts_by_name_or_number(opset: int) -> None:
    nodes = "a = ReduceSum<axes = [0]>(x) y = Add<axis = 1, broadcast = 1>(x, x)"
    model = model_of(nodes, opset=opset)
    result = convert_types(model, "float=float16", allow="approximate")
    casts = [each.attribute[0] for each in result.graph.node if each.op_type == "Cast"]
    assert casts[0].s == b"FLOAT" if opset == 5 else casts[0].i == TensorProto.FLOAT


TABLE = "float[9] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}"
INTEGERS = {
    "indices": ("y = Gather(w, ids)", TABLE, "Gather"),
    "sum without bounds": (
        "a = Add(ids, one) y = Gather(w, a)",
        f"{TABLE}, int64 one = {{1}}",
        "Cast Add Gather",
    ),
    "cumulative": (
        "a = CumSum(ids, zero) y = Gather(w, a)",
        f"{TABLE}, int64 zero = {{0}}",
        "Cast CumSum Gather",
    ),
    "comparison": ("a = Less(ids, one) y = Cast<to = 1>(a)", "int64 one = {1}", "Less Cast"),
    "product with bounds": (
        "a = Cast<to = 9>(ids) b = Cast<to = 7>(a) c = Mul(b, n) y = Cast<to = 1>(c)",
        "int64 n = {3}",
        "Cast Cast Mul Cast",
    ),
    "sizes": (
        "a = Shape(ids) b = Mul(a, one) y = Expand(f, b)",
        "int64 one = {1}, float f = {2}",
        "Shape Mul Expand",
    ),
    "large": ("a = Less(ids, big) y = Cast<to = 1>(a)", "int64 big = {5000000000}", "Cast Less Cast"),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_converts_integers_that_fit(name: str) -> None:
    nodes, weights, operators = INTEGERS[name]
    text = (
        f'<ir_version: 8, opset_import: ["": 17]> g (int64[3] ids) => (float[3] y) <{weights}> {{ {nodes} }}'
    )
    model = parser.parse_model(text)
    ids = np.array([0, 2, 1])
    result = convert_types(model, "int64=int32")
    onnx.checker.check_model(result, full_check=True)
    assert " ".join(each.op_type for each in result.graph.node) == operators
    np.testing.assert_array_equal(run(result, {"ids": ids.astype(np.int32)})[0], run(model, {"ids": ids})[0])


def test_reports_casts_and_kept_nodes() -> None:
    report = convert(
        model_of("s = ReduceSum(x) y = Add(x, s)"), types="float=float16", allow="approximate"
    ).report
    assert report.repairs == (
        "element types: float to float16 in 2 values, with 2 casts",
        "element types: nodes that keep their types, with casts around them: 1 ai.onnx.ReduceSum:13",
    )
    assert (report.requested, report.warnings) == (report.repairs, ())
    assert (report.nodes, report.kept) == ((2, 4), 2)


@pytest.mark.parametrize("text", ["y = Add (x, x, x)", "y = Mul (x)", "y = Sub ()", "y = Cast <to = 7> ()"])
def test_nodes_with_a_wrong_number_of_inputs_stay_invalid(text: str) -> None:
    """Bounds of integers are not computed for them."""
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (int64[2] x) => (int64[2] y) {{ {text} }}'
    )
    result = convert_types(model, "int64=int32")
    assert text.split()[2] in [node.op_type for node in result.graph.node]


@pytest.mark.parametrize("keep_interface", [False, True])
@pytest.mark.parametrize(
    ("precision", "types"),
    [("", "float=float16"), ("", "float=double"), ("softmax_precision = 1, ", "float=double")],
)
def test_subgraphs_of_flex_attention_have_the_softmax_precision(
    precision: str, types: str, *, keep_interface: bool
) -> None:
    shape = "float[1, 1, 2, 2]"
    body = f"b ({shape} s) => ({shape} t) {{ h = Constant <value = float {{0.5}}> () t = Mul (s, h) }}"
    model = parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 21, "ai.onnx.preview": 1]>
        g ({shape} x) => ({shape} y) {{
            y = ai.onnx.preview.FlexAttention <{precision}score_mod = {body}> (x, x, x)
        }}"""
    )
    result = convert_types(model, types, allow=("approximate",), keep_interface=keep_interface)
    onnx.checker.check_model(result, full_check=True)
    data = X[:2, :2].reshape(1, 1, 2, 2)
    found = run_reference(result, {"x": data if keep_interface else data.astype(DTYPES[types[6:]])})
    assert_close(found, run_reference(model, {"x": data}), 1e-2)
