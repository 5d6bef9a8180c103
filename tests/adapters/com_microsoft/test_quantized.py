"""Quantized operators of com.microsoft equal onnxruntime's kernels bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.com_microsoft import NodeCase, assert_replaced, case, model_of, without_microsoft
from support.execution import Array, run
from support.forms import FORMS, RANKED_FORMS

from opshift import ConversionRefused
from opshift.registry.steps import Allow

f = np.float32
TYPES: list[Any] = [np.uint8, np.int8]
WIDE_TYPES: list[Any] = [np.uint16, np.int16]
SCALES = [
    pytest.param((0.5, 0.25, 1.0), id="ties"),
    pytest.param((0.11, 0.33, 0.22), id="decimal"),
    pytest.param((0.0173, 0.0091, 0.0314), id="fine"),
]


def _numbers(shape: tuple[int, ...], element_type: Any, seed: int = 0) -> Array:
    limits = np.iinfo(element_type)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(element_type)


def _zeros(element_type: Any) -> tuple[Any, Any, Any]:
    limits = np.iinfo(element_type)
    return element_type(limits.min + 101), element_type(limits.min + 128), element_type(limits.min + 137)


def _binary(op: str, shapes: Any, scales: Any, element_type: Any, zeros: Any) -> NodeCase:
    (a, b), (sa, sb, sc), (za, zb, zc) = shapes, map(f, scales), zeros
    return case(op, _numbers(a, element_type), sa, za, _numbers(b, element_type, 1), sb, zb, sc, zc)


@pytest.mark.parametrize("element_type", TYPES)
@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_arithmetic_rounds_like_the_kernel(op: str, scales: Any, element_type: Any) -> None:
    given = _binary(op, ((200, 301), (200, 301)), scales, element_type, _zeros(element_type))
    for form in ("fed", "initializer"):
        assert_replaced(given, form)


@pytest.mark.parametrize(
    "shapes",
    [((40, 1), (40, 300)), ((1,), (70, 80)), ((), (500,)), ((70, 80), ()), ((60, 50), (50,)),
     ((50,), (60, 50)), ((7, 1), (7, 1)), ((7, 1), (1,)), ((), ()), ((256, 1, 1), (256, 256, 1))],
)  # fmt: skip
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_arithmetic_broadcasts(op: str, shapes: Any) -> None:
    assert_replaced(_binary(op, shapes, (0.11, 0.33, 0.22), np.uint8, _zeros(np.uint8)))


@pytest.mark.parametrize(
    ("first", "second"),
    [((), ()), ((1,), (1,)), ((1,), (3, 1)), ((3, 1), (1,)), ((), (3, 1)), ((3, 1), ()), ((1, 1), (3, 1)),
     ((3, 1), (1, 1)), ((3, 1), (3, 1)), ((2, 1, 1), (2, 3, 1)), ((2, 3, 1), (2, 1, 1)), ((2, 1), (1, 3)),
     ((1, 3), (2, 1)), ((3,), ()), ((), (3,))],
)  # fmt: skip
def test_sums_add_the_operands_in_the_order_of_the_kernel(first: Any, second: Any) -> None:
    """The sum of these numbers is 33 in one order, and 34 in the other."""
    operands = np.full(first, 19, np.uint8), np.full(second, 111, np.uint8)
    scales, zeros = np.array([0.11, 0.33, 0.22], f), np.array([3, 100, 9], np.uint8)
    parts = [part for each in zip(operands, scales, zeros, strict=False) for part in each]
    assert_replaced(case("QLinearAdd", *parts, scales[2], zeros[2]))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_arithmetic_in_forms(op: str, form: str) -> None:
    given = _binary(op, ((3, 4), (3, 4)), (0.5, 0.25, 1.0), np.uint8, _zeros(np.uint8))
    is_unknown = op == "QLinearAdd" and form in ("symbolic", "no shapes")
    for opset in (8, 11, 21):
        assert_replaced(given, form, opset, allow=["approximate"] if is_unknown else [])


@pytest.mark.parametrize(
    ("first", "second", "is_exact"),
    [
        (("n", 5), ("n", 5), True),
        (("n", 5), ("m", "k"), True),
        (("n", 5, "h", "w"), ("n", 5, "h", "w"), True),
        ((1,), ("m", "k"), True),
        (("n", 1), ("n", 5), True),
        (("n", "w"), ("n", "w"), False),
        (("n", "w"), (5,), False),
        (("n", 1), ("n", "w"), False),
        (None, (5,), False),
        ((5,), None, True),
    ],
)
def test_sums_require_an_allowance_if_the_order_of_operands_is_unknown(
    first: Any, second: Any, is_exact: bool
) -> None:
    """Kernels swap operands that depend on the dimensions; a symbol may be 1."""
    operands = [np.ones((2,) * len(shape or (1,)), np.uint8) for shape in (first, second)]
    scale, zero = f(1), np.uint8(0)
    model, _ = model_of(case("QLinearAdd", operands[0], scale, zero, operands[1], scale, zero, scale, zero))
    for index, shape in ((0, first), (3, second)):
        model.graph.input[index].CopyFrom(
            helper.make_tensor_value_info(f"x{index}", onnx.TensorProto.UINT8, shape)
        )
    if is_exact:
        without_microsoft(model, 17)
    else:
        with pytest.raises(ConversionRefused, match="the error is at most one step"):
            without_microsoft(model, 17)
        without_microsoft(model, 17, ["approximate"])


def test_known_scales_are_folded() -> None:
    given = _binary("QLinearMul", ((3, 4), (3, 4)), (0.5, 0.25, 1.0), np.uint8, _zeros(np.uint8))
    result = assert_replaced(given, "initializer")
    assert len(result.graph.node) == 10
    assert len(_binary("QLinearAdd", ((3,), (3,)), (1, 1, 1), np.uint8, (0, 0, 0)).inputs) == 8


def _cases(element_type: Any) -> Iterator[Any]:
    data, other = _numbers((2, 3, 8, 10), element_type), _numbers((2, 3, 8, 10), element_type, 1)
    za, zb, zc = _zeros(element_type)
    sa, sb, sc = f(0.11), f(0.07), f(0.22)
    zero = None
    many = np.concatenate([_numbers((8, 300), element_type), _numbers((8, 300), element_type, 2) // 4])
    yield "QLinearSigmoid", case("QLinearSigmoid", data, sa, za, f(1 / 256), zc)
    yield "QLinearLeakyRelu", case("QLinearLeakyRelu", data, sa, za, sc, zc, alpha=0.3)
    yield (
        "QLinearWhere",
        case("QLinearWhere", data > za, data, sa, za, other, sb, zb, sc, zc, outputs=[element_type]),
    )
    yield (
        "QLinearConcat",
        case(
            "QLinearConcat",
            sc,
            zc,
            data,
            sa,
            za,
            other,
            sb,
            zb,
            data,
            sc,
            zc,
            axis=-1,
            outputs=[element_type],
        ),
    )
    for axis, opset in ((-1, 13), (1, 13), (1, 11), (-1, 12)):
        yield (
            f"QLinearSoftmax {axis} {opset}",
            case("QLinearSoftmax", data, sa, za, f(1 / 256), zc, axis=axis, opset=opset),
        )
    yield (
        "QLinearSoftmax of many",
        case("QLinearSoftmax", many, f(0.02), za, f(0.0031), zc, axis=-1, opset=13),
    )
    yield (
        "QLinearSoftmax without zero point",
        case("QLinearSoftmax", many, f(0.02), zero, f(0.0031), element_type(0), opset=13),
    )
    largest_twice = np.array([[3, 3, 3, 100, 100], [100, 3, 100, 100, 100]], element_type)
    for levels in (5, 7, 9, 11):
        yield (
            f"QLinearSoftmax ties of {levels}",
            case("QLinearSoftmax", largest_twice, f(0.5), za, f(1 / (levels + 0.5)), zc, opset=13),
        )
    for last in (0, 1):
        yield (
            f"QLinearGlobalAveragePool {last}",
            case("QLinearGlobalAveragePool", data, sa, za, sc, zc, channels_last=last),
        )
        pools: dict[str, dict[str, Any]] = {
            "plain": {"kernel_shape": (2, 3)},
            "strides": {"kernel_shape": (3, 3), "strides": (2, 2)},
            "pads": {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1)},
            "counted": {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1), "count_include_pad": 1},
            "ceil": {"kernel_shape": (3, 3), "strides": (2, 2), "ceil_mode": 1},
            "same": {"kernel_shape": (3, 3), "strides": (2, 2), "auto_pad": "SAME_UPPER"},
        }
        for name, attributes in pools.items():
            given = case("QLinearAveragePool", data, sa, za, f(0.05), zc, channels_last=last, **attributes)
            yield f"QLinearAveragePool {name} {last}", given
    yield "NhwcMaxPool", case("NhwcMaxPool", data, kernel_shape=(2, 2), strides=(2, 1))
    yield (
        "NhwcMaxPool padded",
        case("NhwcMaxPool", data, kernel_shape=(3, 3), pads=(1, 1, 1, 1), dilations=(1, 2)),
    )


@pytest.mark.parametrize("element_type", TYPES)
@pytest.mark.parametrize("name", [name for name, _ in _cases(np.uint8)])
def test_equals_the_kernel(name: str, element_type: Any) -> None:
    given = dict(_cases(element_type))[name]
    allow = _allowed(given)
    for form, opset in (("fed", 17), ("initializer", 13), ("symbolic", 12), ("fed", 21)):
        assert_replaced(given, form, opset, allow=allow)


def _allowed(given: NodeCase) -> list[Allow]:
    # AveragePool does not define the order of its sums.
    return ["approximate"] if given.op_type == "QLinearAveragePool" else []


def test_average_pool_requires_an_allowance() -> None:
    given = dict(_cases(np.uint8))["QLinearAveragePool plain 0"]
    with pytest.raises(ConversionRefused) as caught:
        without_microsoft(model_of(given)[0], 17)
    (refusal,) = caught.value.refusals
    assert "a different order than the kernel; the error is at most one step" in refusal.reason
    assert "--allow approximate" in refusal.remedy


@pytest.mark.parametrize("op", ["QLinearSigmoid", "QLinearLeakyRelu", "QLinearAdd", "QLinearMul"])
def test_omitted_zero_points_are_zero(op: str) -> None:
    data, zero = _numbers((4, 5), np.int8), np.int8(0)
    operands = 2 if op in ("QLinearAdd", "QLinearMul") else 1
    model, feeds = model_of(case(op, *[data, f(0.11), zero] * operands, f(0.22), zero))
    expected = run(model, feeds)
    assert_replaced(case(op, *[data, f(0.11), None] * operands, f(0.22)), expected=expected)


@pytest.mark.parametrize("form", RANKED_FORMS)
@pytest.mark.parametrize(
    "name",
    ["QLinearSigmoid", "QLinearLeakyRelu", "QLinearWhere", "QLinearConcat", "QLinearSoftmax -1 13",
     "QLinearGlobalAveragePool 0", "QLinearAveragePool plain 0", "NhwcMaxPool"],
)  # fmt: skip
def test_forms(name: str, form: str) -> None:
    if (name, form) == ("QLinearConcat", "function"):
        pytest.skip("onnxruntime cannot infer the type of QLinearConcat in a function")
    given = dict(_cases(np.uint8))[name]
    assert_replaced(given, form, allow=_allowed(given))


def _products() -> Iterator[Any]:
    rng = np.random.default_rng(5)
    bias, column_scale = rng.integers(-3000, 3000, 50).astype(np.int32), rng.uniform(0.01, 0.1, 50).astype(f)
    float_bias = rng.normal(size=50).astype(f)
    for a, b in ((np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)):
        left, right = _numbers((40, 30), a), _numbers((30, 50), b, 1)
        za, zb, columns = _zeros(a)[0], _zeros(b)[1], _numbers((50,), b, 3)
        sa, sb, sy, zy = f(0.11), f(0.07), f(2.2), a(np.iinfo(a).min + 99)
        kinds = f"{np.dtype(a)} {np.dtype(b)}"
        yield f"QGemm {kinds}", case("QGemm", left, sa, za, right, sb, zb, bias, sy, zy)
        yield f"QGemm {kinds} float", case("QGemm", left, sa, za, right, sb, zb, bias, outputs=[f], alpha=0.5)
        yield (
            f"QGemm {kinds} without addend",
            case("QGemm", left, sa, za, right, sb, zb, None, sy, zy, alpha=0.3),
        )
        yield (
            f"QGemm {kinds} per column",
            case("QGemm", left, sa, za, right, column_scale, columns, bias, sy, zy),
        )
        yield (
            f"QGemm {kinds} transposed",
            case("QGemm", left.T.copy(), sa, za, right.T.copy(), sb, zb, bias, sy, zy, transA=1, transB=1),
        )
        yield (
            f"MatMulIntegerToFloat {kinds}",
            case("MatMulIntegerToFloat", left, right, sa, sb, za, zb, float_bias, outputs=[f]),
        )
        yield (
            f"MatMulIntegerToFloat {kinds} plain",
            case("MatMulIntegerToFloat", left, right, sa, sb, outputs=[f]),
        )
        yield (
            f"MatMulIntegerToFloat {kinds} per column",
            case("MatMulIntegerToFloat", left, right, sa, column_scale, za, columns, outputs=[f]),
        )
    floats = rng.normal(size=(2, 7, 30)).astype(f)
    for b in TYPES:
        right, columns = _numbers((30, 50), b, 1), _numbers((50,), b, 3)
        name = f"DynamicQuantizeMatMul {np.dtype(b)}"
        yield name, case("DynamicQuantizeMatMul", floats, right, f(0.07), _zeros(b)[1], float_bias)
        yield f"{name} plain", case("DynamicQuantizeMatMul", floats, right, f(0.07))
        yield (
            f"{name} per column",
            case("DynamicQuantizeMatMul", floats, right, column_scale, columns, float_bias),
        )


@pytest.mark.parametrize(("name", "given"), list(_products()))
def test_products_equal_the_kernel(name: str, given: NodeCase) -> None:
    for form, opset in (("fed", 17), ("initializer", 11), ("symbolic", 13), ("no shapes", 21)):
        assert_replaced(given, form, opset, tolerance=1e-6)


@pytest.mark.parametrize("bias", [[], [np.array([0.5], f)]], ids=["no bias", "bias"])
@pytest.mark.parametrize("op", ["MatMulIntegerToFloat", "DynamicQuantizeMatMul"])
def test_products_of_vectors_are_scalars(op: str, bias: list[Array]) -> None:
    """Scales, zero points and biases with the shape (1,) do not broadcast the product."""
    scale, zero = np.array([0.07], f), np.array([3], np.uint8)
    left, right = _numbers((30,), np.uint8), _numbers((30,), np.uint8, 1)
    given = case(op, left, right, scale, scale, zero, zero, *bias, outputs=[f])
    if op == "DynamicQuantizeMatMul":
        given = case(op, left.astype(f), right, scale, zero, *bias)
    for form in RANKED_FORMS:
        assert_replaced(given, form, 17, tolerance=1e-6)


def test_quantize_and_dequantize() -> None:
    data, scale = np.linspace(-9, 9, 60).astype(f).reshape(3, 4, 5), np.array([0.1, 0.2, 0.3, 0.4], f)
    for element_type in TYPES:
        zeros = np.full(4, 7, element_type)
        for opset in (13, 17, 21):
            assert_replaced(
                case("QuantizeLinear", data, scale, zeros, axis=1, outputs=[element_type]), "fed", opset
            )
            assert_replaced(
                case("QuantizeLinear", data, f(0.1), element_type(3), outputs=[element_type]), "fed", opset
            )
            numbers = _numbers((3, 4, 5), element_type)
            assert_replaced(
                case("DequantizeLinear", numbers, scale, zeros, axis=-2, outputs=[f]), "fed", opset
            )
            assert_replaced(case("DequantizeLinear", numbers, f(0.1), outputs=[f]), "fed", opset)
    for wide in WIDE_TYPES:
        assert_replaced(case("QuantizeLinear", data, f(0.001), wide(3), outputs=[wide]), "fed", 21)
        assert_replaced(
            case("DequantizeLinear", _numbers((9,), wide), f(0.001), wide(3), outputs=[f]), "fed", 21
        )


def test_quantized_mean() -> None:
    data = _numbers((3, 4, 5), np.uint8)
    mean = ((data.astype(f) - 100) * f(0.1)).mean(axis=1)
    expected = np.clip(np.rint(mean / f(0.05)) + 128, 0, 255).astype(np.uint8)
    given = case(
        "QLinearReduceMean", data, f(0.1), np.uint8(100), f(0.05), np.uint8(128), axes=[1], keepdims=0
    )
    assert_replaced(given, expected=[expected])
