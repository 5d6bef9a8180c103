"""Inference of exports before and after recognition, in onnxruntime, OpenVINO and tract on one thread.

`python recognized_inference.py FOLDER` reads the exports that `recognition.py` wrote, fits each to a runtime
without and with recognition, and prints the ratio of the CPU times, which are minima of runs in turn. With
`--each`, it recognizes each operator alone, also those with slow kernels. Needs the modules of
`recognition.py`, openvino and tract.
"""

from __future__ import annotations

import argparse
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
"""Number of samples of each model after it is loaded."""

LOADS = 5
"""Maximum number of times that models are loaded anew, until the ratio is at most `LIMIT`."""

LIMIT = 1.05
"""Ratio above which a measurement goes on."""

SAMPLE = 0.004
"""Least CPU seconds of a sample: a model runs as often as this takes."""

NEWEST = 24
"""Opset at which all recognized operators exist."""

Runner = Callable[[], Any]
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--each", action="store_true", help="recognize each operator alone")
    parser.add_argument("--runtime", action="append", choices=RUNTIMES, help="measure some runtimes only")
    options = parser.parse_args()
    ratios: defaultdict[str, list[float]] = defaultdict(list)
    columns = (
        "model",
        "runtime",
        "nodes",
        "with recognition",
        "operators",
        "time after / before",
        "difference",
    )
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|", flush=True)
    for path in sorted(options.folder.glob("*.onnx")):
        name = path.stem.partition(",")[0]
        for runtime in (options.runtime or RUNTIMES) if name in ARCHITECTURES else ():
            try:
                export = Export(path, name, runtime)
                for recognize in export.operators() if options.each else [()]:
                    group = f"{runtime}, {recognize[0]}" if recognize else runtime
                    print(export.measured(recognize, ratios[group]), flush=True)
            except Exception as error:  # runtimes do not support all models
                print(f"{path.stem}, {runtime}: {error!s:.150}".replace("\n", " "), file=sys.stderr)
    for group, found in sorted(ratios.items()):
        if found:
            median = statistics.median(found)
            print(
                f"\n{group}: {len(found)} models, median {median:.2f}, "
                f"minimum {min(found):.2f}, maximum {max(found):.2f}"
            )


class Export:
    """Export to be measured in a runtime, with its inputs."""

    def __init__(self, path: Path, name: str, runtime: str) -> None:
        self.path, self.runtime = path, runtime
        architecture = ARCHITECTURES[name]
        model = onnx.load(path)
        pairs = zip(architecture.dynamic, architecture.inputs, strict=True)
        used = {each.name for each in model.graph.input}
        self.feeds = {key: np.ascontiguousarray(value.numpy()) for key, value in pairs if key in used}
        is_tract = runtime.startswith("tract")  # which infers few dynamic sizes
        sizes = {key: tuple(value.shape) for key, value in self.feeds.items()} if is_tract else {}
        self.folded = opshift.convert_version(model, fold=True, shapes=sizes)
        self.plain = opshift.fit(self.folded, runtime, allow="approximate").model

    def operators(self) -> list[tuple[str, ...]]:
        """Return the operators that any runtime could recognize in the model."""
        report = opshift.convert(self.folded, NEWEST, recognize=True, allow="approximate").report
        return [(each,) for each in sorted(counts(report))]

    def measured(self, recognize: tuple[str, ...], ratios: list[float]) -> str:
        """Return the row of the model, with some or by default all operators that are not slow."""
        fitted = opshift.fit(self.folded, self.runtime, recognize=recognize or True, allow="approximate")
        recognition = fitted.report.recognition
        before = len(self.plain.graph.node)
        if recognition is None:
            reason = "the same" if not fitted.report.slow_operators else "the same: slow kernels"
            return f"| {self.path.stem} | {self.runtime} | {before} | {reason} | {' '.join(recognize)} | | |"
        ratio, difference = self._compare(self.plain, fitted.model)
        ratios.append(ratio)
        groups = ", ".join(f"{count} {operator}" for operator, count in sorted(counts(recognition).items()))
        nodes = f"{before} | {len(fitted.model.graph.node)}"
        return f"| {self.path.stem} | {self.runtime} | {nodes} | {groups} | {ratio:.2f} | {difference:.0e} |"

    def _compare(self, *models: onnx.ModelProto) -> tuple[float, float]:
        """Return the ratio of the times of two models, and the greatest difference of their outputs."""
        written = [self.path.with_suffix(f".{index}.tmp") for index in range(len(models))]
        for path, model in zip(written, models, strict=True):
            onnx.save(model, path)
        least: list[float] = [float("inf")] * len(models)
        for _ in range(LOADS):
            runners = [RUNTIMES[self.runtime](str(path), self.feeds) for path in written]
            difference = difference_of(*(arrays_of(run()) for run in runners))
            least = [min(pair) for pair in zip(least, minima(runners), strict=True)]
            if least[1] <= LIMIT * least[0]:
                break
        for path in written:
            path.unlink()
        return least[1] / least[0], difference


def arrays_of(outputs: Any) -> list[Any]:
    """Return the outputs of a runtime as arrays."""
    values = outputs.values() if isinstance(outputs, Mapping) else outputs
    return [each.to_numpy() if hasattr(each, "to_numpy") else np.asarray(each) for each in values]


def difference_of(before: list[Any], after: list[Any]) -> float:
    """Return the greatest difference of outputs, relative to the greatest output."""
    pairs = [(old.astype(np.float64), new.astype(np.float64)) for old, new in zip(before, after, strict=True)]
    return max(float(np.abs(old - new).max() / max(np.abs(old).max(), 1e-30)) for old, new in pairs)


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
