"""Language models of onnxruntime's tools become standard models with equal outputs."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from support.com_microsoft import without_microsoft
from support.execution import Array, Feeds, assert_equal, run
from support.language_models import decoder, decoder_feeds, encoder

from opshift.analysis.fit.fit import fit
from opshift.registry.runtimes.files import get_runtime
from opshift.runtimes.check_support import check_support

if TYPE_CHECKING:
    from pathlib import Path

STEPS = {
    "prompt": decoder_feeds(4, 0, [4, 4]),
    "prompt with a large cache": decoder_feeds(4, 9, [4, 4]),
    "token": decoder_feeds(1, 9, [10, 7]),
    "token with a large cache": decoder_feeds(1, 20, [8, 5]),
    "later prompt": decoder_feeds(3, 20, [9]),
}
RUNTIMES = ("openvino", "tract")


def _optimized_encoder(folder: Path) -> onnx.ModelProto:
    """Return the encoder as a session of onnxruntime saves it."""
    path = folder / "optimized.onnx"
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.optimized_model_filepath = str(path)
    ort.InferenceSession(encoder().SerializeToString(), options, providers=["CPUExecutionProvider"])
    return onnx.load(path)


def _encoder_feeds() -> Feeds:
    random = np.random.default_rng(0)
    names = ("input_ids", "token_type_ids", "position_ids")
    mask = np.array([[1] * 7, [1, 1, 1, 1, 0, 0, 0]])
    return {**{name: random.integers(0, 32, (2, 7)) for name in names}, "attention_mask": mask}


def _run_openvino(path: Path, feeds: Feeds) -> list[Array]:
    core: Any = importlib.import_module("openvino").Core()
    model = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = model({each.get_any_name(): feeds[each.get_any_name()] for each in model.inputs})
    return [results[each] for each in model.outputs]


def _run_tract(path: Path, feeds: Feeds) -> list[Array]:
    tract: Any = importlib.import_module("tract")
    model = tract.onnx().load(path)
    names = [each.name for each in onnx.load(path).graph.input]
    types = {"int64": "i64", "float32": "f32"}
    for position, name in enumerate(names):
        shape = ",".join(map(str, feeds[name].shape))
        model.set_input_fact(position, f"{shape},{types[str(feeds[name].dtype)]}")
    results = model.into_model().into_runnable().run([feeds[name] for name in names])
    return [each.to_numpy() for each in results]


def _run_in(runtime: str, model: onnx.ModelProto, feeds: Feeds, folder: Path) -> list[Array]:
    pytest.importorskip(runtime)
    path = folder / "standard.onnx"
    onnx.save(model, path)
    return {"openvino": _run_openvino, "tract": _run_tract}[runtime](path, feeds)


@pytest.mark.parametrize("opset", [17, 23])
@pytest.mark.parametrize("step", STEPS)
def test_decoder_has_equal_outputs(step: str, opset: int) -> None:
    model = decoder()
    assert_equal(run(without_microsoft(model, opset), STEPS[step]), run(model, STEPS[step]), 1e-5)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("step", ["prompt with a large cache", "token", "token with a large cache"])
def test_decoder_runs_elsewhere(step: str, runtime: str, tmp_path: Path) -> None:
    model = decoder()
    found = _run_in(runtime, without_microsoft(model, 17), STEPS[step], tmp_path)
    assert_equal(found, run(model, STEPS[step]), 1e-5)


@pytest.mark.parametrize("opset", [13, 17, 23])
def test_optimized_encoder_has_equal_outputs(opset: int, tmp_path: Path) -> None:
    model = _optimized_encoder(tmp_path)
    found = {node.op_type for node in model.graph.node}
    assert {"Attention", "SkipLayerNormalization", "BiasGelu"} <= found
    expected = run(encoder(), _encoder_feeds())
    assert_equal(run(without_microsoft(model, opset), _encoder_feeds()), expected, 1e-5)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_optimized_encoder_runs_elsewhere(runtime: str, tmp_path: Path) -> None:
    standard = without_microsoft(_optimized_encoder(tmp_path), 17)
    found = _run_in(runtime, standard, _encoder_feeds(), tmp_path)
    assert_equal(found, run(encoder(), _encoder_feeds()), 1e-5)


@pytest.mark.some_cases(1)
@pytest.mark.parametrize("runtime", ["openvino-2026.4.1", "onnxruntime-1.18.1", "onnxruntime-1.14.1"])
def test_decoder_fits_runtimes_that_lack_its_operators(runtime: str) -> None:
    """No version of ONNX has the nodes that onnxruntime writes to the default domain."""
    model = decoder()
    result = fit(model, runtime).model
    assert not check_support(result, get_runtime(runtime))
    assert_equal(run(result, STEPS["token"]), run(model, STEPS["token"]), 1e-5)
