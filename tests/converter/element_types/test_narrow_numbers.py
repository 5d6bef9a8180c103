"""Numbers of a model stay in the range of a narrower type, and do not become zero."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NoKernel
from support.execution import Array, assert_equal, op_types, run, run_reference

from opshift import ConversionRefused, check, convert_file, convert_types
from opshift.converter.element_types.requested_types import kept_operators

X = (np.arange(12, dtype=np.float32).reshape(3, 4) - 5.5) / 4
CLAMP = ("approximate", "clamp")

RECURRENT = """
    one = Constant<value_ints = [1]>() u = Unsqueeze(x, one)
    a = Constant<value_ints = [1, GATES, 4]>() b = Constant<value_ints = [1, GATES, 1]>()
    w = ConstantOfShape<value = float[1] {0.5}>(a) r = ConstantOfShape<value = float[1] {0.25}>(b)
    all, last = OPERATOR<hidden_size = 1, clip = NUMBER>(u, w, r) y = Squeeze(last, one)
"""
RANDOM = "r = {}<{} = NUMBER>({}) z = Mul(r, zero) y = Add(x, z)"
ATTRIBUTES = {
    "Attention.softcap": (
        23,
        """
        one = Constant<value_ints = [1]>() u = Unsqueeze(x, one)
        a = Attention<q_num_heads = 1, kv_num_heads = 1, softcap = NUMBER>(u, u, u) y = Squeeze(a, one)
        """,
    ),
    "Clip.max": (6, "y = Clip<max = NUMBER>(x)"),
    "Clip.min": (6, "y = Clip<min = NUMBER>(x)"),
    "GRU.clip": (14, RECURRENT.replace("OPERATOR", "GRU").replace("GATES", "3")),
    "LSTM.clip": (14, RECURRENT.replace("OPERATOR", "LSTM").replace("GATES", "4")),
    "Pad.value": (10, 'y = Pad<mode = "constant", pads = [0, 1, 0, 0], value = NUMBER>(x)'),
    "RNN.clip": (14, RECURRENT.replace("OPERATOR", "RNN").replace("GATES", "1")),
    "RandomNormal.mean": (17, RANDOM.format("RandomNormal", "shape = [3, 4], mean", "")),
    "RandomNormalLike.mean": (17, RANDOM.format("RandomNormalLike", "mean", "x")),
    "RandomUniform.high": (17, RANDOM.format("RandomUniform", "shape = [3, 4], high", "")),
    "RandomUniform.low": (17, RANDOM.format("RandomUniform", "shape = [3, 4], low", "")),
    "RandomUniformLike.high": (17, RANDOM.format("RandomUniformLike", "high", "x")),
    "RandomUniformLike.low": (17, RANDOM.format("RandomUniformLike", "low", "x")),
    "Resize.extrapolation_value": (
        17,
        """
        roi = Constant<value_floats = [0.0, 0.0, 2.0, 2.0]>() scales = Constant<value_floats = [1.0, 2.0]>()
        y = Resize<coordinate_transformation_mode = "tf_crop_and_resize", mode = "linear",
                   extrapolation_value = NUMBER>(x, roi, scales)
        """,
    ),
    "Shrink.bias": (9, "y = Shrink<bias = NUMBER>(x)"),
    "Shrink.lambd": (9, "y = Shrink<lambd = NUMBER>(x)"),
    "ThresholdedRelu.alpha": (10, "y = ThresholdedRelu<alpha = NUMBER>(x)"),
}


def model_of(
    nodes: str, opset: int = 17, ir_version: int = 8, inputs: str = "", weights: str = ""
) -> onnx.ModelProto:
    """Return a model that computes `y` from `x`, a matrix."""
    weights = f"float zero = {{0}}{', ' if weights else ''}{weights}"
    graph = f"g (float[3, 4] x{inputs}) => (float[A, B] y) <{weights}> {{ {nodes} }}"
    return parser.parse_model(f'<ir_version: {ir_version}, opset_import: ["": {opset}]> {graph}')


def half(model: onnx.ModelProto, allow: Any = "approximate", *, keep_interface: bool = True) -> Any:
    """Convert float to float16, and check the result."""
    result = convert_types(model, "float=float16", allow=allow, keep_interface=keep_interface)
    onnx.checker.check_model(result, full_check=True)
    return result


def outputs(model: onnx.ModelProto) -> list[Any]:
    try:
        return run(model, {"x": X})
    except NoKernel:  # such as Shrink of float16
        return run_reference(model, {"x": X})


def attribute_of(model: onnx.ModelProto, label: str) -> float:
    """Return the value of an attribute, such as `Pad.value`, in the only node of its operator."""
    operator, name = label.split(".")
    (node,) = (each for each in model.graph.node if each.op_type == operator)
    return float(next(each.f for each in node.attribute if each.name == name))


def refused_number(model: onnx.ModelProto) -> tuple[str, str]:
    """Return the place and the reason of the only number that the conversion to float16 refuses."""
    with pytest.raises(ConversionRefused) as caught:
        half(model)
    (refusal,) = caught.value.refusals
    assert refusal.code == "value.overflow"
    assert "clamp" in refusal.remedy
    return refusal.place, refusal.reason


def test_each_listed_attribute_has_a_model() -> None:
    assert list(ATTRIBUTES) == list(kept_operators()["attributes"])


@pytest.mark.parametrize("label", ATTRIBUTES)
def test_attributes_of_the_type_of_the_data_are_in_its_range(label: str) -> None:
    opset, nodes = ATTRIBUTES[label]
    model = model_of(nodes.replace("NUMBER", "-1000000000.0"), opset)
    operator, name = label.split(".")
    place, reason = refused_number(model)
    assert place.startswith(f"graph, node {operator} ")
    assert reason == f"attribute {name!r} has the value -1e+09, which float16 cannot represent"
    assert attribute_of(half(model, CLAMP), label) == -65504
    usual = model_of(nodes.replace("NUMBER", "0.75"), opset)
    assert attribute_of(half(usual), label) == 0.75
    assert_equal(outputs(half(usual)), outputs(usual), 1e-2)


@pytest.mark.parametrize(
    "nodes",
    [
        'p = Pad<mode = "constant", pads = [0, 4, 0, 0], value = -1e9>(x) y = Softmax<axis = 1>(p)',
        'p = Pad<mode = "constant", pads = [1, 0, 0, 0], value = -1e9>(x) y = Softmax<axis = 1>(p)',
        'p = Pad<mode = "constant", pads = [1, 0, 0, 0], value = 1e-9>(x) y = Div(p, p)',
        "l = Log(zeros) c = Clip<min = -1e9>(l) z = Mul(c, zero) y = Add(x, z)",
        "c = Clip<min = -3.4028234663852886e38, max = 1.0>(x) y = Neg(c)",
    ],
)
def test_computes_the_same_with_attributes_out_of_range(nodes: str) -> None:
    model = model_of(nodes, 10, weights="float[3, 4] zeros = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}")
    assert_equal(run_reference(half(model, CLAMP), {"x": X}), run_reference(model, {"x": X}), 1e-2)


@pytest.mark.parametrize(
    ("label", "nodes"),
    [
        ("LeakyRelu.alpha", "y = LeakyRelu<alpha = NUMBER>(x)"),
        ("Elu.alpha", "y = Elu<alpha = NUMBER>(x)"),
        ("LRN.bias", "u = Unsqueeze(x, one) v = LRN<size = 1, bias = NUMBER>(u) y = Squeeze(v, one)"),
        ("LayerNormalization.epsilon", "y = LayerNormalization<epsilon = NUMBER>(x, zero)"),
    ],
)
@pytest.mark.parametrize("number", [1e9, 1e-12])
def test_factors_and_epsilons_stay(label: str, nodes: str, number: float) -> None:
    model = model_of(nodes.replace("NUMBER", f"{number}"), weights="int64[2] one = {0, 1}")
    assert attribute_of(half(model), label) == attribute_of(model, label) == np.float32(number)


CONSTANTS = {
    "initializer": (8, "", "float[1] c = {NUMBER}", "", "tensor 'c'"),
    "input below IR version 4": (3, ", float zero, float[1] c", "float[1] c = {NUMBER}", "", "tensor 'c'"),
    "Constant": (8, "", "", "c = Constant<value = float[1] {NUMBER}>()", "node Constant -> c"),
    "ConstantOfShape": (
        8,
        "",
        "int64[1] size = {1}",
        "c = ConstantOfShape<value = float[1] {NUMBER}>(size)",
        "node ConstantOfShape -> c",
    ),
}
"""Sources of a constant `c`: IR version, inputs, initializers, nodes, and the place in the model."""


def model_with(constant: str, number: str, nodes: str) -> onnx.ModelProto:
    """Return a model with a constant `c`; in the nodes, Softplus keeps float."""
    ir_version, inputs, weights, source, _ = CONSTANTS[constant]
    weights, source = (each.replace("NUMBER", number) for each in (weights, source))
    return model_of(f"{source} {nodes}", 9, ir_version, inputs, weights)


@pytest.mark.parametrize("constant", CONSTANTS)
def test_a_constant_in_two_types_is_in_the_range_of_both(constant: str) -> None:
    nodes = "d = Sub(c, c) s = Softplus(c) e = Add(d, s) y = Add(x, e)"
    model = model_with(constant, "-3e38", nodes)
    assert refused_number(model)[0] == f"graph, {CONSTANTS[constant][-1]}"
    result = half(model, CLAMP)
    assert_equal(outputs(result), outputs(model), 1e-2)
    (added,) = (node for node in result.graph.node if "c_float16" in node.output)
    assert added.op_type == ("ConstantOfShape" if constant == "ConstantOfShape" else "Constant")


@pytest.mark.parametrize("keep_interface", [True, False])
@pytest.mark.parametrize("constant", CONSTANTS)
def test_a_constant_in_two_types_does_not_become_zero(constant: str, keep_interface: bool) -> None:
    nodes = "n = Relu(x) d = Max(n, c) q = Div(n, d) s = Softplus(c) y = Add(q, s)"
    model = model_with(constant, "1e-9", nodes)
    result = half(model, keep_interface=keep_interface)
    # onnxruntime computes in float and skips casts, so its result would be correct in any case
    (found,) = run_reference(result, {"x": X if keep_interface else X.astype(np.float16)})
    assert_equal([found.astype(np.float32)], outputs(model), 1e-2)


@pytest.mark.parametrize("keep_interface", [True, False])
@pytest.mark.parametrize("constant", CONSTANTS)
def test_a_constant_output_has_both_types(constant: str, keep_interface: bool) -> None:
    model = model_with(constant, "1e-9", "d = Max(x, c) s = Softplus(c) y = Mul(d, s)")
    model.graph.output.append(helper.make_tensor_value_info("c", TensorProto.FLOAT, [1]))
    result = half(model, keep_interface=keep_interface)
    _, found = run(result, {"x": X if keep_interface else X.astype(np.float16)})
    assert found == (np.float32(1e-9) if keep_interface else np.float16(2.0**-24))


def test_subgraphs_share_the_constant_of_a_narrower_type() -> None:
    nodes = """
        p = Constant<value = bool {1}>()
        y = If(p) <
            then_branch = t () => (float[3, 4] a) { n = Relu(x) b = Max(n, c) a = Div(n, b) },
            else_branch = e () => (float[3, 4] d) { s = Softplus(c) f = Add(x, c) d = Mul(f, s) }
        >
    """
    model = model_of(nodes, weights="float[1] c = {1e-9}")
    result = half(model)
    assert_equal(run(result, {"x": X}), run(model, {"x": X}), 1e-2)
    assert op_types(result).count("Constant") == op_types(model).count("Constant") + 1


def test_converts_sparse_constants() -> None:
    model = model_of("d = Max(x, c) s = ReduceSum(c) y = Mul(d, s)")
    values = helper.make_tensor("c", TensorProto.FLOAT, [1], [1e-9])
    indices = helper.make_tensor("i", TensorProto.INT64, [1], [2])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [4]))
    result = convert_types(model, "float=float16", allow="approximate")
    (node,) = (each for each in result.graph.node if each.op_type == "Constant")
    found = numpy_helper.to_array(
        onnx.TensorProto.FromString(node.attribute[0].sparse_tensor.values.SerializeToString())
    )
    assert found.tolist() == [2.0**-24]


def saved_model(path: Path, number: float, data: str) -> onnx.ModelProto:
    """Save a model with a constant that nodes read in two types, in the file or in the data file `data`."""
    model = model_of("s = Softplus(c) p = MatMul(x, s) q = MatMul(x, c) y = Sub(q, p)")
    constant = np.random.default_rng(0).normal(size=(4, 500)).astype(np.float32)
    constant[0, 0] = number
    model.graph.initializer.append(numpy_helper.from_array(constant, "c"))
    saved = onnx.ModelProto.FromString(model.SerializeToString())
    onnx.save(saved, path, save_as_external_data=bool(data), location=data or None, size_threshold=0)
    return model


@pytest.mark.parametrize("data", ["", "weights.bin"])
def test_converts_files_with_a_constant_in_two_types(data: str, tmp_path: Path) -> None:
    path, target = tmp_path / "model.onnx", tmp_path / "out.onnx"
    model = saved_model(path, 1e-9, data)
    convert_file(path, target, types="float=float16", allow="approximate", keep_interface=True)
    result = onnx.load(target)
    assert op_types(result).count("Constant") == 1
    assert_equal(run(result, {"x": X}), run(model, {"x": X}), 1e-2)


@pytest.mark.parametrize("data", ["", "weights.bin"])
def test_refuses_files_with_a_constant_out_of_range(data: str, tmp_path: Path) -> None:
    path, target = tmp_path / "model.onnx", tmp_path / "out.onnx"
    saved_model(path, 1e9, data)
    with pytest.raises(ConversionRefused) as caught:
        convert_file(path, target, types="float=float16", allow="approximate")
    assert [each.place for each in caught.value.refusals] == ["graph, tensor 'c'"]
    assert not target.exists()


SMALL_SETTINGS = {
    "scales of QLinearMatMul": (
        21,
        """
        q = QuantizeLinear(x, tiny, nil) r = QLinearMatMul(q, small, nil, v, one, nil, large, nil)
        y = DequantizeLinear(r, one, nil)
        """,
        "float tiny = {0.05}, float small = {3e-8}, float large = {1.2e-7}, float one = {1}, "
        "uint8 nil = {0}, uint8[4, 2] v = {1, 2, 3, 4, 5, 6, 7, 8}",
    ),
    "step of Range": (
        27,
        "r = Range(zero, one, step) s = Shape(r) f = Cast<to = 1>(s) y = Add(x, f)",
        "float one = {1}, float step = {0.1}",
    ),
}


@pytest.mark.parametrize("name", SMALL_SETTINGS)
def test_small_settings_keep_their_type(name: str) -> None:
    opset, nodes, weights = SMALL_SETTINGS[name]
    model = model_of(nodes, opset, 10, weights=weights)
    assert_equal(run(half(model), {"x": X}), run(model, {"x": X}), 1e-2)


def model_with_default(default: Array) -> onnx.ModelProto:
    """Return a model that computes `y` from `k`, an int64 input with a default."""
    text = f"g (int64[{default.size}] k) => (int64[{default.size}] y) {{ y = Identity(k) }}"
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}')
    model.graph.initializer.append(numpy_helper.from_array(default, "k"))
    return model


@pytest.mark.parametrize("size", [2, 2000])
@pytest.mark.parametrize(("types", "allow"), [("int64=int32", ()), (["int64=int32", "float=float16"], CLAMP)])
def test_refuses_integer_defaults_out_of_range(size: int, types: Any, allow: Any, tmp_path: Path) -> None:
    model = model_with_default(np.array([*range(size - 1), 2**40]))
    onnx.save(model, tmp_path / "model.onnx")
    for convert in (
        lambda: convert_types(model, types, allow=allow),
        lambda: convert_file(tmp_path / "model.onnx", tmp_path / "out.onnx", types=types, allow=allow),
    ):
        with pytest.raises(ConversionRefused) as caught:
            convert()
        (refusal,) = caught.value.refusals
        assert (refusal.code, refusal.place) == ("value.overflow", "graph, tensor 'k'")
        assert refusal.reason == "a constant has the value 1,099,511,627,776, which int32 cannot represent"
        assert "clamp" not in refusal.remedy
    assert not (tmp_path / "out.onnx").exists()
    limits = np.array([-(2**31), 2**31 - 1])
    (found,) = run(convert_types(model_with_default(limits), "int64=int32"), {})
    assert found.tolist() == limits.tolist()


def test_renames_the_tensors_of_shardings() -> None:
    model = model_of("a = Neg(x) s = ReduceSum(a) y = Mul(a, s)", 21, 11)
    model.configuration.add(name="cfg", num_devices=2)
    for node in model.graph.node:
        placed = node.device_configurations.add(configuration_id="cfg")
        for name in (*node.input, *node.output):
            placed.sharding_spec.add(tensor_name=name, device=[0])
    checked = check(model)
    result = half(model)
    assert check(result) == checked
    specs = {
        node.op_type: [each.tensor_name for each in node.device_configurations[0].sharding_spec]
        for node in result.graph.node
        if node.device_configurations
    }
    assert specs == {
        "Neg": ["x_float16", "a"],
        "ReduceSum": ["a_float", "s"],
        "Mul": ["a", "s_float16", "y_1"],
    }
