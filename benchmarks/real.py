"""Real models: the light models of ONNX and exports of PyTorch, converted to several opsets and back."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import onnx

import opshift
from exports import exports
from in_memory import times_of
from jobs import JOBS, OURS, THEIRS
from measuring import HERE, printed
from settings import Settings
from tables import NOTHING, Cell, Curve, Findings, Table, at_least, seconds, short

TARGETS = (13, 17, 21)
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
FASTER, FASTER_AT_FIRST, FASTER_IN_MEDIAN = 4, 2, 20
"""Required speedups over ONNX's converter: of every model, of its first conversions, and in the median."""
WARM, FIRST = "warm", "first conversion in a process"
NOTE = "Speedup over ONNX's converter, if that supports the conversion, and CPU time of opshift."
LABELS = tuple(f"{way} {target}" for way in ("to", "back from") for target in TARGETS)


class Conversion(NamedTuple):
    """Conversion of a model to a target, or of the result back to the opset of the model."""

    name: str
    label: str
    path: Path
    nodes: int
    source: int
    target: int


class Measured(NamedTuple):
    """CPU seconds of a conversion; `None` for a converter that does not support it."""

    conversion: Conversion
    ours: float | None
    theirs: float | None

    @property
    def speedup(self) -> float | None:
        """Speedup over ONNX's converter, if both support the conversion."""
        return self.theirs / self.ours if self.ours and self.theirs else None

    @property
    def is_up(self) -> bool:
        """Whether the target is newer than the source."""
        return self.conversion.target > self.conversion.source

    def __str__(self) -> str:
        if self.ours is None:
            return "refused"
        return f"{short(self.speedup) if self.speedup else NOTHING} ({seconds(self.ours)})"


def measure(settings: Settings) -> Findings:
    """Measure each conversion after a run of the same conversion, and as the first one of a process."""
    paths = [*sorted(LIGHT.glob("*.onnx")), *exports()]
    conversions = [each for path in paths for each in _conversions(path, settings.folder)]
    warm = [_warm(each, settings.rounds(9)) for each in conversions]
    first = _first([each.conversion for each in warm if each.speedup], settings.rounds(5))
    summary = [
        _summary(kind, is_up, found)
        for kind, found in ((WARM, warm), (FIRST, first))
        for is_up in (True, False)
    ]
    columns = ("conversions", "median", "lowest", "count")
    tables = [
        Table("Real models, times as fast as ONNX", columns, summary),
        _table(WARM, warm, FASTER),
        _table(FIRST, first, FASTER_AT_FIRST),
    ]
    both = [each for each in warm if each.speedup]
    nodes = [each.conversion.nodes for each in both]
    times = {OURS: [each.ours or 0.0 for each in both], THEIRS: [each.theirs or 0.0 for each in both]}
    return Findings(tables, [Curve("Real models", "nodes", tool, "", nodes, times[tool]) for tool in times])


def _conversions(path: Path, folder: Path) -> Iterator[Conversion]:
    model = onnx.load(path)
    (source,) = (each.version for each in model.opset_import if not each.domain)
    for target in TARGETS:
        yield Conversion(path.stem, f"to {target}", path, len(model.graph.node), source, target)
        if _supports(OURS, model, target):
            back, converted = folder / f"{path.stem} to {target}.onnx", opshift.convert_version(model, target)
            onnx.save(converted, back)
            nodes = len(converted.graph.node)
            yield Conversion(path.stem, f"back from {target}", back, nodes, target, source)


def _supports(job: str, model: onnx.ModelProto, target: int) -> bool:
    try:
        JOBS[job](model, target)
    except (opshift.OpshiftError, RuntimeError):  # ONNX's converter raises RuntimeError
        return False
    return True


def _warm(conversion: Conversion, rounds: int) -> Measured:
    model, target = onnx.load(conversion.path), conversion.target
    jobs = tuple(job for job in (OURS, THEIRS) if _supports(job, model, target))
    times = times_of(model, target, jobs, rounds) if OURS in jobs else {}
    return Measured(conversion, times.get(OURS), times.get(THEIRS))


def _first(conversions: list[Conversion], rounds: int) -> list[Measured]:
    cases = [word for each in conversions for word in (str(each.path), str(each.target))]
    times = printed([sys.executable, str(HERE / "first.py"), str(rounds), *cases])
    return [Measured(*each) for each in zip(conversions, times[::2], times[1::2], strict=True)]


def _speedups(found: Iterable[Measured], is_up: bool) -> list[float]:
    return [each.speedup for each in found if each.speedup and each.is_up == is_up]


def _summary(kind: str, is_up: bool, found: list[Measured]) -> list[Cell]:
    speedups = _speedups(found, is_up)
    median = statistics.median(speedups)
    cell = at_least(median, FASTER_IN_MEDIAN) if kind == WARM else short(median)
    return [f"{kind}, {'up' if is_up else 'down'}", cell, short(min(speedups)), str(len(speedups))]


def _table(kind: str, found: list[Measured], limit: float) -> Table:
    rows: list[list[Cell]] = []
    for name, group in groupby(found, key=lambda each: each.conversion.name):
        by_label = {each.conversion.label: each for each in group}
        speedups = [_speedups(by_label.values(), is_up) for is_up in (True, False)]
        lowest = [at_least(min(each), limit) if each else NOTHING for each in speedups]
        rows.append([name, *lowest, *(str(by_label.get(label, NOTHING)) for label in LABELS)])
    return Table(f"Real models, {kind}", ("model", "lowest up", "lowest down", *LABELS), rows, NOTE)
