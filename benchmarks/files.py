"""Conversion of large files by whole processes, compared with `cp` of the same file."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from commands import convert, convert_with_onnx, serialize
from jobs import OURS, SERIALIZED, THEIRS
from machine import available
from measuring import Cost, processes_in_turn, warm_up
from settings import Settings
from tables import BarChart, Cell, Findings, Table, at_most, mebibytes, seconds
from weights import write_external, write_heavy

TARGET = 18
MOST_TIMES = 1.3
"""Limit as a multiple of the time of cp."""
MOST_MORE = 0.15
"""Seconds allowed in addition, for the start of the process."""
MOST_MEMORY = 80.0
"""Limit in MiB."""
MOST_KEPT = 0.3
"""Limit in seconds if the weights stay in their own file."""
CP, STARTED = "cp", f"{OURS}, external weights"
LEAST_MEMORY = 8.0
"""Free memory in GiB that is required to run ONNX's converter."""


class Measured(NamedTuple):
    """Costs of each command for one file size."""

    gibibytes: int
    costs: Mapping[str, Cost]


def measure(settings: Settings) -> Findings:
    """Measure files of two sizes, and one with external data."""
    found = [_in_one_file(gibibytes, settings) for gibibytes in ((1,) if settings.quick else (1, 3))]
    columns = ("weights", "times cp", "seconds", "peak memory", "CPU")
    rows = [row for each in found for row in _rows(each)]
    one = Table("In one file", columns, rows, f"The limit is {MOST_TIMES} times cp plus {MOST_MORE} s.")
    kept = Table(
        "In a separate file that is not copied (--external keep), to another folder",
        ("weights", "seconds", "peak memory", "CPU"),
        [_kept(3, settings)],
    )
    times = {job: cost.wall for job, cost in found[0].costs.items() if job != STARTED}
    chart = BarChart("1 GiB, file to file", times)
    return Findings([one, kept], [chart])


def _in_one_file(gibibytes: int, settings: Settings) -> Measured:
    path, bare, out = (settings.folder / name for name in ("in.onnx", "bare.onnx", "out.onnx"))
    write_heavy(gibibytes, path)
    write_external(gibibytes, bare)
    repeated: dict[str, Sequence[str]] = {
        CP: ["cp", str(path), str(out)],
        OURS: convert(path, out, TARGET),
        STARTED: convert(bare, out, TARGET),
    }
    once: dict[str, Sequence[str]] = {
        SERIALIZED: serialize(path, out),
        THEIRS: convert_with_onnx(path, out, TARGET),
    }
    if settings.quick or gibibytes > 1 or available() < LEAST_MEMORY:
        once = {}
    warm_up(list(repeated.values()), out)
    costs = processes_in_turn(list(repeated.values()), out, settings.rounds(9 if gibibytes == 1 else 5))
    costs += processes_in_turn(list(once.values()), out, 1)
    for each in (path, bare, bare.with_suffix(".bin")):
        each.unlink()
    return Measured(gibibytes, dict(zip((*repeated, *once), costs, strict=True)))


def _rows(found: Measured) -> list[list[Cell]]:
    copied = found.costs[CP].wall
    return [
        [
            f"{found.gibibytes} GiB, {name}",
            f"{cost.wall / copied:.2f}",
            _time_cell(name, cost.wall, MOST_TIMES * copied + MOST_MORE),
            at_most(cost.peak, MOST_MEMORY, " MiB") if name == OURS else mebibytes(cost.peak),
            seconds(cost.cpu),
        ]
        for name, cost in found.costs.items()
    ]


def _time_cell(name: str, taken: float, limit: float) -> Cell:
    return at_most(taken, round(limit, 2), " s") if name == OURS else seconds(taken)


def _kept(gibibytes: int, settings: Settings) -> list[Cell]:
    source, other = settings.folder / "source", settings.folder / "other"
    source.mkdir()
    other.mkdir()
    path, out = source / "in.onnx", other / "out.onnx"
    write_external(gibibytes, path)
    command = [*convert(path, out, TARGET), "--external", "keep"]
    warm_up([command], out)
    (cost,) = processes_in_turn([command], out, settings.rounds(7))
    for folder in (source, other):
        shutil.rmtree(folder)
    return [
        f"{gibibytes} GiB, {OURS}",
        at_most(cost.wall, MOST_KEPT, " s"),
        mebibytes(cost.peak),
        seconds(cost.cpu),
    ]
