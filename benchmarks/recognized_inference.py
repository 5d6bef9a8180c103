"""Inference of exports before and after recognition, in onnxruntime, OpenVINO and tract on one thread.

`python recognized_inference.py FOLDER` reads the exports that `recognition.py` wrote, fits each to a runtime
without and with recognition, and prints the ratio of the CPU times, which are minima of runs in turn. Needs
the modules of `recognition.py`, openvino and tract.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import openvino
import tract

import opshift
from architectures import ARCHITECTURES

ROUNDS = 30
"""Number of samples of each model."""

SAMPLE = 0.004
"""Least CPU seconds of a sample: a model runs as often as this takes."""

Runner = Callable[[], object]
Feeds = Mapping[str, Any]


def load_onnxruntime(path: str, feeds: Feeds) -> Runner:
    """Load a model in onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feeds)


def load_openvino(path: str, feeds: Feeds) -> Runner:
    """Load a model in OpenVINO."""
    core = openvino.Core()
    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": "1"}
    compiled = core.compile_model(core.read_model(path), "CPU", settings)
    names = {name for each in compiled.inputs for name in each.names}
    named = {name: value for name, value in feeds.items() if name in names}
    return lambda: compiled(named)


def load_tract(path: str, feeds: Feeds) -> Runner:
    """Load a model in tract."""
    model = tract.onnx().load(path)
    names = [model.input_name(position) for position in range(model.input_count())]
    runnable = model.into_model().into_runnable()
    return lambda: runnable.run([feeds[name] for name in names])


RUNTIMES: Mapping[str, Callable[[str, Feeds], Runner]] = {
    "onnxruntime-1.32.0": load_onnxruntime,
    "openvino-2026.4.1": load_openvino,
    "tract-0.23.9": load_tract,
}
"""Names of runtimes for `opshift.fit`, with their loaders."""


def main() -> None:
    """Print a row for each model and runtime, and the greatest ratio of each runtime."""
    ratios: defaultdict[str, list[float]] = defaultdict(list)
    columns = ("model", "runtime", "nodes", "with recognition", "operators", "time after / before")
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|", flush=True)
    for path in sorted(Path(sys.argv[1]).glob("*.onnx")):
        name = path.stem.partition(",")[0]
        if name in ARCHITECTURES:
            for runtime, load in RUNTIMES.items():
                try:
                    print(measured(path, name, runtime, load, ratios[runtime]), flush=True)
                except Exception as error:  # runtimes do not support all models
                    print(f"{path.stem}, {runtime}: {error!s:.150}".replace("\n", " "), file=sys.stderr)
    for runtime, found in ratios.items():
        if found:
            median = statistics.median(found)
            print(f"\n{runtime}: {len(found)} models, median {median:.2f}, maximum {max(found):.2f}")


def measured(
    path: Path, name: str, runtime: str, load: Callable[[str, Feeds], Runner], ratios: list[float]
) -> str:
    """Return the row of a model."""
    architecture = ARCHITECTURES[name]
    model = onnx.load(path)
    pairs = zip(architecture.dynamic, architecture.inputs, strict=True)
    used = {each.name for each in model.graph.input}
    feeds = {key: np.ascontiguousarray(value.numpy()) for key, value in pairs if key in used}
    sizes = {key: tuple(value.shape) for key, value in feeds.items()} if runtime.startswith("tract") else {}
    folded = opshift.convert_version(model, fold=True, shapes=sizes)  # tract infers few dynamic sizes
    plain = opshift.fit(folded, runtime, allow="approximate")
    fitted = opshift.fit(folded, runtime, recognize=True, allow="approximate")
    recognition = fitted.report.recognition
    if recognition is None:
        return f"| {path.stem} | {runtime} | {len(plain.model.graph.node)} | the same | | |"
    runners = []
    for suffix, each in ("plain", plain.model), ("recognized", fitted.model):
        written = path.with_suffix(f".{suffix}.tmp")
        onnx.save(each, written)
        runners.append(load(str(written), feeds))
        written.unlink()
    before, after = minima(runners)
    ratios.append(after / before)
    groups = ", ".join(f"{count} {operator}" for operator, count in sorted(counts(recognition).items()))
    nodes = f"{len(plain.model.graph.node)} | {len(fitted.model.graph.node)}"
    return f"| {path.stem} | {runtime} | {nodes} | {groups} | {after / before:.2f} |"


def counts(report: Any) -> dict[str, int]:
    """Count the recognized nodes of each operator."""
    found: defaultdict[str, int] = defaultdict(int)
    for each in report.recognized:
        found[each.operator.removeprefix("ai.onnx.").partition(":")[0]] += 1
    return found


def minima(runners: list[Runner]) -> list[float]:
    """Return the least CPU time of a run of each model."""
    repeats = []
    for run in runners:
        run()
        start = time.process_time()
        run()
        repeats.append(max(1, round(SAMPLE / max(time.process_time() - start, 1e-6))))
    times: list[list[float]] = [[] for _ in runners]
    for _ in range(ROUNDS):
        for run, count, found in zip(runners, repeats, times, strict=True):
            start = time.process_time()
            for _ in range(count):
                run()
            found.append((time.process_time() - start) / count)
    return list(map(min, times))


if __name__ == "__main__":
    main()
