"""Operators of com.microsoft with quantized weights compute the same as standard operators."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper
from support.com_microsoft import DOMAIN, NodeCase, assert_replaced, case, model_of, without_microsoft
from support.execution import Array, Feeds, assert_equal, build, run
from support.forms import FORMS, RANKED_FORMS

from opshift import ConversionRefused


def _product(
    *,
    columns: int = 5,
    rows: int = 64,
    block: int = 16,
    bits: int = 4,
    zeros: str = "",
    order: bool = False,
    bias: bool = False,
    flat: bool = True,
    element_type: Any = np.float32,
    zero_type: Any = None,
    **attributes: Any,
) -> NodeCase:
    """Return a node MatMulNBits; `zeros` is the form of the zero points, `order` adds block indices."""
    random = np.random.default_rng(rows + bits)
    blocks = -(-rows // block)
    zero_points = {
        "": None,
        "packed": random.integers(0, 256, (columns, -(-blocks * bits // 8)), np.uint8),
        "numbers": random.uniform(0, 2**bits, (columns, blocks)).astype(zero_type or element_type),
    }[zeros]
    scales = random.uniform(0.1, 1, (columns, blocks)).astype(element_type)
    if flat:
        scales = scales.reshape(-1)
        zero_points = None if zero_points is None else zero_points.reshape(-1)
    return case(
        "MatMulNBits",
        random.normal(size=(2, 3, rows)).astype(element_type),
        random.integers(0, 256, (columns, blocks, block * bits // 8), np.uint8),
        scales,
        zero_points,
        random.integers(0, blocks, rows, np.int32) if order else None,
        random.normal(size=columns).astype(element_type) if bias else None,
        N=columns,
        K=rows,
        block_size=block,
        bits=bits,
        **attributes,
    )


PRODUCTS = {
    "4 bits": _product(),
    "2 bits": _product(bits=2, rows=80),
    "8 bits": _product(bits=8),
    "packed zeros": _product(zeros="packed"),
    "odd number of blocks": _product(zeros="packed", rows=48, flat=False),
    "2 bits packed zeros": _product(zeros="packed", bits=2, rows=80),
    "8 bits packed zeros": _product(zeros="packed", bits=8),
    "zeros as numbers": _product(zeros="numbers"),
    "incomplete block": _product(rows=40, zeros="packed"),
    "large block": _product(rows=96, block=32, columns=8),
    "order": _product(order=True, flat=False),
}


@pytest.mark.parametrize("form", RANKED_FORMS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_product_equals_the_kernel(name: str, form: str) -> None:
    assert_replaced(PRODUCTS[name], form, tolerance=1e-4)


@pytest.mark.parametrize("opset", [9, 13, 21, 25])
def test_product_equals_the_kernel_at_other_opsets(opset: int) -> None:
    assert_replaced(PRODUCTS["incomplete block"], opset=opset, tolerance=1e-4)


@pytest.mark.parametrize("name", ["4 bits", "packed zeros", "zeros as numbers"])
def test_half_precision_product_equals_the_kernel(name: str) -> None:
    zeros = {"4 bits": "", "packed zeros": "packed", "zeros as numbers": "numbers"}[name]
    assert_replaced(_product(zeros=zeros, element_type=np.float16), tolerance=5e-2)


@pytest.mark.parametrize("form", RANKED_FORMS)
@pytest.mark.parametrize(
    ("element_type", "zero_type", "tolerance"), [("float32", "float16", 1e-4), ("float16", "float32", 5e-2)]
)
def test_zero_points_may_have_another_type(
    element_type: str, zero_type: str, tolerance: float, form: str
) -> None:
    given = _product(zeros="numbers", element_type=np.dtype(element_type), zero_type=np.dtype(zero_type))
    assert_replaced(given, form, tolerance=tolerance)


def test_product_adds_the_bias() -> None:
    """Onnxruntime infers no shape for a bias that is not an initializer."""
    given = _product(bias=True)
    bias = given.inputs[5]
    without_bias = given._replace(inputs=given.inputs[:5])
    model, feeds = model_of(without_bias)
    assert_replaced(given, expected=[run(model, feeds)[0] + bias], tolerance=1e-4)


def test_less_accurate_product_is_close() -> None:
    """A kernel may quantize the data, too; the standard operators do not."""
    exact, given = _product(), _product(accuracy_level=4)
    model, feeds = model_of(exact)
    assert_replaced(given, "initializer", expected=run(model, feeds), tolerance=1e-4)


REFUSED = {
    "weight_prepacked is set": _product(weight_prepacked=1),
    "the size of packed numbers is 5 bits, expected 2, 4 or 8": _product(bits=5, rows=64),
    "kernels of onnxruntime ignore integer zero points": _product(order=True, zeros="packed"),
    "transB is 0": case("MatMulBnb4", np.ones((1, 16), np.float32), np.zeros(8, np.uint8),
                        np.ones(1, np.float32), N=1, K=16, block_size=16, quant_type=0, transB=0),
}  # fmt: skip


@pytest.mark.parametrize("reason", REFUSED)
def test_refuses_other_layouts(reason: str) -> None:
    with pytest.raises(ConversionRefused, match=reason):
        without_microsoft(model_of(REFUSED[reason])[0], 17)


def _coded(rows: int, columns: int, kind: int) -> NodeCase:
    random, count = np.random.default_rng(rows), rows * columns
    return case(
        "MatMulBnb4",
        random.normal(size=(2, 3, rows)).astype(np.float32),
        random.integers(0, 256, (count + 1) // 2, np.uint8),
        random.uniform(0.1, 1, -(-count // 16)).astype(np.float32),
        N=columns,
        K=rows,
        block_size=16,
        quant_type=kind,
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("rows", "columns"), [(32, 5), (24, 3), (33, 3)])
@pytest.mark.parametrize("kind", [0, 1])
def test_product_of_codes_equals_the_kernel(rows: int, columns: int, kind: int, form: str) -> None:
    assert_replaced(_coded(rows, columns, kind), form)


def _table(
    *shape: int,
    bits: int = 4,
    kind: Any = np.uint8,
    zeros: bool = False,
    indices: tuple[int, ...] = (2, 3),
    gather: int = 0,
    axis: int = 1,
    index_type: Any = np.int64,
    element_type: Any = np.float32,
) -> NodeCase:
    """Return a node GatherBlockQuantized; the shape is that of the unpacked table."""
    random = np.random.default_rng(sum(shape))
    scale_shape = [
        -(-size // 16) if position == axis % len(shape) else size for position, size in enumerate(shape)
    ]

    def numbers(dims: list[int]) -> Array:
        if kind is np.uint8:
            return random.integers(0, 256, [*dims[:-1], -(-dims[-1] * bits // 8)], np.uint8)
        low = -8 if kind is ml_dtypes.int4 else 0
        return random.integers(low, low + 16, dims).astype(kind)

    return case(
        "GatherBlockQuantized",
        numbers(list(shape)),
        random.integers(-shape[gather], shape[gather], indices).astype(index_type),
        random.uniform(0.1, 1, scale_shape).astype(element_type),
        numbers(scale_shape) if zeros else None,
        outputs=[element_type],
        bits=bits,
        block_size=16,
        gather_axis=gather,
        quantize_axis=axis,
    )


TABLES = {
    "4 bits": _table(7, 64),
    "zeros": _table(7, 64, zeros=True),
    "odd number of blocks": _table(7, 48, zeros=True),
    "incomplete block": _table(7, 40, zeros=True),
    "8 bits": _table(7, 64, bits=8),
    "8 bits zeros": _table(7, 64, bits=8, zeros=True),
    "2 bits zeros": _table(7, 64, bits=2, zeros=True),
    "rank 3": _table(3, 4, 32, axis=2, zeros=True),
    "negative axis": _table(3, 4, 32, axis=-1),
    "scalar index": _table(7, 64, indices=(), index_type=np.int32),
    "half": _table(7, 64, zeros=True, element_type=np.float16),
}
INT4_TABLES = {
    "signed": _table(7, 64, kind=ml_dtypes.int4),
    "signed zeros": _table(7, 64, kind=ml_dtypes.int4, zeros=True),
    "unsigned zeros": _table(7, 64, kind=ml_dtypes.uint4, zeros=True),
    "first axis": _table(32, 5, kind=ml_dtypes.int4, gather=1, axis=0),
    "same axis": _table(7, 64, kind=ml_dtypes.int4, gather=1, axis=1, zeros=True),
    "middle axis": _table(3, 32, 4, kind=ml_dtypes.uint4, gather=2, axis=1, zeros=True),
}


@pytest.mark.parametrize("form", RANKED_FORMS)
@pytest.mark.parametrize("name", TABLES)
def test_selection_equals_the_kernel(name: str, form: str) -> None:
    if form == "symbolic" and TABLES[name].inputs[3] is not None:
        pytest.skip("onnxruntime compares symbolic dimensions of scales and zero points")
    assert_replaced(TABLES[name], form, tolerance=1e-6)


def _with_constant_table(given: NodeCase) -> tuple[onnx.ModelProto, Feeds]:
    """Return a model in which only the indices are fed: numpy arrays of 4-bit integers cannot be fed."""
    names = ["data", "indices", "scales", "zeros"]
    arrays = {name: each for name, each in zip(names, given.inputs, strict=True) if each is not None}
    fed = {"indices": arrays.pop("indices")}
    node = helper.make_node(given.op_type, [*arrays, *fed], ["y"], domain=DOMAIN, **given.attributes)
    node.input[:] = [name if name in arrays or name in fed else "" for name in names]
    outputs = {"y": onnx.TensorProto.FLOAT}
    model = build([node], fed, outputs, {"": 21, DOMAIN: 1}, ir_version=10, initializers=arrays)
    return model, fed


@pytest.mark.parametrize("name", INT4_TABLES)
def test_selection_from_4_bit_integers_equals_the_kernel(name: str) -> None:
    model, feeds = _with_constant_table(INT4_TABLES[name])
    assert_equal(run(without_microsoft(model, 21), feeds), run(model, feeds), 1e-6)


@pytest.mark.parametrize("name", ["signed", "unsigned zeros"])
def test_selection_refuses_4_bit_integers_below_opset_21(name: str) -> None:
    """With integers of 8 bits instead, the node would unpack bytes."""
    with pytest.raises(ConversionRefused, match="may depend on the number of bits"):
        without_microsoft(_with_constant_table(INT4_TABLES[name])[0], 20)
