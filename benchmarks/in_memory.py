"""Mixed graphs in memory: both converters receive the same onnx.ModelProto and return a new one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from graphs import mixed
from jobs import COPIED, JOBS, OURS, SERIALIZED, THEIRS
from measuring import in_turn
from settings import Settings
from tables import NOTHING, Cell, Curve, Findings, Table, at_least, at_most, seconds

if TYPE_CHECKING:
    import onnx

FASTER = {
    100: {(9, 18): 8, (13, 21): 8, (17, 18): 8},
    1_000: {(9, 18): 4, (13, 21): 6, (17, 18): 6},
    10_000: {(9, 18): 10, (13, 21): 6, (17, 18): 6},
    100_000: {(13, 21): 8, (17, 18): 8},
}
"""Number of nodes and pair of opsets to the required speedup over ONNX's converter."""
ALONE = {(100_000, 9, 18): 2.5}
"""Limits of CPU seconds in the cases for which ONNX's converter takes minutes and is not run."""
ROUNDS = {100: 41, 1_000: 21, 10_000: 7, 100_000: 3}
JOBS_HERE = (OURS, COPIED, SERIALIZED)


class Measured(NamedTuple):
    """CPU seconds of each job for one model and target."""

    nodes: int
    source: int
    target: int
    times: dict[str, float]


def measure(settings: Settings) -> Findings:
    """Measure the time of every size and pair of opsets."""
    sizes = [nodes for nodes in FASTER if nodes <= (10_000 if settings.quick else 100_000)]
    found = [_measured(nodes, source, target, settings) for nodes in sizes for source, target in FASTER[100]]
    columns = (
        "model",
        "times as fast as ONNX",
        *(f"{job}, CPU" for job in (OURS, THEIRS, COPIED, SERIALIZED)),
    )
    return Findings(
        [Table("Mixed graphs, 24 operators", columns, list(map(_row, found)))], list(_curves(found))
    )


def _measured(nodes: int, source: int, target: int, settings: Settings) -> Measured:
    model = mixed(nodes, source)
    jobs = JOBS_HERE if (nodes, source, target) in ALONE else (*JOBS_HERE, THEIRS)
    times = times_of(model, target, jobs, settings.rounds(ROUNDS[nodes]))
    return Measured(nodes, source, target, times)


def times_of(model: onnx.ModelProto, target: int, jobs: tuple[str, ...], rounds: int) -> dict[str, float]:
    """Return the median CPU seconds of each job, after a run of opshift that fills its caches."""
    works = [partial(JOBS[job], model, target) for job in jobs]
    works[jobs.index(OURS)]()
    return dict(zip(jobs, in_turn(works, rounds), strict=True))


def _row(found: Measured) -> list[Cell]:
    nodes, source, target, times = found
    ratio: Cell = NOTHING
    ours: Cell = seconds(times[OURS])
    if THEIRS in times:
        ratio = at_least(times[THEIRS] / times[OURS], FASTER[nodes][source, target])
    else:
        ours = at_most(times[OURS], ALONE[found[:3]], " s")
    others = [seconds(times.get(job)) for job in (THEIRS, COPIED, SERIALIZED)]
    return [f"{nodes:,} nodes, {source} to {target}", ratio, ours, *others]


def _curves(found: list[Measured]) -> Iterator[Curve]:
    for source, target in FASTER[100]:
        for job in (OURS, THEIRS):
            points = [
                (float(each.nodes), each.times[job])
                for each in found
                if each[1:3] == (source, target) and job in each.times
            ]
            x, y = zip(*points, strict=True)
            yield Curve("Mixed graphs", "nodes", job, f"{source} to {target}", x, y)
