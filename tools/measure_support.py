"""Compare predictions of `check_support` with models that the installed onnxruntime loads.

    python tools/measure_support.py
    PYTHONPATH=src:folder/of/another/release python tools/measure_support.py --models folder --errors 20

The models are the cases of operators in the package onnx, or the `.onnx` files below a folder. The command
prints the share of correct predictions, and of models that run by prediction only, with examples.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import onnxruntime
from onnx.backend.test.loader import load_model_tests

from opshift.analysis.runtime_support.check_support import check_support
from opshift.model.errors import OpshiftError
from opshift.registry.runtimes.files import get_runtime


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if predictions are less accurate than required."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--models", type=Path, help="folder with models")
    parser.add_argument("--errors", type=int, default=1000, help="number of wrong predictions to print")
    options = parser.parse_args(arguments)
    runtime = get_runtime(f"onnxruntime-{onnxruntime.__version__}")
    onnxruntime.set_default_logger_severity(4)
    counts: Counter[tuple[bool, bool]] = Counter()
    for name, content in models_in(options.models):
        try:
            missing = check_support(content, runtime)
        except OpshiftError as error:
            print(f"{name}: {error}")
            continue
        failure = loading_error(content)
        counts[not missing, not failure] += 1
        if bool(missing) != bool(failure) and options.errors > 0:
            options.errors -= 1
            explanation = failure or missing[0].reason
            print(f"{name}: {'runs' if not missing else 'does not run'} by prediction: {explanation[:300]}")
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
    except Exception as error:  # its classes have no common base
        return str(error) or type(error).__name__
    return ""


if __name__ == "__main__":
    sys.exit(main())
