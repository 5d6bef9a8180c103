"""Memory of a conversion in addition to its input model, each measured in a separate process."""

from __future__ import annotations

import sys
from pathlib import Path

import onnx

from graphs import mixed
from jobs import COPIED, IN_PLACE, OURS, SERIALIZED, THEIRS
from measuring import HERE, printed
from settings import Settings
from tables import Cell, Findings, Table, at_most, mebibytes

PAIRS = ((9, 18), (13, 21), (17, 18))
MOST = 2.0
"""Limit in KiB per node."""


def measure(settings: Settings) -> Findings:
    """Convert each large graph once per job."""
    nodes = 10_000 if settings.quick else 100_000
    columns = ("model", "opshift, per node", OURS, IN_PLACE, COPIED, SERIALIZED, THEIRS)
    rows = [_row(nodes, source, target, settings) for source, target in PAIRS]
    return Findings([Table("Memory in addition to the model", columns, rows)])


def _row(nodes: int, source: int, target: int, settings: Settings) -> list[Cell]:
    path = settings.folder / "graph.onnx"
    onnx.save(mixed(nodes, source), path)
    takes_minutes = nodes > 10_000 and source == 9
    jobs = (OURS, IN_PLACE, COPIED, SERIALIZED, *(() if takes_minutes else (THEIRS,)))
    found = {job: extra(path, job, target) for job in jobs}
    path.unlink()
    ratio = at_most(found[OURS] * 1024 / nodes, MOST, " KiB")
    others = [mebibytes(found.get(job)) for job in (OURS, IN_PLACE, COPIED, SERIALIZED, THEIRS)]
    return [f"{nodes:,} nodes, {source} to {target}", ratio, *others]


def extra(path: Path, job: str, target: int) -> float:
    """Return the memory that a job needs in addition to the model in a file, in MiB."""
    return printed([sys.executable, str(HERE / "alone.py"), str(path), job, str(target)])[0]
