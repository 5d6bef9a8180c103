"""Conversions of the nine light models in the ONNX wheel."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import numpy_helper
from onnx.backend.test.runner import Runner
from support.execution import Array, assert_equal, opset_of

from opshift.converter.convert import convert_version

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
MODELS = sorted(path.stem for path in FOLDER.glob("*.onnx"))
TARGETS = (pytest.param(17, marks=pytest.mark.full), pytest.param(21, marks=pytest.mark.full), 26)
REWEIGHTED = ("light_squeezenet", "light_shufflenet", "light_inception_v1", "light_resnet50")
"""Models that are small enough for random weights."""


@functools.cache
def original(name: str) -> onnx.ModelProto:
    return onnx.load(FOLDER / f"{name}.onnx")


def feeds(name: str) -> dict[str, Array]:
    """Return the inputs that ONNX's own test runner generates."""
    graph = original(name).graph
    weights = {each.name for each in graph.initializer}
    return {each.name: Runner.generate_dummy_data(each) for each in graph.input if each.name not in weights}


def expected(name: str) -> Array:
    array: Array = numpy_helper.to_array(onnx.load_tensor(FOLDER / f"{name}_output_0.pb"))
    return array


def outputs(model: onnx.ModelProto, name: str) -> list[Any]:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds(name)))


def test_onnx_has_nine_light_models() -> None:
    assert len(MODELS) == 9


@pytest.mark.some_cases(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", MODELS)
def test_converted_light_model_gives_reference_output(name: str, target: int) -> None:
    model = convert_version(original(name), target)
    onnx.checker.check_model(model)
    assert opset_of(model) == target
    assert_equal(outputs(model, name), [expected(name)], 1e-6)


@pytest.fixture(scope="session")
def reweighted() -> Callable[[str], tuple[onnx.ModelProto, list[Any]]]:
    """Return a function that randomizes the weights of a light model and returns it with its outputs.

    All elements of a weight are equal in the original, and so are the scores of all classes.
    """

    @functools.cache
    def reweight(name: str) -> tuple[onnx.ModelProto, list[Any]]:
        model = onnx.ModelProto()
        model.CopyFrom(original(name))
        rng = np.random.default_rng(0)
        shapes = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
        filled = [each for each in model.graph.node if each.op_type == "ConstantOfShape"]
        for each in filled:
            weights = _weights(each.output[0], tuple(shapes[each.input[0]]), rng)
            model.graph.initializer.append(numpy_helper.from_array(weights, each.output[0]))
            model.graph.node.remove(each)
        model.ir_version = 4
        return model, outputs(model, name)

    return reweight


def _weights(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Return weights that keep activations in range over fifty layers; variances are positive."""
    fan_in = int(np.prod(shape[1:])) if len(shape) > 1 else 1
    spread = rng.normal(0, 1, shape) * np.sqrt(2 / fan_in)
    weights: Array = spread if len(shape) > 1 else 0.5 + 0.1 * np.abs(spread)
    return weights.astype(np.float32)


@pytest.mark.full
@pytest.mark.parametrize("target", [17, 21, 26])
@pytest.mark.parametrize("name", REWEIGHTED)
def test_conversion_keeps_outputs_with_random_weights(
    name: str, target: int, reweighted: Callable[[str], tuple[onnx.ModelProto, list[Any]]]
) -> None:
    model, expected_outputs = reweighted(name)
    assert float(np.std(expected_outputs[0])) > 1e-5, "all classes have the same score"
    assert_equal(outputs(convert_version(model, target), name), expected_outputs, 1e-5)


@pytest.mark.some_cases(1)
@pytest.mark.parametrize("name", ["light_squeezenet", "light_shufflenet"])
def test_converts_light_model_on_command_line(name: str, tmp_path: Path) -> None:
    source, out = FOLDER / f"{name}.onnx", tmp_path / "converted.onnx"
    command = [sys.executable, "-m", "opshift", "convert", str(source), str(out), "--target", "17"]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    model = onnx.load(out)
    assert opset_of(model) == 17
    assert_equal(outputs(model, name), [expected(name)], 1e-6)
