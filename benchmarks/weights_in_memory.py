"""Conversion of 1 GiB of weights in memory, in place and to a new model."""

from __future__ import annotations

from functools import partial
from itertools import cycle

from extra_memory import extra
from jobs import COPIED, IN_PLACE, JOBS, OURS, SERIALIZED, THEIRS
from measuring import in_turn
from settings import Settings
from tables import NOTHING, Cell, Findings, Table, at_most, mebibytes, seconds
from weights import OPSET, heavy, write_heavy

TARGET = 18
MOST_IN_PLACE = 5.0
"""Limit in ms."""
MOST_COPIED = 1.2
"""Limit as a multiple of the time of a CopyFrom of the model."""
MOST_EXTRA = 5.0
"""Limit of the additional memory in MiB, in place."""


def measure(settings: Settings) -> Findings:
    """Measure the time of each job in turn, and its memory on the same model in a file."""
    jobs = [OURS, COPIED, SERIALIZED, *(() if settings.quick else (THEIRS,))]
    times = _times(jobs, settings)
    path = settings.folder / "heavy.onnx"
    write_heavy(1, path)
    memory = {job: extra(path, job, TARGET) for job in (IN_PLACE, *jobs)}
    path.unlink()
    rows: list[list[Cell]] = [
        [IN_PLACE, NOTHING, at_most(times[IN_PLACE] * 1e3, MOST_IN_PLACE, " ms"),
         at_most(memory[IN_PLACE], MOST_EXTRA, " MiB")],
        *([job, _ratio(job, times), seconds(times[job]), mebibytes(memory[job])] for job in jobs),
    ]  # fmt: skip
    columns = ("job", "times CopyFrom", "CPU", "memory in addition to the model")
    return Findings([Table(f"1 GiB of weights, {OPSET} to {TARGET}", columns, rows)])


def _times(jobs: list[str], settings: Settings) -> dict[str, float]:
    model = heavy(1)
    repeated = [job for job in jobs if job != THEIRS]
    works = [partial(JOBS[job], model, TARGET) for job in repeated]
    in_turn(works, 1)  # imports and caches do not count
    times = dict(zip(repeated, in_turn(works, settings.rounds(5)), strict=True))
    if THEIRS in jobs:
        times |= dict(zip([THEIRS], in_turn([partial(JOBS[THEIRS], model, TARGET)], 1), strict=True))
    targets = cycle((TARGET, OPSET))  # alternate, so that each in-place conversion has work to do
    (times[IN_PLACE],) = in_turn([lambda: JOBS[IN_PLACE](model, next(targets))], 2 * settings.rounds(8))
    return times


def _ratio(job: str, times: dict[str, float]) -> Cell:
    ratio = times[job] / times[COPIED]
    return at_most(ratio, MOST_COPIED) if job == OURS else f"{ratio:.2f}"
