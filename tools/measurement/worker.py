"""Load and run the models whose paths are read from standard input, in the runtime of a loader.

    python worker.py loaders/load_tract.py

A loader has a function `load`, which takes a path and returns a function. That one takes the values of the
inputs by name and returns the outputs. This script imports only numpy and the loader.
"""

from __future__ import annotations

import json
import os
import resource
import runpy
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

MAX_ERROR = 2000
"""Maximum number of characters of an error message in a result."""

MEMORY = 8 << 30
"""Maximum address space in bytes."""

Run = Callable[[Mapping[str, Any]], Sequence[Any]]


def main() -> None:
    """Write one line for each model: its outcome, and the error message."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    # Runtimes may print to standard output, too.
    results = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    load = runpy.run_path(sys.argv[1])["load"]
    print("ready", file=results, flush=True)
    for line in sys.stdin:
        outcome, error = measure(load, Path(line.strip()))
        print(json.dumps([outcome, error[:MAX_ERROR]]), file=results, flush=True)


def measure(load: Callable[[str], Run], path: Path) -> tuple[str, str]:
    """Load and run a model; return the outcome, such as `refused` or `equal`, with the error message.

    With a value `keep`, the outputs are not compared, but written to a file: then it is `runs`.
    """
    try:
        run = load(str(path))
    except Exception as error:
        return "refused", str(error)
    values = path.with_suffix(".npz")
    if not values.exists():
        return "loads", ""
    with np.load(values) as arrays:
        inputs = {name[3:]: arrays[name] for name in arrays.files if name.startswith("in.")}
        expected = [arrays[name] for name in arrays.files if name.startswith("out.")]
        tolerance = float(arrays["tolerance"]) if "tolerance" in arrays.files else None
        is_kept = "keep" in arrays.files
    try:
        outputs = run(inputs)
    except Exception as error:
        return "fails", str(error)
    if is_kept:
        np.savez(path.with_suffix(".outputs.npz"), *map(without_objects, outputs))
        return "runs", ""
    if len(outputs) != len(expected):
        return "differs", f"{len(outputs)} outputs instead of {len(expected)}"
    for position, (actual, wanted) in enumerate(zip(outputs, expected, strict=True)):
        problem = difference(np.asarray(actual), wanted, tolerance)
        if problem:
            return "differs", f"output {position}: {problem}"
    return "equal", ""


def without_objects(value: Any) -> Any:
    """Return an array that can be saved without pickling: strings get a numpy string type."""
    array = np.asarray(value)
    return array.astype("U") if array.dtype.kind == "O" else array


def difference(actual: Any, expected: Any, tolerance: float | None = None) -> str:
    """Return the difference of two arrays as text; empty if they are equal up to rounding."""
    if actual.shape != expected.shape:
        return f"shape {actual.shape} instead of {expected.shape}"
    if expected.dtype.kind not in "fc":
        wrong = actual != expected
    else:
        tolerance = tolerance or (2e-2 if expected.dtype.itemsize == 2 else 2e-3)
        wrong = ~np.isclose(actual, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
    if not np.any(wrong):
        return ""
    first = tuple(int(each[0]) for each in np.nonzero(wrong)) if np.ndim(wrong) else ()
    return f"{np.sum(wrong)} of {expected.size} values, {actual[first]} instead of {expected[first]}"


if __name__ == "__main__":
    main()
