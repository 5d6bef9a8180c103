"""Questions about whole models (check, reach, runs, doctor and others): CPU time for each node."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import onnx

import opshift
from exports import exports
from measuring import Work, in_turn
from opshift.analysis.reach import reach
from settings import Settings
from tables import Cell, Findings, Table, at_most, short


class Question(NamedTuple):
    """Public function, and the maximum CPU time of a call per node, in microseconds."""

    ask: Callable[[onnx.ModelProto], object]
    limit: float | None = None


QUESTIONS = {
    "check": Question(opshift.check, 40),
    "reach": Question(reach, 80),
    "runs": Question(opshift.runs, 80),
    "doctor": Question(opshift.diagnose),
    "plan to 17": Question(partial(opshift.plan_version, target=17)),
    "infer": Question(opshift.infer),
}
"""Name of a question to its function."""


def measure(settings: Settings) -> Findings:
    """Ask each question about each export in turn, after a first round, which fills caches."""
    rows: list[list[Cell]] = []
    times: list[list[float]] = []
    for path in exports():
        model = onnx.load(path)
        works: list[Work] = [partial(each.ask, model) for each in QUESTIONS.values()]
        in_turn(works, 1)
        each_node = [cpu / len(model.graph.node) * 1e6 for cpu in in_turn(works, settings.rounds(9))]
        times.append(each_node)
        rows.append([path.stem, *map(short, each_node), f"{len(model.graph.node):,}"])
    limits = [each.limit for each in QUESTIONS.values()]
    medians = [statistics.median(each) for each in zip(*times, strict=True)]
    cells = [
        short(value) if limit is None else at_most(value, limit, " µs")
        for value, limit in zip(medians, limits, strict=True)
    ]
    columns = ("model", *QUESTIONS, "nodes")
    note = "Microseconds of CPU for each node."
    return Findings([Table("Questions about models", columns, [["median", *cells, ""], *rows], note)])
