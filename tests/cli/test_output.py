"""Output in a terminal, in a pipe, and as JSON."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path

import pytest
from typer.testing import Result

from opshift.cli.options import Format
from opshift.cli.output import print_result
from opshift.cli.page import displayable

Run = Callable[..., Result]
OPSHIFT = [sys.executable, "-m", "opshift"]
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
CLEAN_ENVIRONMENT = {
    key: value for key, value in os.environ.items() if key not in ("FORCE_COLOR", "NO_COLOR", "COLUMNS")
}
"""The environment without variables that control colour and width."""


def run_in_terminal(
    width: int, *arguments: str, command: Sequence[str] = OPSHIFT, **variables: str
) -> tuple[str, int]:
    """Return the output of a command in a terminal, and its exit code."""
    pty = pytest.importorskip("pty")
    fcntl, termios = pytest.importorskip("fcntl"), pytest.importorskip("termios")
    parent_end, child_end = pty.openpty()
    fcntl.ioctl(child_end, termios.TIOCSWINSZ, _window(width))
    environment = {**CLEAN_ENVIRONMENT, "TERM": "xterm-256color", **variables}
    process = subprocess.Popen(
        [*command, *arguments],
        stdin=child_end,
        stdout=child_end,
        stderr=child_end,
        env=environment,
        close_fds=True,
    )
    os.close(child_end)
    output = b"".join(_chunks(parent_end))
    os.close(parent_end)
    return output.decode().replace("\r\n", "\n"), process.wait()


def _window(width: int) -> bytes:
    return (50).to_bytes(2, sys.byteorder) + width.to_bytes(2, sys.byteorder) + bytes(4)


def _chunks(handle: int) -> Iterator[bytes]:
    while True:
        try:
            chunk = os.read(handle, 65536)
        except OSError:  # Linux reports a closed terminal as an error
            return
        if not chunk:
            return
        yield chunk


def test_terminal_output_has_colours_and_fits_width(old_model: Path) -> None:
    output, code = run_in_terminal(70, "plan", "old.onnx", "-t", "17")
    plain = ESCAPE.sub("", output)
    assert code == 0
    assert "\x1b[36m" in output
    assert "───" in plain
    assert max(len(line) for line in plain.splitlines()) <= 70
    assert "…" not in plain


def test_narrow_terminal_keeps_names_complete(run: Run) -> None:
    output, _ = run_in_terminal(40, "resolve", "ai.onnx.ml.TreeEnsembleClassifier")
    assert output == "ai.onnx.ml.TreeEnsembleClassifier:5\n"
    for width in (30, 60):
        output, _ = run_in_terminal(width, "list", "-d", "ai.onnx.ml")
        assert "…" not in output
        assert max(map(len, ESCAPE.sub("", output).splitlines())) <= width


@pytest.mark.some_cases(2)
@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", "old.onnx", "-t", "17"],
        ["show", "Resize"],
        ["list"],
        ["targets"],
        ["inspect", "old.onnx"],
        ["-h"],
    ],
    ids=" ".join,
)
def test_pipe_output_is_plain_text(old_model: Path, arguments: list[str]) -> None:
    completed = subprocess.run(
        [*OPSHIFT, *arguments], capture_output=True, text=True, env=CLEAN_ENVIRONMENT, check=True
    )
    assert completed.stderr == ""
    assert completed.stdout.isascii()
    assert "\x1b" not in completed.stdout
    assert all(line == line.rstrip() for line in completed.stdout.splitlines())


def test_pipe_output_has_one_line_per_row(run: Run) -> None:
    rows = [line for line in run("show", "Resize").stdout.splitlines() if "  change  " in line]
    assert len(rows) == 5
    assert max(map(len, rows)) > 300


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["convert", "old.onnx", "out.onnx", "-t", "17"], id="convert"),
        pytest.param(["plan", "old.onnx", "-t", "17"], id="plan"),
        pytest.param(["inspect", "old.onnx"], id="inspect"),
        pytest.param(["show", "Clip:6"], id="show"),
        pytest.param(["list"], id="list"),
        pytest.param(["resolve", "Conv"], id="resolve"),
        pytest.param(["targets"], id="targets"),
    ],
)
def test_every_command_prints_json(run: Run, old_model: Path, arguments: list[str]) -> None:
    result = run(*arguments, "--format", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    assert isinstance(json.loads(result.stdout), dict)


def test_json_encodes_infinity_as_string(capsys: pytest.CaptureFixture[str]) -> None:
    print_result(
        Format.JSON, {"a": math.inf, "b": (1.5, None), "c": Path("x"), "d": {"ä": True}}, lambda page: None
    )
    text = capsys.readouterr().out
    assert text.isascii()
    assert json.loads(text) == {"a": "inf", "b": [1.5, None], "c": "x", "d": {"ä": True}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("größe", "größe"),
        ("a\x1b[0m", "a\\x1b[0m"),
        ("a\nb", "a\\nb"),
        ("\udcff", "\\udcff"),
    ],
)
def test_escapes_control_characters(text: str, expected: str) -> None:
    assert displayable(text) == expected


def test_closed_pipe_shows_no_traceback() -> None:
    process = subprocess.Popen(
        [*OPSHIFT, "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=CLEAN_ENVIRONMENT
    )
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate()
    assert b"Traceback" not in errors


def test_prints_any_name_in_any_encoding(folder: Path) -> None:
    environment = {**CLEAN_ENVIRONMENT, "PYTHONIOENCODING": "ascii"}
    completed = subprocess.run(
        [*OPSHIFT, "inspect", "größe.onnx"], capture_output=True, env=environment, check=False
    )
    assert completed.returncode == 2
    assert b"e.onnx: file does not exist" in completed.stderr


def test_prints_version() -> None:
    completed = subprocess.run([*OPSHIFT, "--version"], capture_output=True, text=True, check=True)
    assert completed.stdout == f"opshift {metadata.version('opshift')}\n"


def test_start_loads_no_large_modules() -> None:
    heavy = ("onnx", "numpy", "networkx", "pydantic", "yaml", "rich", "google.protobuf", "fsspec")
    code = f"import sys, opshift.cli.main; print([name for name in {heavy} if name in sys.modules])"
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert completed.stdout == "[]\n"


CONVERSION_SCRIPT = """
import sys
from opshift.cli.main import app
try:
    app(["convert", "old.onnx", "out.onnx", "-t", {target!r}])
except SystemExit as left:
    assert left.code == 0
print([name for name in {unneeded} if name in sys.modules])
"""
UNNEEDED = (
    "onnx", "numpy", "networkx", "pydantic", "yaml", "rich", "importlib.metadata", "fsspec",
    "opshift.registry.loader", "opshift.registry.type_sets", "opshift.adapters.ops.nn.pooling",
    "opshift.converter.functions.specialization", "opshift.converter.reversible.record",
    "opshift.analysis",
    "opshift.cli.proposal", "opshift.proposals",
)  # fmt: skip


@pytest.mark.some_cases(1)
@pytest.mark.parametrize("target", ["17", "onnx-1.12", "9"], ids=["upgrade", "release", "downgrade"])
def test_conversion_loads_only_required_modules(old_model: Path, target: str) -> None:
    code = CONVERSION_SCRIPT.format(target=target, unneeded=UNNEEDED)
    for _ in range(2):  # the first run may have to compile definitions
        Path("out.onnx").unlink(missing_ok=True)
        completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert completed.stdout.splitlines()[-1] == "[]"


def test_conversion_works_without_onnx(old_model: Path) -> None:
    code = (
        "import sys; sys.modules['onnx'] = sys.modules['numpy'] = None; from opshift.cli.main import main;"
        "sys.argv = ['opshift', 'convert', 'old.onnx', 'out.onnx', '-t', '17']; main()"
    )
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (completed.returncode, completed.stderr) == (0, "")
