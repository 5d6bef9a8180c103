"""BitShift, the Bitwise operators and BitCast, before they came."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import helper
from support.running import Array, build

from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
UNSIGNED = (np.uint8, np.uint16, np.uint32, np.uint64)
SIGNED = (np.int8, np.int16, np.int32, np.int64)


def _ends(kind: type) -> Array:
    """The least and the greatest numbers of a type, and some between."""
    info = np.iinfo(kind)
    found = [info.min, info.min + 1, info.max // 3, 0, 1, 5, info.max - 1, info.max]
    return np.array(found, kind)


def _counts(kind: type, beyond: bool) -> Array:
    width = np.iinfo(kind).bits
    return np.array([0, 1, width // 2, width - 1] + [width, 100] * beyond, kind).reshape(-1, 1)


def _model(op: str, opset: int, kind: type, *arrays: Array, **attributes: str) -> onnx.ModelProto:
    feeds: dict[str, Array] = {f"x{place}": array for place, array in enumerate(arrays)}
    node = helper.make_node(op, list(feeds), ["y"], name="node", **attributes)
    return build([node], feeds, {"y": helper.np_dtype_to_tensor_dtype(np.dtype(kind))}, opset)


def _shifted(values: Array, counts: Array, direction: str) -> Array:
    """What is defined from 28 on, in Python's integers."""
    width = np.iinfo(values.dtype).bits

    def one(value: int, count: int) -> int:
        inside = 0 <= count < width
        if direction == "RIGHT":
            return value >> (count if inside else width)
        return value << count if inside else 0

    pairs = np.broadcast_arrays(values.astype(object), counts.astype(object))
    found = np.frompyfunc(one, 2, 1)(*pairs)
    wrapped = np.frompyfunc(lambda number: number % (1 << width), 1, 1)(found).astype(np.uint64)
    return np.asarray(wrapped.astype(values.dtype))


@pytest.mark.parametrize("target", [7, 8, 9, 10])
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("kind", UNSIGNED)
def test_shifts_of_unsigned_integers(kind: type, direction: str, target: int, converted: Converted) -> None:
    values, counts = _ends(kind), _counts(kind, beyond=False)
    model = _model("BitShift", 11, kind, values, counts, direction=direction)
    expected = [_shifted(values, counts, direction)]
    converted(model, target, {"x0": values, "x1": counts}, expected, 0)


@pytest.mark.parametrize("target", [7, 10, 13])
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("kind", [*UNSIGNED, *SIGNED])
def test_counts_beyond_the_width(kind: type, direction: str, target: int, converted: Converted) -> None:
    values, counts = _ends(kind), _counts(kind, beyond=True)
    if kind in SIGNED:
        counts = np.concatenate([counts, np.array([[-1], [np.iinfo(kind).min]], kind)])
    model = _model("BitShift", 28, kind, values, counts, direction=direction)
    expected = [_shifted(values, counts, direction)]
    converted(model, target, {"x0": values, "x1": counts}, expected, 0)


@pytest.mark.parametrize("target", [7, 9, 13, 17])
@pytest.mark.parametrize("op", ["BitwiseAnd", "BitwiseOr", "BitwiseXor"])
@pytest.mark.parametrize("kind", [*UNSIGNED, *SIGNED])
def test_logic_of_bits(kind: type, op: str, target: int, converted: Converted) -> None:
    first = _ends(kind)
    second: Array = (
        np.random.default_rng(0).permutation(np.concatenate([first, first // 7])).reshape(2, -1, 1)
    )
    operation = {"BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor}[op]
    model = _model(op, 18, kind, first, second)
    converted(model, target, {"x0": first, "x1": second}, [operation(first, second)], 0)


@pytest.mark.parametrize("target", [7, 17])
@pytest.mark.parametrize("kind", [*UNSIGNED, *SIGNED])
def test_inverted_bits(kind: type, target: int, converted: Converted) -> None:
    values = _ends(kind)
    converted(_model("BitwiseNot", 18, kind, values), target, {"x0": values}, [~values], 0)


@pytest.mark.parametrize(
    ("source", "to"),
    [
        pytest.param(np.int8, np.uint8, id="the sign bit becomes a value"),
        pytest.param(np.uint16, np.int16, id="the greatest bit becomes the sign"),
        pytest.param(np.uint64, np.int64, id="of 64 bits"),
        pytest.param(np.int32, np.int32, id="no change"),
    ],
)
def test_bits_of_integers_are_kept(source: type, to: type, converted: Converted) -> None:
    values = _ends(source)
    number = helper.np_dtype_to_tensor_dtype(np.dtype(to))
    node = helper.make_node("BitCast", ["x0"], ["y"], name="node", to=number)
    model = build([node], {"x0": values}, {"y": number}, 26)
    converted(model, 7, {"x0": values}, [values.view(to)], 0)


def test_bits_of_floats_are_refused(refusal: Refusing) -> None:
    node = helper.make_node("BitCast", ["x"], ["y"], to=onnx.TensorProto.INT32)
    model = build([node], {"x": np.ones(2, np.float32)}, {"y": onnx.TensorProto.INT32}, 26)
    found = refusal(model, 25)
    assert found.reason == "no operator of opset 25 reinterprets the bits of float as int32"
    assert (
        found.remedy == "use Cast if the value is to be converted, or reinterpret the bits outside the model"
    )
