"""Compare conversions of models to float16 with those of onnxconverter-common.

`python tools/compare_types.py FOLDER --other PYTHON` converts each model of a folder, runs the results and
the originals on the same inputs, and counts the models whose outputs are within 1e-2. PYTHON has
onnxconverter-common; without it, only opshift is measured.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import onnx

import opshift

OTHER = """
import sys, onnx
from onnxconverter_common import float16
onnx.save(float16.convert_float_to_float16(onnx.load(sys.argv[1])), sys.argv[2])
"""


def outcome(original: Path, converted: onnx.ModelProto | None) -> str:
    """Return `same`, or the fault of a conversion."""
    if converted is None:
        return "not converted"
    try:
        opshift.verify(original, converted, samples=1, tolerance=1e-2)
    except opshift.VerificationFailed as error:
        return "does not run" if "does not run" in error.reason else "different"
    except opshift.CannotVerify:
        return "not compared"
    return "same"


def own_conversion(path: Path) -> onnx.ModelProto | None:
    """Return a model in float16."""
    try:
        return opshift.convert_types(onnx.load(path), "float=float16", allow=("approximate", "clamp"))
    except opshift.ConversionRefused:
        return None


def other_conversion(path: Path, python: str, folder: Path) -> onnx.ModelProto | None:
    """Return a model in float16 by onnxconverter-common."""
    result = folder / "half.onnx"
    result.unlink(missing_ok=True)
    done = subprocess.run([python, "-c", OTHER, str(path), str(result)], capture_output=True, check=False)
    return onnx.load(result) if done.returncode == 0 else None


def compare(models: list[Path], python: str | None) -> Iterator[tuple[str, Path, str]]:
    """Yield the converter, the model and the outcome of each conversion."""
    with tempfile.TemporaryDirectory() as folder:
        for path in models:
            yield "opshift", path, outcome(path, own_conversion(path))
            if python:
                other = other_conversion(path, python, Path(folder))
                yield "onnxconverter-common", path, outcome(path, other)


def main() -> None:
    """Print each outcome, and their numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--other", metavar="PYTHON")
    arguments = parser.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    for converter, path, found in compare(sorted(arguments.folder.rglob("*.onnx")), arguments.other):
        counts[converter, found] += 1
        print(f"{converter}: {found}: {path.name}", flush=True)
    for (converter, found), count in sorted(counts.items()):
        print(f"{converter}: {count} {found}")


if __name__ == "__main__":
    main()
