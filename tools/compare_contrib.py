"""Compare random nodes of com.microsoft in onnxruntime with the standard operators that replace them.

    python tools/compare_contrib.py [--cases 20000] [--seed 0] [--operators A,B] [--show 5] [--only wrong]

Each case is one node with random attributes, optional inputs, types and sizes. onnxruntime runs its own
kernel, and the model after `convert_version(model, target, without="com.microsoft")`. Cases that the kernel
or the conversion refuses are not counted. `comparison/kernel_faults.py` has known faults of kernels. The exit
code is 1 if other outputs differ, or a converted model does not run. Cases depend on the seed only.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from comparison.compare import KERNELS, OPERATORS, Outcome, case_at, run_case, run_model

BATCH = 200
"""Number of cases that a process runs at once."""


def run_cases(seed: int, indices: list[int]) -> list[tuple[int, Outcome]]:
    """Run the cases with these numbers."""
    return [(index, run_case(case_at(seed, index))) for index in indices]


def _safely(seed: int, indices: list[int]) -> Iterator[tuple[int, Outcome]]:
    """Run cases in another process; a case that ends the process becomes a crash."""
    try:
        with ProcessPoolExecutor(1) as pool:
            yield from pool.submit(run_cases, seed, indices).result()
    except BrokenProcessPool:
        if len(indices) == 1:
            yield indices[0], _explain_crash(seed, indices[0])
            return
        middle = len(indices) // 2
        for half in (indices[:middle], indices[middle:]):
            yield from _safely(seed, half)


def _explain_crash(seed: int, index: int) -> Outcome:
    """Return whether the kernel of the original node or the converted model ends the process."""
    op_type = OPERATORS[index % len(OPERATORS)]
    try:
        with ProcessPoolExecutor(1) as pool:
            pool.submit(run_original, seed, index).result()
    except BrokenProcessPool:
        return Outcome(op_type, "no kernel", "the kernel ends the process")
    return Outcome(op_type, "wrong", "the converted model ends the process")


def run_original(seed: int, index: int) -> int:
    """Run the kernel of a case, and return the number of outputs."""
    case = case_at(seed, index)
    return len(run_model(case.model, case.feeds))


def main() -> int:
    """Compare, print the wrong cases and a table, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=20000, help="number of cases to compare")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--operators", default="", help="only these operators, separated by commas")
    parser.add_argument("--show", type=int, default=5, help="number of cases to print for each operator")
    parser.add_argument("--only", default="wrong", help="kinds of outcomes to print, separated by commas")
    arguments = parser.parse_args()
    wanted = set(arguments.operators.split(",")) - {""} or KERNELS
    kinds, shown = arguments.only.split(","), Counter[str]()
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for index, outcome in _compare(arguments.seed, arguments.cases, wanted):
        table[outcome.op_type][outcome.kind] += 1
        if outcome.kind in kinds and shown[outcome.op_type] < arguments.show:
            shown[outcome.op_type] += 1
            print(f"{index} {outcome.op_type} {outcome.kind}: {outcome.details}", flush=True)
    for op_type, counts in sorted(table.items()):
        print(op_type, _counts_text(counts))
    total = sum(table.values(), Counter[str]())
    print("all", _counts_text(total))
    return 1 if total["wrong"] else 0


def _counts_text(counts: Counter[str]) -> str:
    return ", ".join(f"{kind} {count:,}" for kind, count in sorted(counts.items()))


def _compare(seed: int, cases: int, wanted: set[str]) -> Iterator[tuple[int, Outcome]]:
    """Run cases of some operators until enough cases are compared."""
    compared = start = 0
    step = BATCH * len(OPERATORS) // len(wanted)
    while compared < cases:
        indices = [i for i in range(start, start + step) if OPERATORS[i % len(OPERATORS)] in wanted]
        start += step
        for index, outcome in _safely(seed, indices):
            compared += outcome.kind in ("same", "wrong", "kernel fault", "unstable")
            yield index, outcome


if __name__ == "__main__":
    sys.exit(main())
