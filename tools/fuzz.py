"""Run mutated models, definitions and documents through every public call.

    python tools/fuzz.py [--large | --texts] [--seconds 60] [--cases N] [--seed 0] [--out findings] [--jobs 2]

Every case has to end with a result or an OpshiftError within the limits of `fuzzing/worker.py`. Every other
outcome is a finding: its file is written to a folder, and the exit code is 1. After the fault is fixed, move
the file to `tests/regressions/<call>/`, and `tests/test_regressions.py` runs it. The cases depend on the seed
only.

With `--large`, the cases are models and texts of at most 100 KB with long lists, deep nesting and huge
declared sizes, and have stricter limits: 2 seconds of CPU time, and 500 MiB. With `--texts`, they are texts
of nodes and models, definitions and documents.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from fuzzing.worker import LARGE_FILES, MUTATED_FILES, TEXTS, Outcome, is_finding, run_cases

LARGE_HELP = "models and texts that are costly for their size"


class Summary:
    """Number of outcomes by call, and the findings."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.counts: Counter[tuple[str, str]] = Counter()
        self.findings: list[Outcome] = []

    def add(self, outcome: Outcome) -> None:
        """Count an outcome; write the file of the case if it is a finding."""
        self.counts[outcome.case.call, outcome.outcome] += 1
        if not is_finding(outcome):
            return
        self.findings.append(outcome)
        folder = self.out / outcome.case.call.replace(" ", "-")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{outcome.case.seed.replace(':', '-')}{outcome.case.suffix}"
        path.write_bytes(outcome.case.content)
        print(f"{path}: {outcome.outcome}\n{outcome.details}", flush=True)

    def print(self) -> None:
        """Print one line per call."""
        for call in sorted({name for name, _ in self.counts}):
            counts = {outcome: number for (name, outcome), number in self.counts.items() if name == call}
            shown = ", ".join(f"{outcome} {number:,}" for outcome, number in sorted(counts.items()))
            print(f"{call}: {shown}")
        print(f"{self.counts.total():,} cases, {len(self.findings)} findings")


def main() -> int:
    """Fuzz and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--cases", type=int, default=sys.maxsize, help="maximum number of cases")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("findings"))
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--large", action="store_const", dest="kind", const=LARGE_FILES, help=LARGE_HELP)
    kinds.add_argument("--texts", action="store_const", dest="kind", const=TEXTS, help="texts only")
    parser.set_defaults(kind=MUTATED_FILES)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    summary, end = Summary(arguments.out), time.monotonic() + arguments.seconds

    def run(start: int) -> None:
        cases = iter(range(arguments.cases // arguments.jobs))
        is_over = partial(_is_over, end, cases)
        for outcome in run_cases(arguments.kind, arguments.seed, start, arguments.jobs, is_over):
            summary.add(outcome)

    with ThreadPoolExecutor(arguments.jobs) as pool:
        list(pool.map(run, range(arguments.jobs)))
    summary.print()
    return 1 if summary.findings else 0


def _is_over(end: float, cases: Iterator[int]) -> bool:
    return time.monotonic() >= end or next(cases, None) is None


if __name__ == "__main__":
    sys.exit(main())
