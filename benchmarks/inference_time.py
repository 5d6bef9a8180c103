"""Inference of real models before and after a conversion, in onnxruntime on one thread."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import onnxruntime as ort

import opshift
from exports import exports
from real import LIGHT
from settings import Settings
from tables import Cell, Findings, Table, at_most, short

TARGETS = (7, 9, 11, 13, 15, 17, 18, 21, 23)
SIZES = {"batch": 2, "length": 64, "past": 16, "height": 96, "width": 96}
"""Sizes of the dimensions that the exports name."""
SAMPLE = 0.004
"""Least CPU seconds of a sample: a session runs as often as this takes."""
LIMITS = {90: 1.02, 99: 1.1}
"""Limits of the ratio by percentile."""
SLOWER = 1.15
"""Least ratio of the conversions that the second table lists."""
NOTE = "CPU time of onnxruntime after the conversion, divided by that before it; minima of runs in turn."
REASONS = {
    ("decoder", 7): "onnxruntime fuses MatMul with its scale since opset 9; RNNs count indices of Range",
    ("detector", 7): "opset 7 lacks Resize, Range and NonZero: Gather of indices that RNNs count",
    ("detector", 9): "opset 9 lacks Resize, Range and GatherElements: Gather of computed indices",
}
"""Reasons of slower conversions, by a part of the name of the model and the newest target."""


class Measured(NamedTuple):
    """CPU seconds of a run of the original and of the converted model."""

    name: str
    source: int
    target: int
    before: float
    after: float

    @property
    def ratio(self) -> float:
        """Time after the conversion, divided by the time before it."""
        return self.after / self.before

    @property
    def direction(self) -> str:
        """Direction of the conversion."""
        return "up" if self.target > self.source else "down"


def measure(settings: Settings) -> Findings:
    """Measure each model at each target that changes more of it than the versions."""
    paths = [*sorted(LIGHT.glob("*.onnx")), *exports()]
    found = [each for path in paths for each in _measured(path, settings)]
    rows = [_summary(direction, found) for direction in ("up", "down")]
    columns = ("conversions", "count", "median", *(f"p{each}" for each in LIMITS), "maximum")
    ordered = sorted(found, key=lambda each: -each.ratio)
    slower = [_slower_row(each) for each in ordered if each.ratio > SLOWER]
    tables = [Table("Inference after conversion", columns, rows, NOTE)]
    if slower:
        tables.append(Table("Slower inference", ("model", "conversion", "ratio", "reason"), slower))
    return Findings(tables)


def _summary(direction: str, found: list[Measured]) -> list[Cell]:
    ratios = [each.ratio for each in found if each.direction == direction]
    percentiles = statistics.quantiles(ratios, n=100, method="inclusive")
    limited = [at_most(percentiles[each - 1], limit) for each, limit in LIMITS.items()]
    return [direction, str(len(ratios)), short(statistics.median(ratios)), *limited, short(max(ratios))]


def _slower_row(measured: Measured) -> list[Cell]:
    reason = next(
        (
            text
            for (name, newest), text in REASONS.items()
            if name in measured.name and measured.target <= newest
        ),
        "unknown",
    )
    return [measured.name, f"{measured.source} to {measured.target}", short(measured.ratio), reason]


def _measured(path: Path, settings: Settings) -> Iterator[Measured]:
    model = onnx.load(path)
    (source,) = (each.version for each in model.opset_import if not each.domain)
    original = _session(model)
    feeds = _feeds(model)
    for target in TARGETS[::4] if settings.quick else TARGETS:
        if target == source:
            continue
        try:
            converted = opshift.convert_version(model, target)
        except opshift.OpshiftError:
            continue
        if _is_same(model, converted):
            continue
        sessions = original, _session(converted)
        before, after = _minima(sessions, feeds, settings.rounds(7))
        if after > before * LIMITS[90]:
            # a second look at what may be noise of the machine
            again = _minima(sessions, feeds, settings.rounds(21))
            before, after = min(before, again[0]), min(after, again[1])
        yield Measured(path.stem, source, target, before, after)


def _is_same(before: onnx.ModelProto, after: onnx.ModelProto) -> bool:
    return list(before.graph.node) == list(after.graph.node) and list(before.graph.input) == list(
        after.graph.input
    )


def _session(model: onnx.ModelProto) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _feeds(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    stored = {each.name for each in model.graph.initializer}
    feeds = {}
    for value in model.graph.input:
        if value.name in stored:
            continue
        kind = value.type.tensor_type
        shape = [each.dim_value or SIZES.get(each.dim_param, 2) for each in kind.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        is_float = np.issubdtype(dtype, np.floating)
        feeds[value.name] = random.normal(size=shape).astype(dtype) if is_float else np.ones(shape, dtype)
    return feeds


def _minima(
    sessions: tuple[ort.InferenceSession, ort.InferenceSession], feeds: Mapping[str, np.ndarray], rounds: int
) -> tuple[float, float]:
    """Return the least CPU seconds of a run of each session; the sessions run in turn."""
    counts = [max(1, int(SAMPLE / max(_sample(each, feeds, 2), 1e-6))) for each in sessions]
    found = [
        [_sample(session, feeds, count) for session, count in zip(sessions, counts, strict=True)]
        for _ in range(rounds)
    ]
    before, after = (min(times) for times in zip(*found, strict=True))
    return before, after


def _sample(session: ort.InferenceSession, feeds: Mapping[str, np.ndarray], count: int) -> float:
    start = time.process_time()
    for _ in range(count):
        session.run(None, feeds)
    return (time.process_time() - start) / count
