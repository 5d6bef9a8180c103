"""Downgrades of graphs with 1,000 nodes of one operator, if ONNX's converter supports them."""

from __future__ import annotations

from collections.abc import Iterator

from graphs import BLOCKS, repeated
from in_memory import times_of
from jobs import JOBS, OURS, THEIRS
from settings import Settings
from tables import Cell, Findings, Table, at_least, seconds

NODES = 1_000
SOURCE = 18
FASTER = {13: 6, 11: 5}
"""Target opset to the required speedup over ONNX's converter."""
NOTES = {11: "ONNX leaves Softmax unchanged, with other results; opshift emits three nodes for each."}
"""Target opset to a note on the results."""


def measure(settings: Settings) -> Findings:
    """Measure the time of every operator."""
    columns = ("operator", "times as fast as ONNX", f"{OURS}, CPU", f"{THEIRS}, CPU")
    tables = [
        Table(
            f"{SOURCE} to {target}, one operator each",
            columns,
            list(_rows(target, settings)),
            NOTES.get(target, ""),
        )
        for target in FASTER
    ]
    return Findings(tables)


def _rows(target: int, settings: Settings) -> Iterator[list[Cell]]:
    for block in BLOCKS:
        model = repeated(block, NODES, SOURCE)
        try:
            JOBS[THEIRS](model, target)
        except RuntimeError:  # ONNX's converter does not support the downgrade
            continue
        times = times_of(model, target, (OURS, THEIRS), settings.rounds(15))
        ratio = at_least(times[THEIRS] / times[OURS], FASTER[target])
        yield [block, ratio, seconds(times[OURS]), seconds(times[THEIRS])]
