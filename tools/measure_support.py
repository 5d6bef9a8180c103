"""Compare predictions of `check_support` with models that a runtime loads.

    python tools/measure_support.py
    PYTHONPATH=src:folder/of/another/release python tools/measure_support.py --models folder --errors 20
    python tools/measure_support.py --runtime tract-0.23.9 --python ~/venv/bin/python

The runtime is the installed onnxruntime, or that of `--runtime` in the environment of `--python`, with numpy.
The models are the cases of operators in the package onnx, or the `.onnx` files below a folder. The command
prints the share of correct predictions, and of models that run by prediction only, with examples.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import onnxruntime
from onnx.backend.test.loader import load_model_tests

from measurement.run_models import Worker, loader_of
from opshift.model.errors import OpshiftError
from opshift.registry.runtimes.files import get_runtime
from opshift.runtimes.check_support import check_support


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if predictions are less accurate than required."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--models", type=Path, help="folder with models")
    parser.add_argument("--errors", type=int, default=1000, help="number of wrong predictions to print")
    parser.add_argument("--runtime", default=f"onnxruntime-{onnxruntime.__version__}")
    parser.add_argument("--python", help="interpreter with the runtime, unless that is onnxruntime")
    options = parser.parse_args(arguments)
    runtime = get_runtime(options.runtime)
    onnxruntime.set_default_logger_severity(4)
    counts: Counter[tuple[bool, bool]] = Counter()
    with ExitStack() as stack:
        worker = None
        if options.python:
            worker = stack.enter_context(closing(Worker(options.python, loader_of(runtime.runtime))))
        for name, content in models_in(options.models):
            try:
                missing = check_support(content, runtime)
            except OpshiftError as error:
                print(f"{name}: {error}")
                continue
            failure = error_in_worker(content, worker) if worker else loading_error(content)
            counts[not missing, not failure] += 1
            if bool(missing) != bool(failure) and options.errors > 0:
                options.errors -= 1
                explanation = failure or missing[0].reason
                print(
                    f"{name}: {'runs' if not missing else 'does not run'} by prediction: {explanation[:300]}"
                )
    total = counts.total()
    correct, false = counts[True, True] + counts[False, False], counts[True, False]
    print(f"{runtime.name}: {total} models, {correct / total:.2%} correct, {false / total:.2%} falsely run")
    return int(correct < 0.99 * total or false > 0.005 * total)


def models_in(folder: Path | None) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of each model."""
    if folder is not None:
        for path in sorted(folder.rglob("*.onnx")):
            yield str(path.relative_to(folder)), path.read_bytes()
        return
    for case in load_model_tests(kind="node"):
        yield case.name, case.model.SerializeToString()


def loading_error(content: bytes) -> str:
    """Return the error of onnxruntime when it loads a model; empty if there is none."""
    try:
        onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's error classes have no common base
        return str(error) or type(error).__name__
    return ""


def error_in_worker(content: bytes, worker: Worker) -> str:
    """Return the error of another runtime when it loads a model; empty if there is none."""
    outcome = worker.run(content, {})
    return "" if outcome.loads else f"{outcome.outcome}: {outcome.error}"


if __name__ == "__main__":
    sys.exit(main())
