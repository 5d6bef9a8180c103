"""How fast models convert in memory, beside ONNX's own converter in the same run.

    python benchmarks/convert.py [--nodes 10000] [--rounds 5]

Prints, for each pair of opsets, the median CPU time of both and how many times as fast opshift is.
Both get the same onnx.ModelProto and return a new model.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import onnx
from graphs import mixed
from onnx import version_converter

import opshift

PAIRS = ((9, 18), (13, 21), (17, 18))


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[10_000])
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    print(f"{'nodes':>7} {'opsets':>9} {'times as fast':>14} {'opshift ms':>11} {'onnx ms':>9}")
    for nodes in given.nodes:
        for source, target in PAIRS:
            ours, theirs = measure(mixed(nodes, source), target, given.rounds)
            print(
                f"{nodes:>7} {source:>3} -> {target:<3} {theirs / ours:>13.1f} "
                f"{ours * 1e3:>11.1f} {theirs * 1e3:>9.1f}"
            )


def measure(model: onnx.ModelProto, target: int, rounds: int) -> tuple[float, float]:
    """Median CPU seconds of opshift and of ONNX's converter, taken in turn."""
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(_cpu(lambda: opshift.convert_version(model, target)))
        theirs.append(_cpu(lambda: version_converter.convert_version(model, target)))
    return statistics.median(ours), statistics.median(theirs)


def _cpu(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    main()
