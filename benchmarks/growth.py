"""Growth of time with the number of nodes, by operator: exponent 1 is linear, 2 quadratic."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from graphs import repeated
from jobs import JOBS, OURS, THEIRS
from measuring import cpu, in_turn
from settings import Settings
from tables import NOTHING, Cell, Findings, Table, at_most, seconds

if TYPE_CHECKING:
    import onnx

SIZES = (2_000, 4_000, 8_000, 16_000, 32_000)
PATIENCE = 4.0
"""Limit of the expected CPU seconds of one conversion by ONNX's converter; larger models are skipped."""
MOST = 1.1
"""Limit of the exponent of opshift."""
UP = (
    "Relu", "Clip", "Slice", "Upsample", "Dropout", "Squeeze", "Softmax", "Split", "Pad", "ReduceMean",
    "BatchNormalization", "Conv",
)  # fmt: skip
DOWN = ("Squeeze", "ReduceMean", "Slice", "Split", "Pad", "Softmax")


class Case(NamedTuple):
    """Conversion of a chain of one operator."""

    title: str
    block: str
    source: int
    target: int
    has_constant_nodes: bool = False


CASES = (
    *(Case(f"{block}, 9 to 18", block, 9, 18) for block in UP),
    *(Case(f"{block}, 18 to 9, initializers", block, 18, 9) for block in DOWN),
    *(Case(f"{block}, 18 to 9, Constants", block, 18, 9, True) for block in DOWN if block != "Softmax"),
)


def measure(settings: Settings) -> Findings:
    """Measure the time of every case at every size."""
    sizes = SIZES[::2] if settings.quick else SIZES
    columns = ("operator", "exponent, opshift", f"at {sizes[-1]:,} nodes", "exponent, ONNX", "largest model")
    rows = [_row(case, sizes, settings) for case in CASES]
    return Findings([Table(f"Growth from {sizes[0]:,} to {sizes[-1]:,} nodes", columns, rows)])


def _row(case: Case, sizes: tuple[int, ...], settings: Settings) -> list[Cell]:
    models = {nodes: repeated(case.block, nodes, case.source, case.has_constant_nodes) for nodes in sizes}
    works = [partial(JOBS[OURS], model, case.target) for model in models.values()]
    works[0]()  # imports and caches do not count
    ours = dict(zip(sizes, in_turn(works, settings.rounds(5)), strict=True))
    theirs = {} if settings.quick else _theirs(models, case.target)
    return [
        case.title, at_most(exponent(ours), MOST), seconds(ours[sizes[-1]]),
        f"{exponent(theirs):.2f}" if len(theirs) > 1 else NOTHING,
        f"{seconds(theirs[max(theirs)])} at {max(theirs):,}" if theirs else NOTHING,
    ]  # fmt: skip


def _theirs(models: Mapping[int, onnx.ModelProto], target: int) -> dict[int, float]:
    """Return the times of ONNX's converter, up to the size that may exceed `PATIENCE` at quadratic growth."""
    times: dict[int, float] = {}
    last = 0
    for nodes, model in models.items():
        if last and times[last] * (nodes / last) ** 2 > PATIENCE:
            break
        try:
            times[nodes] = cpu(partial(JOBS[THEIRS], model, target))
        except RuntimeError:  # ONNX's converter does not support the conversion
            break
        last = nodes
    return times


def exponent(times: dict[int, float]) -> float:
    """Return the slope of the regression line through the times over the sizes on logarithmic scales."""
    return statistics.linear_regression(
        [math.log(nodes) for nodes in times], [math.log(duration) for duration in times.values()]
    ).slope
