"""Commands on a tiny model in separate processes, which measures the cost of their start."""

from __future__ import annotations

import sys
from pathlib import Path

from commands import command, convert, convert_with_onnx, serialize
from jobs import OURS, SERIALIZED, THEIRS
from measuring import HERE, processes_in_turn, warm_up
from settings import Settings
from tables import Cell, Findings, Table, at_most, mebibytes, seconds, short

MODEL = HERE.parent / "tests" / "golden" / "segmenter-9.onnx"
TARGET = 17
MOST = 1.0
"""Limit as a multiple of the cost of ONNX's converter."""
COMMANDS: dict[tuple[str, ...], float | None] = {
    ("convert", str(MODEL), "{out}", "-t", str(TARGET)): 0.6,
    ("plan", str(MODEL), "-t", str(TARGET)): None,
    ("reach", str(MODEL)): None,
    ("check", str(MODEL)): None,
    ("runs", str(MODEL)): 1.0,
    ("doctor", str(MODEL)): 0.75,
    ("list",): 0.75,
    ("show", "Relu"): 0.75,
    ("--help",): 0.55,
}
"""Arguments of each command to the limit of its CPU time, as a multiple of the cost of ONNX's converter."""


def measure(settings: Settings) -> Findings:
    """Start each process many times, in turn."""
    return Findings([_conversions(settings), _commands(settings)])


def _conversions(settings: Settings) -> Table:
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
    return Table(f"{Path(MODEL).name}, {MODEL.stat().st_size:,} bytes, to {TARGET}", columns, rows)


def _commands(settings: Settings) -> Table:
    out = settings.folder / "out.onnx"
    commands = [command(*(each.format(out=out) for each in arguments)) for arguments in COMMANDS]
    works = [convert_with_onnx(MODEL, out, TARGET), *commands]
    warm_up(works, out)  # the first start compiles bytecode and the compiled definitions
    theirs, *ours = [each.cpu for each in processes_in_turn(works, out, settings.rounds(41))]
    rows: list[list[Cell]] = [["onnx: load, convert, save", "1", seconds(theirs)]]
    for (arguments, limit), cpu in zip(COMMANDS.items(), ours, strict=True):
        ratio = cpu / theirs
        cell = short(ratio) if limit is None else at_most(ratio, limit)
        rows.append([f"opshift {arguments[0]}", cell, seconds(cpu)])
    return Table("Commands in a new process", ("command", "CPU, times ONNX", "CPU"), rows)
