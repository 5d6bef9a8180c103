"""Conversion of a tiny model by whole processes, which measures the cost of starting them."""

from __future__ import annotations

import sys
from pathlib import Path

from commands import convert, convert_with_onnx, serialize
from jobs import OURS, SERIALIZED, THEIRS
from measuring import HERE, processes_in_turn
from settings import Settings
from tables import Cell, Findings, Table, at_most, mebibytes, seconds

MODEL = HERE.parent / "tests" / "golden" / "segmenter-9.onnx"
TARGET = 17
MOST = 1.0
"""Limit as a multiple of the cost of ONNX's converter."""


def measure(settings: Settings) -> Findings:
    """Start each command many times, in turn."""
    out = settings.folder / "out.onnx"
    commands = {
        OURS: convert(MODEL, out, TARGET),
        THEIRS: convert_with_onnx(MODEL, out, TARGET),
        SERIALIZED: serialize(MODEL, out),
        "an empty Python script": [sys.executable, "-c", "pass"],
    }
    costs = dict(
        zip(commands, processes_in_turn(list(commands.values()), out, settings.rounds(41)), strict=True)
    )
    theirs = costs[THEIRS]
    columns = ("process", "CPU, times ONNX", "memory, times ONNX", "CPU", "seconds", "peak memory")
    rows: list[list[Cell]] = []
    for name, cost in costs.items():
        ratios = [cost.cpu / theirs.cpu, cost.peak / theirs.peak]
        cells = [at_most(each, MOST) if name == OURS else f"{each:.2f}" for each in ratios]
        rows.append([name, *cells, seconds(cost.cpu), seconds(cost.wall), mebibytes(cost.peak)])
    return Findings(
        [Table(f"{Path(MODEL).name}, {MODEL.stat().st_size:,} bytes, to {TARGET}", columns, rows)]
    )
