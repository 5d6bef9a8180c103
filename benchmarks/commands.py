"""Commands of the processes to compare."""

from __future__ import annotations

import sys
from pathlib import Path

SERIALIZE_CODE = "import sys, onnx; onnx.save(onnx.load(sys.argv[1]), sys.argv[2])"
THEIRS_CODE = """
import sys, onnx
from onnx import version_converter
model = version_converter.convert_version(onnx.load(sys.argv[1]), int(sys.argv[3]))
onnx.save(model, sys.argv[2])
"""


def convert(source: Path, out: Path, target: int) -> list[str]:
    """Return a call of `opshift convert` from the current environment."""
    return command("convert", str(source), str(out), "-t", str(target))


def command(*arguments: str) -> list[str]:
    """Return a call of `opshift` from the current environment."""
    return [str(Path(sys.executable).parent / "opshift"), *arguments]


def serialize(source: Path, out: Path) -> list[str]:
    """Return a command that imports onnx, loads the model and saves it unchanged."""
    return [sys.executable, "-c", SERIALIZE_CODE, str(source), str(out)]


def convert_with_onnx(source: Path, out: Path, target: int) -> list[str]:
    """Return a command that imports onnx, loads the model, converts it and saves it."""
    return [sys.executable, "-c", THEIRS_CODE, str(source), str(out), str(target)]
