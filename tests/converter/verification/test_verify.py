"""Models that agree, models that do not, and models that cannot be compared."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.planted import plant_wrong_clip
from support.running import build

import opshift
from opshift import CannotVerify, UsageError, VerificationFailed, convert_version, verify

GOLDEN = Path(__file__).parents[2] / "golden" / "segmenter-9.onnx"
X = np.zeros((2, 3), np.float32)


def clip(high: float = 1.0, opset: int = 10) -> onnx.ModelProto:
    """Clip from 0 to `high`, which from opset 11 on are inputs."""
    return build([helper.make_node("Clip", ["x"], ["y"], min=0.0, max=high)], {"x": X}, ["y"], opset)


def of(
    op: str, opset: int = 17, element: int = TensorProto.FLOAT, shape: Any = (2, 3), **attributes: Any
) -> onnx.ModelProto:
    """One node from x to y of the same type."""
    graph = helper.make_graph(
        [helper.make_node(op, ["x"], ["y"], **attributes)],
        "g",
        [helper.make_tensor_value_info("x", element, [2, 3])],
        [helper.make_tensor_value_info("y", element, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@pytest.mark.parametrize("target", [11, 17, 26, 28])
def test_a_network_agrees_with_its_conversion(target: int) -> None:
    found = verify(GOLDEN, convert_version(GOLDEN, target))
    assert found.equal
    (output,) = found.outputs
    assert (output.name, output.type, output.shape) == ("mask", "float", (1, 4, 32))
    assert output.count == output.finite == 3 * 4 * 32
    assert output.absolute < 1e-6
    assert [(each.name, each.shape, each.given) for each in found.inputs] == [
        ("image", (1, 3, 32, 32), False)
    ]


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(lambda model: model, id="a message of onnx"),
        pytest.param(lambda model: model.SerializeToString(), id="bytes"),
        pytest.param(
            lambda model: opshift.ModelProto.FromString(model.SerializeToString()), id="a message of ours"
        ),
    ],
)
def test_a_model_is_given_in_any_form(given: Callable[[onnx.ModelProto], Any]) -> None:
    assert verify(given(clip()), given(convert_version(clip(), 17))).equal


def test_a_difference_is_told_with_its_size_and_place() -> None:
    with pytest.raises(
        VerificationFailed, match=r"output 'y' differs: 1 of 2 elements; 1.0 at \[1\] became 1.5"
    ) as error:
        verify(of_clip(1.0), of_clip(1.5), {"x": np.array([0.5, 3.0], np.float32)})
    (output,) = error.value.verification.outputs
    assert (output.equal, output.differing, output.absolute, output.relative) == (False, 1, 0.5, 0.5)


def of_clip(high: float) -> onnx.ModelProto:
    return build([helper.make_node("Clip", ["x"], ["y"], min=0.0, max=high)], {"x": X[0, :2]}, ["y"], 10)


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table in which Clip's adapter is wrong."""
    plant_wrong_clip(monkeypatch)


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize("runtime", ["auto", "onnxruntime", "reference"])
def test_a_wrong_adapter_is_caught(runtime: Any) -> None:
    with pytest.raises(VerificationFailed, match=r"1\.0 at .* became"):
        verify(clip(), convert_version(clip(), 17), runtime=runtime)


def test_a_tolerance_is_taken_for_floats_only() -> None:
    assert verify(of_clip(1.0), of_clip(1.001), tolerance=0.01).equal
    with pytest.raises(VerificationFailed):
        verify(of_clip(1.0), of_clip(1.001))
    whole = [of("Identity", element=TensorProto.INT64), of("Neg", element=TensorProto.INT64)]
    with pytest.raises(VerificationFailed, match="became -"):
        verify(*whole, tolerance=100.0)


def test_a_change_of_shape_or_type_is_a_difference() -> None:
    """What the graph declares of its outputs does not matter; what comes out does."""
    shaped = of("Unsqueeze", 11, axes=[0])
    with pytest.raises(
        VerificationFailed, match=r"the shape of the output changed from \[2, 3\] to \[1, 2, 3\]"
    ):
        verify(of("Relu"), shaped)
    cast = of("Cast", to=TensorProto.INT32)
    cast.graph.output[0].type.tensor_type.elem_type = TensorProto.INT32
    with pytest.raises(VerificationFailed, match="the type of the output changed from float to int32"):
        verify(of("Relu"), cast)


def test_a_converted_model_that_does_not_run_is_a_difference() -> None:
    with pytest.raises(VerificationFailed, match=r"does not run: onnxruntime .*nonsense") as error:
        verify(of("Relu"), of("Relu", nonsense=1))
    assert error.value.verification.outputs == ()
    assert not error.value.verification.equal


def test_other_outputs_are_a_difference() -> None:
    renamed = of("Relu")
    renamed.graph.output[0].name = renamed.graph.node[0].output[0] = "z"
    with pytest.raises(VerificationFailed, match="the outputs are named z instead of y"):
        verify(of("Relu"), renamed)


CANNOT = {
    "random": (of("RandomNormalLike"), {}, "generates random numbers"),
    "neither runtime has it": (
        of("Add", 5),
        {},
        "no inputs and runtimes were found with which both models run: onnxruntime",
    ),
    "not valid": (of("Relu", nonsense=1), {"runtime": "onnxruntime"}, "nonsense"),
    "too new": (of("Relu", 28), {"runtime": "onnxruntime"}, "does not support ai.onnx 28"),
    "no array of the type": (
        of("Relu", element=TensorProto.BFLOAT16),
        {"runtime": "onnxruntime"},
        "cannot pass bfloat16 ('x') to or from Python",
    ),
    "meant otherwise by onnx.reference": (
        of("Softmax", 5),
        {"runtime": "reference"},
        "evaluates ai.onnx.Softmax:1 as version 13, which means something else",
    ),
}


@pytest.mark.parametrize(("model", "options", "message"), CANNOT.values(), ids=CANNOT)
def test_what_cannot_be_compared_is_never_taken_for_equal(
    model: onnx.ModelProto, options: Any, message: str
) -> None:
    with pytest.raises(CannotVerify) as error:
        verify(model, model, **options)
    assert message in str(error.value)
    assert error.value.remedy


def test_a_model_is_run_where_it_can_be() -> None:
    """To Python onnxruntime passes no bfloat16, and opset 28 it does not know."""
    half = of("Relu", element=TensorProto.BFLOAT16)
    assert [name.split()[0] for name in verify(half, half).runtimes] == ["onnx.reference"] * 2
    newer = verify(of("Relu"), of("Relu", 28))
    assert [name.split()[0] for name in newer.runtimes] == ["onnxruntime", "onnx.reference"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"runtime": "tensorrt"}, "unknown runtime 'tensorrt'", id="another runtime"),
        pytest.param({"samples": 0}, "cannot compare 0 samples", id="no samples"),
        pytest.param({"inputs": {"z": X}}, "'z' is not an input", id="an input that is none"),
        pytest.param(
            {"inputs": {"x": X.astype(np.float64)}}, "the type double instead of float", id="another type"
        ),
        pytest.param({"inputs": "no.npz"}, "cannot be read", id="a file that is not there"),
    ],
)
def test_wrong_arguments(options: Mapping[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        verify(clip(), clip(), **options)


@pytest.mark.parametrize("runtime", ["auto", "onnxruntime", "reference"])
def test_weights_in_files_of_their_own_are_found(tmp_path: Path, runtime: Any) -> None:
    weights = numpy_helper.from_array(np.arange(3, dtype=np.float32), "w")
    model = build([helper.make_node("Add", ["x", "w"], ["y"])], {"x": X}, ["y"], 17)
    model.graph.initializer.append(weights)
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    converted = convert_version(tmp_path / "m.onnx", 13)
    assert verify(tmp_path / "m.onnx", converted, runtime=runtime).equal


def test_the_same_seed_gives_the_same_figures() -> None:
    models = clip(), convert_version(clip(), 17)
    assert verify(*models, seed=3) == verify(*models, seed=3)


def test_the_result_is_plain_data() -> None:
    data = verify(clip(), clip()).as_dict()
    assert data["equal"] is True
    assert set(data) == {"runtimes", "samples", "seed", "inputs", "outputs", "equal"}
    assert data["outputs"][0]["tolerance"] == {"relative": 1e-4, "absolute": 1e-5}


@pytest.mark.parametrize("package", ["onnxruntime", "onnx"])
def test_one_runtime_is_enough(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    for each in [name for name in sys.modules if name.startswith(f"{package}.")]:
        monkeypatch.setitem(sys.modules, each, None)
    assert verify(of("Relu"), of("Relu")).equal


def test_no_runtime_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(
        CannotVerify, match=r"onnxruntime is not installed \(pip install 'opshift\[verify\]'\)"
    ):
        verify(of("Relu"), of("Relu"), runtime="onnxruntime")


def test_without_numpy_the_remedy_is_told() -> None:
    script = (
        "import sys; sys.modules['numpy'] = None; import opshift\n"
        "try: opshift.verify(b'', b'')\n"
        "except opshift.CannotVerify as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "numpy is not installed (pip install 'opshift[verify]')"
