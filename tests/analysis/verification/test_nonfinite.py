"""Conversions that are wrong for infinities or NaN only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.execution import build

from opshift import VerificationFailed, convert_version, verify

X = np.zeros((4, 5), np.float32)

CONSTANTS = {
    "zero": np.float32(0),
    "one": np.float32(1),
    "large": np.float32(3e38),
    "small": np.float32(-3e38),
    "axis": np.array([1]),
    "byte": np.int8(0),
}


def model_of(*nodes: onnx.NodeProto, opset: int = 17) -> onnx.ModelProto:
    initializers = {name: np.array(value) for name, value in CONSTANTS.items()}
    return build(nodes, {"x": X}, ["y"], opset, initializers=initializers)


def node(op_type: str, inputs: Sequence[str], output: str = "y", **attributes: object) -> onnx.NodeProto:
    return helper.make_node(op_type, inputs, [output], **attributes)


IDENTITY = model_of(node("Identity", ["x"]))

WRONG = {
    "an infinity becomes the largest number": (IDENTITY, model_of(node("Clip", ["x", "small", "large"]))),
    "NaN becomes 0": (
        IDENTITY,
        model_of(node("IsNaN", ["x"], "n"), node("Where", ["n", "zero", "x"])),
    ),
    "a negative infinity becomes positive": (
        IDENTITY,
        model_of(
            node("IsInf", ["x"], "n", detect_positive=0),
            node("Neg", ["x"], "m"),
            node("Where", ["n", "m", "x"]),
        ),
    ),
    "NaN is not equal to itself": (
        model_of(node("Equal", ["x", "x"], "e"), node("Cast", ["e"], to=1)),
        model_of(
            node("IsInf", ["x"], "i"),
            node("Or", ["i", "i"], "j"),
            node("Not", ["j"], "k"),
            node("Or", ["j", "k"], "t"),
            node("Cast", ["t"], to=1),
        ),
    ),
}


@pytest.mark.parametrize(("original", "converted"), WRONG.values(), ids=WRONG)
def test_finds_conversions_that_are_wrong_for_special_values_only(
    original: onnx.ModelProto, converted: onnx.ModelProto
) -> None:
    with pytest.raises(VerificationFailed) as caught:
        verify(original, converted)
    found = caught.value.verification
    assert found.nonfinite
    assert not found.equal
    # numbers do not show it
    assert verify(original, converted, runtime="onnxruntime").equal
    assert verify(original, converted, {"x": X}).equal


@pytest.mark.parametrize("element_type", ["float", "double", "float16"])
def test_accepts_equal_models(element_type: str) -> None:
    number = {"float": 1, "double": 11, "float16": 10}[element_type]
    x = X.astype(helper.tensor_dtype_to_np_dtype(number))
    model = build([node("Identity", ["x"])], {"x": x}, {"y": number}, 17)
    found = verify(model, model)
    assert (found.equal, found.samples, found.nonfinite) == (True, 3, 3)


def test_ignores_results_that_runtimes_define_differently() -> None:
    """Clip of onnxruntime has a limit if none is given, and that of onnx.reference has none."""
    original = model_of(node("Clip", ["x", "small"]))
    converted = model_of(node("Max", ["x", "small"]))
    assert verify(original, converted).equal


def test_ignores_integers_of_infinities_and_nan() -> None:
    original = model_of(node("Cast", ["x"], "i", to=7), node("Identity", ["i"]))
    converted = model_of(
        node("IsNaN", ["x"], "n"), node("Where", ["n", "one", "x"], "w"), node("Cast", ["w"], to=7)
    )
    for each in (original, converted):
        each.graph.output[0].type.tensor_type.elem_type = 7
    assert verify(original, converted).equal


OPEN = {
    "the maximum of NaN and numbers": (
        [node("Unsqueeze", ["x", "axis"], "c"), node("MaxPool", ["c"], kernel_shape=[2], dilations=[2])],
        1,
    ),
    "the integer of NaN": (
        [node("QuantizeLinear", ["x", "one", "byte"], "q"), node("DequantizeLinear", ["q", "one", "byte"])],
        1,
    ),
    "the integer of NaN or infinity": ([node("Cast", ["x"], "i", to=7), node("Cast", ["i"], to=1)], 0),
}


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")  # onnx.reference, for infinities
@pytest.mark.parametrize(("nodes", "samples"), OPEN.values(), ids=OPEN)
def test_leaves_out_values_whose_result_is_open(nodes: Sequence[onnx.NodeProto], samples: int) -> None:
    model = model_of(*nodes, opset=21)
    found = verify(model, model)
    assert (found.equal, found.nonfinite) == (True, samples)


def test_accepts_a_downgrade_of_dilated_windows() -> None:
    """The older MaxPool gets the elements in a different order, which decides between NaN and a number."""
    pool = node("MaxPool", ["x"], kernel_shape=[2, 2], dilations=[2, 2])
    model = build([pool], {"x": np.zeros((1, 1, 6, 6), np.float32)}, ["y"], 12)
    assert verify(model, convert_version(model, 9)).nonfinite == 1


IMAGE = np.zeros((1, 2, 6, 7), np.float32)
SIGNAL = np.zeros((1, 24, 1), np.float32)
BOXES = {"boxes": np.array([[0, 0, 4, 4], [1, 1, 5, 3]], np.float32), "batches": np.zeros(2, np.int64)}
SCALES = {"scales": np.array([1, 1, 0.5, 0.6], np.float32)}
SIZES = {"step": np.int64(4), "window": np.hanning(8).astype(np.float32)}
HEADS = np.zeros((1, 2, 4, 4), np.float32)
MASK = {"mask": np.array([[True, False, True, True]] * 4)}


def weighted_sum(
    op_type: str, x: Any, constants: dict[str, Any], opset: int, *, inputs: int = 1, **attributes: Any
) -> onnx.ModelProto:
    names = ["x", *[""] * (op_type == "Resize"), *(["x"] * (inputs - 1)), *constants]
    arrays = {name: np.array(value) for name, value in constants.items()}
    return build([node(op_type, names, **attributes)], {"x": x}, ["y"], opset, initializers=arrays)


WEIGHTED_SUMS = {
    "STFT": (weighted_sum("STFT", SIGNAL, SIZES, 17), 16),
    "DFT": (weighted_sum("DFT", SIGNAL, {}, 19, axis=1), 13),
    "determinant": (weighted_sum("Det", np.zeros((2, 3, 3), np.float32), {}, 18), 7),
    "antialiased": (weighted_sum("Resize", IMAGE, SCALES, 19, mode="linear", antialias=1), 13),
    "linear": (weighted_sum("Resize", IMAGE, SCALES, 19, mode="linear"), 9),
    "cubic": (
        weighted_sum("Resize", IMAGE, SCALES, 19, mode="cubic", coordinate_transformation_mode="asymmetric"),
        9,
    ),
    "regions": (
        weighted_sum("RoiAlign", IMAGE, BOXES, 16, mode="max", output_height=2, output_width=3),
        9,
    ),
    "attention": (weighted_sum("Attention", HEADS, MASK, 23, inputs=3), 13),
}


@pytest.mark.parametrize(("model", "target"), WEIGHTED_SUMS.values(), ids=WEIGHTED_SUMS)
def test_leaves_out_sums_whose_weights_may_be_zero(model: onnx.ModelProto, target: int) -> None:
    converted = convert_version(model, target, allow=["approximate"])
    for one, other in ((model, converted), (converted, model)):
        found = verify(one, other)
        assert (found.equal, found.nonfinite) == (True, 0)


def test_selected_elements_may_be_infinite() -> None:
    model = weighted_sum("Resize", IMAGE, SCALES, 19)
    assert verify(model, convert_version(model, 13)).nonfinite == 3


def test_keeps_inputs_of_the_caller() -> None:
    found = verify(IDENTITY, IDENTITY, {"x": X})
    assert (found.equal, found.nonfinite) == (True, 0)


def test_does_not_run_large_models_in_the_reference() -> None:
    x = np.zeros((300, 300), np.float32)
    model = build([node("Identity", ["x"])], {"x": x}, ["y"], 17)
    assert math.prod(x.shape) > 1 << 16
    assert verify(model, model).nonfinite == 0
