"""The nine light models of the ONNX wheel: converted, they give what they gave before."""

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
from support.running import Array, assert_equal, opset_of

from opshift.converter.convert import convert_version

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
MODELS = sorted(path.stem for path in FOLDER.glob("*.onnx"))
TARGETS = (17, 21, 26)
WEIGHED = ("light_squeezenet", "light_shufflenet", "light_inception_v1", "light_resnet50")
"""The models that are small enough to be given weights of their own."""


@functools.cache
def original(name: str) -> onnx.ModelProto:
    return onnx.load(FOLDER / f"{name}.onnx")


def feeds(name: str) -> dict[str, Array]:
    """The inputs as ONNX's own runner makes them."""
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


def test_all_nine_are_there() -> None:
    assert len(MODELS) == 9


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", MODELS)
def test_a_light_model_gives_the_output_it_came_with(name: str, target: int) -> None:
    model = convert_version(original(name), target)
    onnx.checker.check_model(model)
    assert opset_of(model) == target
    assert_equal(outputs(model, name), [expected(name)], 1e-6)


@pytest.fixture(scope="session")
def weighed() -> Callable[[str], tuple[onnx.ModelProto, list[Any]]]:
    """A light model with a weight of its own everywhere, and its outputs.

    All weights of a light model are one number, so that its classes all come out the same.
    """

    @functools.cache
    def make(name: str) -> tuple[onnx.ModelProto, list[Any]]:
        model = onnx.ModelProto()
        model.CopyFrom(original(name))
        random = np.random.default_rng(0)
        shapes = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
        filled = [each for each in model.graph.node if each.op_type == "ConstantOfShape"]
        for each in filled:
            weights = _weights(each.output[0], tuple(shapes[each.input[0]]), random)
            model.graph.initializer.append(numpy_helper.from_array(weights, each.output[0]))
            model.graph.node.remove(each)
        model.ir_version = 4
        return model, outputs(model, name)

    return make


def _weights(name: str, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Of a size that neither dies away nor explodes over fifty layers; variances are positive."""
    fan_in = int(np.prod(shape[1:])) if len(shape) > 1 else 1
    spread = random.normal(0, 1, shape) * np.sqrt(2 / fan_in)
    weights: Array = spread if len(shape) > 1 else 0.5 + 0.1 * np.abs(spread)
    return weights.astype(np.float32)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", WEIGHED)
def test_a_light_model_with_weights_of_its_own_gives_the_same_before_and_after(
    name: str, target: int, weighed: Callable[[str], tuple[onnx.ModelProto, list[Any]]]
) -> None:
    model, before = weighed(name)
    assert float(np.std(before[0])) > 1e-5, "the classes are told apart"
    assert_equal(outputs(convert_version(model, target), name), before, 1e-5)


@pytest.mark.parametrize("name", ["light_squeezenet", "light_shufflenet"])
def test_a_light_model_is_converted_on_the_command_line(name: str, tmp_path: Path) -> None:
    source, out = FOLDER / f"{name}.onnx", tmp_path / "converted.onnx"
    command = [sys.executable, "-m", "opshift", "convert", str(source), str(out), "--target", "17"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    model = onnx.load(out)
    assert opset_of(model) == 17
    assert_equal(outputs(model, name), [expected(name)], 1e-6)
