"""Verification of equal models, different models, and models that cannot be compared."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.execution import build
from support.planted import install_wrong_clip

import opshift
from opshift import CannotVerify, UsageError, VerificationFailed, convert_version, verify

GOLDEN = Path(__file__).parents[2] / "golden" / "segmenter-9.onnx"
X = np.zeros((2, 3), np.float32)


def clip_model(high: float = 1.0, opset: int = 10) -> onnx.ModelProto:
    """Build a model that clips from 0 to `high`; these bounds are inputs since opset 11."""
    return build([helper.make_node("Clip", ["x"], ["y"], min=0.0, max=high)], {"x": X}, ["y"], opset)


def single_node_model(
    op: str, opset: int = 17, element: int = TensorProto.FLOAT, shape: Any = (2, 3), **attributes: Any
) -> onnx.ModelProto:
    """Build a model with one node; x and y have the same element type."""
    graph = helper.make_graph(
        [helper.make_node(op, ["x"], ["y"], **attributes)],
        "g",
        [helper.make_tensor_value_info("x", element, [2, 3])],
        [helper.make_tensor_value_info("y", element, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@pytest.mark.parametrize("target", [11, 17, 26, 28])
def test_network_equals_its_conversion(target: int) -> None:
    verification = verify(GOLDEN, convert_version(GOLDEN, target))
    assert verification.equal
    (output,) = verification.outputs
    assert (output.name, output.type, output.shape) == ("mask", "float", (1, 4, 32))
    assert output.count == output.finite == 3 * 4 * 32
    assert output.absolute < 1e-6
    assert [(each.name, each.shape, each.given) for each in verification.inputs] == [
        ("image", (1, 3, 32, 32), False)
    ]


@pytest.mark.parametrize(
    "to_input",
    [
        pytest.param(lambda model: model, id="onnx message"),
        pytest.param(lambda model: model.SerializeToString(), id="bytes"),
        pytest.param(
            lambda model: opshift.ModelProto.FromString(model.SerializeToString()), id="opshift message"
        ),
    ],
)
def test_accepts_model_as(to_input: Callable[[onnx.ModelProto], Any]) -> None:
    assert verify(to_input(clip_model()), to_input(convert_version(clip_model(), 17))).equal


def test_reports_size_and_position_of_difference() -> None:
    with pytest.raises(
        VerificationFailed, match=r"output 'y' differs: 1 of 2 elements; 1.0 at \[1\] became 1.5"
    ) as error:
        verify(row_clip_model(1.0), row_clip_model(1.5), {"x": np.array([0.5, 3.0], np.float32)})
    (output,) = error.value.verification.outputs
    assert (output.equal, output.differing, output.absolute, output.relative) == (False, 1, 0.5, 0.5)


def row_clip_model(high: float) -> onnx.ModelProto:
    return build([helper.make_node("Clip", ["x"], ["y"], min=0.0, max=high)], {"x": X[0, :2]}, ["y"], 10)


@pytest.fixture
def wrong_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the adapter of Clip by a wrong one."""
    install_wrong_clip(monkeypatch)


@pytest.mark.usefixtures("wrong_adapter")
@pytest.mark.parametrize("runtime", ["auto", "onnxruntime", "reference"])
def test_detects_wrong_adapter(runtime: Any) -> None:
    with pytest.raises(VerificationFailed, match=r"1\.0 at .* became"):
        verify(clip_model(), convert_version(clip_model(), 17), runtime=runtime)


def test_applies_tolerance_to_floats_only() -> None:
    assert verify(row_clip_model(1.0), row_clip_model(1.001), tolerance=0.01).equal
    with pytest.raises(VerificationFailed):
        verify(row_clip_model(1.0), row_clip_model(1.001))
    integer_models = [
        single_node_model("Identity", element=TensorProto.INT64),
        single_node_model("Neg", element=TensorProto.INT64),
    ]
    with pytest.raises(VerificationFailed, match="became -"):
        verify(*integer_models, tolerance=100.0)


def test_compares_outputs_whose_sum_overflows() -> None:
    large = np.full((2, 3), 1.7e308)
    identity, negative = (single_node_model(op, element=TensorProto.DOUBLE) for op in ("Identity", "Neg"))
    assert verify(identity, identity, {"x": large}).equal
    with pytest.raises(VerificationFailed, match="6 of 6 elements"):
        verify(identity, negative, {"x": large})


def test_changed_shape_or_type_is_a_difference() -> None:
    """The computed outputs matter, not the declared types."""
    unsqueezed = single_node_model("Unsqueeze", 11, axes=[0])
    with pytest.raises(
        VerificationFailed, match=r"the shape of the output changed from \[2, 3\] to \[1, 2, 3\]"
    ):
        verify(single_node_model("Relu"), unsqueezed)
    cast = single_node_model("Cast", to=TensorProto.INT32)
    cast.graph.output[0].type.tensor_type.elem_type = TensorProto.INT32
    with pytest.raises(VerificationFailed, match="the type of the output changed from float to int32"):
        verify(single_node_model("Relu"), cast)


def test_failure_of_converted_model_is_a_difference() -> None:
    with pytest.raises(VerificationFailed, match=r"does not run: onnxruntime .*nonsense") as error:
        verify(single_node_model("Relu"), single_node_model("Relu", nonsense=1))
    assert error.value.verification.outputs == ()
    assert not error.value.verification.equal


def test_renamed_output_is_a_difference() -> None:
    renamed = single_node_model("Relu")
    renamed.graph.output[0].name = renamed.graph.node[0].output[0] = "z"
    with pytest.raises(
        VerificationFailed, match="the converted model has the outputs z instead of y"
    ) as error:
        verify(single_node_model("Relu"), renamed)
    assert "tolerance" not in error.value.remedy
    del renamed.graph.output[:]
    with pytest.raises(VerificationFailed, match="the converted model has no outputs instead of y"):
        verify(single_node_model("Relu"), renamed)


REFUSED = {
    "random numbers": (single_node_model("RandomNormalLike"), {}, "generates random numbers"),
    "supported by neither runtime": (
        single_node_model("Add", 5),
        {},
        "both models never ran on the same inputs: onnxruntime",
    ),
    "invalid node": (single_node_model("Relu", nonsense=1), {"runtime": "onnxruntime"}, "nonsense"),
    "opset too new": (
        single_node_model("Relu", 28),
        {"runtime": "onnxruntime"},
        "does not support ai.onnx 28",
    ),
    "element type without NumPy equivalent": (
        single_node_model("Relu", element=TensorProto.BFLOAT16),
        {"runtime": "onnxruntime"},
        "cannot pass bfloat16 ('x') to or from Python",
    ),
    "different meaning in onnx.reference": (
        single_node_model("Softmax", 5),
        {"runtime": "reference"},
        "evaluates ai.onnx.Softmax:1 as version 13, which computes different results",
    ),
}


@pytest.mark.parametrize(("model", "options", "message"), REFUSED.values(), ids=REFUSED)
def test_refuses_models_that_cannot_be_compared(model: onnx.ModelProto, options: Any, message: str) -> None:
    with pytest.raises(CannotVerify) as error:
        verify(model, model, **options)
    assert message in str(error.value)
    assert error.value.remedy


def test_selects_runtime_that_supports_model() -> None:
    """In Python, onnxruntime has no bfloat16 arrays, and it does not support opset 28."""
    bfloat16_model = single_node_model("Relu", element=TensorProto.BFLOAT16)
    assert [name.split()[0] for name in verify(bfloat16_model, bfloat16_model).runtimes] == [
        "onnx.reference"
    ] * 2
    newer = verify(single_node_model("Relu"), single_node_model("Relu", 28))
    assert [name.split()[0] for name in newer.runtimes] == ["onnxruntime", "onnx.reference"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"runtime": "tensorrt"}, "unknown runtime 'tensorrt'", id="unknown runtime"),
        pytest.param({"samples": 0}, "cannot compare 0 samples", id="no samples"),
        pytest.param({"samples": 1.5}, "cannot compare 1.5 samples", id="fractional samples"),
        pytest.param({"samples": True}, "cannot compare True samples", id="samples as truth value"),
        pytest.param({"seed": -1}, "the seed is -1", id="negative seed"),
        pytest.param({"seed": "a"}, "the seed is 'a'", id="seed as text"),
        pytest.param({"seed": 1.5}, "the seed is 1.5", id="fractional seed"),
        pytest.param({"tolerance": -1e-3}, "the tolerance is -0.001", id="negative tolerance"),
        pytest.param({"tolerance": float("nan")}, "the tolerance is nan", id="tolerance NaN"),
        pytest.param({"tolerance": "a"}, "the tolerance is 'a'", id="tolerance as text"),
        pytest.param({"tolerance": [1]}, r"the tolerance is \[1\]", id="tolerance as list"),
        pytest.param({"folder": 3}, "argument folder: expected a path, got int", id="folder as number"),
        pytest.param({"folder": ""}, "argument folder: the path is empty", id="empty folder"),
        pytest.param(
            {"custom_ops": 3},
            "argument custom_ops: expected a path or several, got int",
            id="library as number",
        ),
        pytest.param({"custom_ops": [""]}, "argument custom_ops: the path is empty", id="empty library"),
        pytest.param({"custom_ops": "a.so"}, "a.so: this library of custom", id="one library"),
        pytest.param({"inputs": 3}, "expected arrays by input name, or a path, as inputs", id="number"),
        pytest.param({"inputs": [X]}, "as inputs, got list", id="list of arrays"),
        pytest.param({"inputs": {"z": X}}, "'z' is not an input", id="unknown input"),
        pytest.param(
            {"inputs": {"x": X.astype(np.float64)}}, "the type double instead of float", id="different type"
        ),
        pytest.param({"inputs": "no.npz"}, "cannot be read", id="missing file"),
    ],
)
def test_refuses_wrong_arguments(options: Mapping[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as error:
        verify(clip_model(), clip_model(), **options)
    assert error.value.remedy


@pytest.mark.parametrize("whole", [2, np.int64(2)], ids=repr)
def test_accepts_numbers_of_numpy(whole: Any) -> None:
    found = verify(clip_model(), clip_model(), samples=whole, seed=whole, tolerance=np.float64(0.5))
    assert (found.samples, found.seed) == (2, 2)


@pytest.mark.parametrize("runtime", ["auto", "onnxruntime", "reference"])
def test_finds_external_weights(tmp_path: Path, runtime: Any) -> None:
    weights = numpy_helper.from_array(np.arange(3, dtype=np.float32), "w")
    model = build([helper.make_node("Add", ["x", "w"], ["y"])], {"x": X}, ["y"], 17)
    model.graph.initializer.append(weights)
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    converted = convert_version(tmp_path / "m.onnx", 13)
    assert verify(tmp_path / "m.onnx", converted, runtime=runtime).equal


def test_same_seed_gives_same_result() -> None:
    models = clip_model(), convert_version(clip_model(), 17)
    assert verify(*models, seed=3) == verify(*models, seed=3)


def test_result_converts_to_plain_data() -> None:
    data = json.loads(json.dumps(verify(clip_model(), clip_model()).as_dict()))
    assert data["equal"] is True
    names = {"runtimes", "samples", "seed", "inputs", "outputs", "equal", "nonfinite", "unreached"}
    assert set(data) == names
    assert data["outputs"][0]["tolerance"] == {"relative": 1e-4, "absolute": 1e-5}


@pytest.mark.parametrize("package", ["onnxruntime", "onnx"])
def test_works_with_one_runtime_installed(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    for each in [name for name in sys.modules if name.startswith(f"{package}.")]:
        monkeypatch.setitem(sys.modules, each, None)
    assert verify(single_node_model("Relu"), single_node_model("Relu")).equal


def test_refuses_runtime_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(
        CannotVerify, match=r"onnxruntime is not installed \(pip install 'opshift\[verify\]'\)"
    ):
        verify(single_node_model("Relu"), single_node_model("Relu"), runtime="onnxruntime")


def test_error_without_numpy_holds_remedy() -> None:
    script = (
        "import sys; sys.modules['numpy'] = None; import opshift\n"
        "try: opshift.verify(b'', b'')\n"
        "except opshift.CannotVerify as error: print(error)"
    )
    completed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert completed.stdout.strip() == "numpy is not installed (pip install 'opshift[verify]')"


ENCODER = """(string[N] x) => (int64[N] y) {
    y = ai.onnx.ml.LabelEncoder <keys_strings = ["cat", "dog"], values_int64s = [VALUES]> (x)
}"""
COMPARISON = "(uint8[8, 8] x, uint8[8, 8] z) => (bool[8, 8] y) { y = OPERATOR (x, z) }"
POOL = "(float[N, 1, H, W] x) => (float y) { z = MaxPool <kernel_shape = [2, 2], strides = STRIDES> (x) "
POOL += "y = ReduceMean <keepdims = 0> (z) }"
SLICE = """(float[B, S, 4] x) => (float[B, T, 4] y) {
    a = Constant <value = int64[1] {0}> ()
    z = Constant <value = int64[1] {END}> ()
    b = Constant <value = int64[1] {1}> ()
    y = Slice (x, a, z, b)
}"""
BATCH = """(float[N, 1, H, W] x) => (float[A, B] y) {
    z = MaxPool <kernel_shape = [40, 40]> (x)
    a = Constant <value = int64[2] {SIZES}> ()
    y = Reshape (z, a)
}"""
RARE_DIFFERENCES = {
    "in the strides of windows": (POOL.replace("STRIDES", "[2, 2]"), POOL.replace("STRIDES", "[3, 2]")),
    "beyond small sizes": (SLICE.replace("END", "6"), SLICE.replace("END", "9")),
    "for a batch of more than one": (BATCH.replace("SIZES", "0, -1"), BATCH.replace("SIZES", "1, -1")),
    "for a text that the model looks up": (
        ENCODER.replace("VALUES", "1, 2"),
        ENCODER.replace("VALUES", "1, 3"),
    ),
    "for equal bytes": (
        COMPARISON.replace("OPERATOR", "Less"),
        COMPARISON.replace("OPERATOR", "LessOrEqual"),
    ),
}


@pytest.mark.parametrize(("one", "other"), RARE_DIFFERENCES.values(), ids=RARE_DIFFERENCES)
def test_detects_a_difference(one: str, other: str) -> None:
    header = '<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]> g '
    with pytest.raises(VerificationFailed):
        verify(onnx.parser.parse_model(header + one), onnx.parser.parse_model(header + other))
