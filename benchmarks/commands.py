"""The processes that are compared, as they are started from a shell."""

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
    """The command `opshift convert` of the environment that this runs in."""
    return [str(Path(sys.executable).parent / "opshift"), "convert", str(source), str(out), "-t", str(target)]


def serialize(source: Path, out: Path) -> list[str]:
    """A process that imports onnx, loads the model and saves it as it is."""
    return [sys.executable, "-c", SERIALIZE_CODE, str(source), str(out)]


def convert_with_onnx(source: Path, out: Path, target: int) -> list[str]:
    """A process that imports onnx, loads the model, converts it and saves it."""
    return [sys.executable, "-c", THEIRS_CODE, str(source), str(out), str(target)]
