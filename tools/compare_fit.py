"""Fit random chains of nodes to runtimes, run the results there, and compare their outputs.

    python tools/compare_fit.py --cases 1000
    python tools/compare_fit.py --runtime onnxruntime-1.20.1=FOLDER --runtime tract-0.23.9=PYTHON --seed 3
    python tools/compare_fit.py --first 17 --cases 1 --save FOLDER
    python tools/compare_fit.py --recognize --cases 1000

A runtime is the installed onnxruntime, another release of it in a folder as `pip install --no-deps --target`
makes it, or another runtime in the environment of an interpreter, with numpy. The reference is the installed
onnxruntime, or onnx.reference for nodes without a kernel. The command prints the faults with the nodes that
cause them, the wrong results that the data about the runtimes lacks, and the number of chains by outcome, see
`comparison/fit_chains.py`. With `--recognize`, chains have the nodes that express operators, and variants of
these nodes, and the command counts the operators that `fit` recognizes. It returns 1 if there are faults.
Chains depend on the seed and their number only.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from comparison.chains import Chain, sample_chain
from comparison.fit_chains import FAULTS, FitOutcome, fit_chain
from comparison.measure_nodes import MeasuredNode, wrong_text
from comparison.recognizable_chains import sample_recognizable_chain
from measurement.run_models import Worker, loader_of
from measurement.worker import without_objects
from opshift.registry.runtimes.files import get_runtime

BATCH = 100
"""Number of chains that a process draws, because kernels may end the process."""

DrawChain = Callable[[int, int], Chain | None]
"""Function of a seed and a number that draws a chain."""

Found = list[tuple[int, str, FitOutcome, Chain]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, print the faults and a table, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=200, help="number of chains")
    parser.add_argument("--first", type=int, default=0, help="number of the first chain")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--recognize", action="store_true", help="recognize operators")
    parser.add_argument("--runtime", action="append", default=[], help="NAME, NAME=FOLDER or NAME=PYTHON")
    parser.add_argument("--only", default=",".join((*FAULTS, "unknown")), help="outcomes to print")
    parser.add_argument("--save", type=Path, help="folder for models and inputs of printed outcomes")
    options = parser.parse_args(arguments)
    runtimes = options.runtime or [f"onnxruntime-{onnxruntime.__version__}"]
    printed = options.only.split(",")
    table: dict[str, Counter[str]] = defaultdict(Counter)
    nodes: dict[str, list[MeasuredNode]] = defaultdict(list)
    recognized: dict[str, Counter[str]] = defaultdict(Counter)
    draw = sample_recognizable_chain if options.recognize else sample_chain
    last = options.first + options.cases
    for start in range(options.first, last, BATCH):
        indices = list(range(start, min(start + BATCH, last)))
        for index, name, outcome, chain in _safely(draw, options.seed, indices, runtimes):
            table[name][outcome.kind] += 1
            recognized[name].update(outcome.recognized)
            nodes[name] += outcome.nodes
            if outcome.kind in printed:
                details = " ".join(outcome.details.split())[:300]
                print(f"{index} {name} {outcome.kind} {outcome.causes}: {details}", flush=True)
                if options.save:
                    _save(options.save / f"{index}-{name}", chain, outcome)
    for name, measured in nodes.items():
        print(wrong_text(name, measured), end="")
    for name, counts in table.items():
        text = ", ".join(f"{kind} {count:,}" for kind, count in sorted(counts.items()))
        print(f"{name}: {counts.total():,} chains: {text}")
    for name, counts in recognized.items():
        if counts:
            text = ", ".join(f"{operator} {count:,}" for operator, count in counts.most_common())
            print(f"{name}: {counts.total():,} recognized nodes: {text}")
    return int(any(counts[kind] for counts in table.values() for kind in FAULTS))


def _save(path: Path, chain: Chain, outcome: FitOutcome) -> None:
    """Save the models of a chain, each with its inputs in a file `.npz` with the same name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for name, model in (("original", chain.model), ("fitted", outcome.fitted)):
        if model:
            onnx.save(model, path.with_name(f"{path.name}-{name}.onnx"))
            feeds: Any = {key: without_objects(each) for key, each in chain.feeds.items()}
            np.savez(path.with_name(f"{path.name}-{name}.npz"), **feeds)


def _safely(
    draw: DrawChain, seed: int, indices: list[int], runtimes: Sequence[str]
) -> Iterator[tuple[int, str, FitOutcome, Chain]]:
    """Compare chains in another process; skip each chain that ends the process of the reference."""
    try:
        with ProcessPoolExecutor(1) as pool:
            yield from pool.submit(compare_chains, draw, seed, indices, runtimes).result()
    except BrokenProcessPool:
        if len(indices) > 1:
            middle = len(indices) // 2
            for half in (indices[:middle], indices[middle:]):
                yield from _safely(draw, seed, half, runtimes)


def compare_chains(draw: DrawChain, seed: int, indices: list[int], runtimes: Sequence[str]) -> Found:
    """Return the outcomes of chains by number and runtime, with their models."""
    warnings.simplefilter("ignore")
    found: Found = []
    with ExitStack() as stack:
        workers = []
        for each in runtimes:
            name, _, place = each.partition("=")
            worker = stack.enter_context(closing(worker_of(name, place)))
            workers.append((get_runtime(name), worker))
        for index in indices:
            chain = draw(seed, index)
            if chain is None:
                continue
            for runtime, worker in workers:
                outcome = fit_chain(chain, runtime, worker)
                found.append((index, runtime.name, outcome, chain))
    return found


def worker_of(name: str, place: str) -> Worker:
    """Return a process in which models run; `place` is a folder with onnxruntime, or an interpreter."""
    path = Path(place).expanduser()
    python = str(path) if path.is_file() else sys.executable
    folders = [path] if place and path.is_dir() else []
    return Worker(python, loader_of(get_runtime(name).runtime), folders=folders)


if __name__ == "__main__":
    sys.exit(main())
