"""Compare `opshift.check` with onnx's full check and onnxruntime on mutated and on legal models.

    python tools/compare_check.py [--cases 4000] [--legal 4000] [--seed 0] [--show 3]

A case is a model with one node that both accept, with one random fault, see `comparison/mutations.py`: ranks
and sizes of inputs, lengths and elements of lists, numbers, types, names, the number of inputs and outputs.
A model that both reject and `check` accepts is a miss. onnx does not know com.microsoft: its nodes count if
onnxruntime rejects them because of their definition. A legal model with an error of `check` is a false alarm.
The exit code is 1 with more than 2 % of misses, or with a false alarm. Cases depend on the seed only.
"""

from __future__ import annotations

import argparse
import random
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import NamedTuple

from comparison.legal_models import chain_model, check_errors, node_model, onnx_error, runtime_error
from comparison.mutations import mutate

BATCH = 500
"""Number of cases that a process runs, because kernels may end the process."""

CONTRIB = 20
"""Share of cases with nodes of com.microsoft, in percent."""

CHAINS = 5
"""Share of cases that are chains of nodes, in percent."""

MAX_MISSES = 0.02
"""Maximum share of misses in the models that both others reject."""

SCHEMA_ERRORS = ("INVALID_GRAPH", "ShapeInferenceError", "TypeInferenceError")
"""Substrings of onnxruntime's messages for nodes that violate a definition, whether or not kernels exist."""


class Outcome(NamedTuple):
    """Result of a case.

    Attributes:
        kind: `rejected` by all, `miss`, `accepted`, `stricter` if only `check` rejects a mutated model,
            `legal`, or `false alarm`.
        operator: the operator of the first node.
        mutation: the change of the node; empty for a legal model.
        details: the errors.
    """

    kind: str
    operator: str
    mutation: str = ""
    details: str = ""


def run_mutated(seed: int, index: int) -> Outcome | None:
    """Return the outcome of a mutated model.

    `None` if no model can be drawn, or if only one of onnxruntime and the other check rejects it.
    """
    rng = random.Random(f"{seed} mutated {index}")
    kind = rng.randrange(100)
    contrib = CHAINS <= kind < CHAINS + CONTRIB
    model = chain_model(rng) if kind < CHAINS else node_model(rng, contrib=contrib)
    if model is None:
        return None
    operator, mutation = mutate(model, rng)
    runtime, other = runtime_error(model), onnx_error(model)
    if contrib:
        other = runtime if any(each in runtime for each in SCHEMA_ERRORS) else ""
    if bool(runtime) != bool(other):
        return None
    errors = check_errors(model)
    if runtime:
        found = "rejected" if errors else "miss"
        return Outcome(found, operator, mutation, " ".join(f"{other} | {runtime}".split()))
    return Outcome("stricter" if errors else "accepted", operator, mutation, " ".join(errors))


def run_legal(seed: int, index: int) -> Outcome | None:
    """Return the outcome of a legal model; `None` if none can be drawn."""
    rng = random.Random(f"{seed} legal {index}")
    kind = rng.randrange(100)
    model = chain_model(rng) if kind < CHAINS else node_model(rng, contrib=kind < CHAINS + CONTRIB)
    if model is None:
        return None
    errors = check_errors(model)
    operator = model.graph.node[0].op_type
    return Outcome("false alarm" if errors else "legal", operator, details=" ".join(errors))


RUNS = {"mutated": run_mutated, "legal": run_legal}


def run_cases(kind: str, seed: int, indices: Sequence[int]) -> list[tuple[int, Outcome]]:
    """Run the cases with these numbers."""
    warnings.simplefilter("ignore")
    outcomes = ((index, RUNS[kind](seed, index)) for index in indices)
    return [(index, outcome) for index, outcome in outcomes if outcome is not None]


def _safely(kind: str, seed: int, indices: Sequence[int]) -> Iterator[tuple[int, Outcome]]:
    """Run cases in another process, and skip each case that ends the process."""
    try:
        with ProcessPoolExecutor(1) as pool:
            yield from pool.submit(run_cases, kind, seed, indices).result()
    except BrokenProcessPool:
        if len(indices) > 1:
            middle = len(indices) // 2
            for half in (indices[:middle], indices[middle:]):
                yield from _safely(kind, seed, half)


def compare(kind: str, seed: int, cases: int) -> Iterator[tuple[int, Outcome]]:
    """Compare `cases` mutated or legal models, and yield their outcomes."""
    for start in range(0, cases, BATCH):
        yield from _safely(kind, seed, range(start, min(start + BATCH, cases)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, print misses, false alarms and a table, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=4000, help="number of mutated models to draw")
    parser.add_argument("--legal", type=int, default=4000, help="number of legal models to draw")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=3, help="number of cases to print for each operator")
    parser.add_argument("--only", default="miss,false alarm", help="outcomes to print, separated by commas")
    options = parser.parse_args(arguments)
    printed, shown = options.only.split(","), Counter[str]()
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for kind, cases in (("mutated", options.cases), ("legal", options.legal)):
        for index, outcome in compare(kind, options.seed, cases):
            table[outcome.kind][outcome.operator] += 1
            key = f"{outcome.kind} {outcome.operator}"
            if outcome.kind in printed and shown[key] < options.show:
                shown[key] += 1
                print(f"{index} {key} {outcome.mutation}: {outcome.details[:400]}", flush=True)
    counts = {kind: each.total() for kind, each in table.items()}
    print(", ".join(f"{kind} {count:,}" for kind, count in sorted(counts.items())))
    misses, alarms = counts.get("miss", 0), counts.get("false alarm", 0)
    share = misses / max(1, misses + counts.get("rejected", 0))
    print(f"misses: {share:.1%} in {len(table['miss'])} operators; false alarms: {alarms}")
    return int(share > MAX_MISSES or alarms > 0)


if __name__ == "__main__":
    sys.exit(main())
