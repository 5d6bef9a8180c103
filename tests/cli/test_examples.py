"""The commands in the table of docs/command-line.md, and the examples of the help, succeed."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from opshift.cli.main import COMMANDS

pytestmark = pytest.mark.every_case

Run = Callable[..., Result]

ROOT = Path(__file__).parents[2]

ROWS = re.findall(r"^\| `opshift ([^`]*)`", (ROOT / "docs/command-line.md").read_text("utf-8"), re.M)

EXAMPLES = dict.fromkeys(
    [
        *(re.sub(r"\b(IN|A|B|C|OLD|NEW)\b", r"\1.onnx", row) for row in ROWS),
        *(f"{command.name} {each}".strip() for command in COMMANDS for each in command.examples),
    ]
)

TESTED_ELSEWHERE = re.compile(r"site |data\b|breaking --policy|.* < ")
"""Commands that take long, need a git repository, or read standard input."""

FINDINGS = ["diff Softmax 11 13 --mode backward"]
"""Examples that report findings."""

ECHO = """
domain: com.acme
name: Echo
versions:
- since_version: 1
  inputs: [{name: x, type: T}]
  outputs: [{name: y, type: T}]
  type_constraints: {T: [tensor(float)]}
  descriptions:
    operator: It returns its input.
    inputs: {x: The tensor.}
    outputs: {y: The same tensor.}
    types: {T: The type of the elements.}
"""

DEVICE = """
runtime: device
version: "1.0"
extends: onnxruntime-1.31.1
evidence: {kind: documentation, source: tests, date: 2026-11-23}
"""


@pytest.fixture
def files(folder: Path) -> None:
    """Write the files that the examples name."""
    names = (
        "IN",
        "A",
        "B",
        "C",
        "OLD",
        "NEW",
        "model",
        "old",
        "new",
        "v1",
        "v2",
        "zoo/a",
        "models/a",
        "more/a",
    )
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "tests" / "golden" / "segmenter-9.onnx", folder / f"{name}.onnx")
    (folder / "list.txt").write_text("model.onnx\n", "utf-8")
    (folder / "device.yaml").write_text(DEVICE, "utf-8")
    for tree in ("acme", "acme-1.0", "opsets", "main"):
        (folder / tree / "com.acme").mkdir(parents=True)
        (folder / tree / "com.acme" / "Echo.yaml").write_text(ECHO, "utf-8")
    (folder / "acme" / "adapters").mkdir()
    (folder / "acme" / "adapters" / "echo.py").write_text("", "utf-8")


@pytest.mark.parametrize("example", [each for each in EXAMPLES if not TESTED_ELSEWHERE.match(each)])
def test_example_succeeds(example: str, files: None, folder: Path, run: Run) -> None:
    arguments = [
        str(name)
        for argument in shlex.split(example)
        for name in (sorted(folder.glob(argument)) if argument.startswith("*.") else [argument])
    ]
    done = run(*arguments)
    assert done.exit_code == int(example in FINDINGS), done.output
