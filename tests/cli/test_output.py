"""The same answers in a terminal, in a pipe, and for programs."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import Result

from opshift.cli.options import Format
from opshift.cli.output import emit, visible

Run = Callable[..., Result]
OPSHIFT = [sys.executable, "-m", "opshift"]
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
CLEAN = {key: value for key, value in os.environ.items() if key not in ("FORCE_COLOR", "NO_COLOR", "COLUMNS")}
"""The environment without what decides on colour and width."""


def in_terminal(width: int, *arguments: str) -> tuple[str, int]:
    """What a command shows in a terminal, and its exit code."""
    pty = pytest.importorskip("pty")
    fcntl, termios = pytest.importorskip("fcntl"), pytest.importorskip("termios")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, _window(width))
    environment = {**CLEAN, "TERM": "xterm-256color"}
    process = subprocess.Popen(
        [*OPSHIFT, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=environment, close_fds=True
    )
    os.close(theirs)
    shown = b"".join(_chunks(ours))
    os.close(ours)
    return shown.decode().replace("\r\n", "\n"), process.wait()


def _window(width: int) -> bytes:
    return (50).to_bytes(2, sys.byteorder) + width.to_bytes(2, sys.byteorder) + bytes(4)


def _chunks(handle: int) -> Iterator[bytes]:
    while True:
        try:
            chunk = os.read(handle, 65536)
        except OSError:  # how Linux says that the other side is closed
            return
        if not chunk:
            return
        yield chunk


def test_a_terminal_gets_colours_and_rules_within_its_width(old_model: Path) -> None:
    shown, code = in_terminal(70, "plan", "old.onnx", "-t", "17")
    bare = ESCAPE.sub("", shown)
    assert code == 0
    assert "\x1b[36m" in shown
    assert "───" in bare
    assert max(len(line) for line in bare.splitlines()) <= 70
    assert "…" not in bare


def test_a_narrow_terminal_cuts_no_name_off(run: Run) -> None:
    shown, _ = in_terminal(40, "resolve", "ai.onnx.ml.TreeEnsembleClassifier")
    assert shown == "ai.onnx.ml.TreeEnsembleClassifier:5\n"
    for width in (30, 60):
        shown, _ = in_terminal(width, "list", "-d", "ai.onnx.ml")
        assert "…" not in shown
        assert max(map(len, ESCAPE.sub("", shown).splitlines())) <= width


def test_a_terminal_sees_what_is_being_done(old_model: Path) -> None:
    assert "Reading old.onnx" in in_terminal(80, "inspect", "old.onnx")[0]
    assert "Reading" not in in_terminal(80, "convert", "old.onnx", "out.onnx", "-t", "17", "--quiet")[0]


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
def test_a_pipe_gets_plain_text(old_model: Path, arguments: list[str]) -> None:
    done = subprocess.run([*OPSHIFT, *arguments], capture_output=True, text=True, env=CLEAN, check=True)
    assert done.stderr == ""
    assert done.stdout.isascii()
    assert "\x1b" not in done.stdout
    assert all(line == line.rstrip() for line in done.stdout.splitlines())


def test_a_row_is_a_line_in_a_pipe(run: Run) -> None:
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
def test_every_command_speaks_json(run: Run, old_model: Path, arguments: list[str]) -> None:
    result = run(*arguments, "--format", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    assert isinstance(json.loads(result.stdout), dict)


def test_json_has_no_words_for_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    emit(Format.JSON, {"a": math.inf, "b": (1.5, None), "c": Path("x"), "d": {"ä": True}}, lambda page: None)
    shown = capsys.readouterr().out
    assert shown.isascii()
    assert json.loads(shown) == {"a": "inf", "b": [1.5, None], "c": "x", "d": {"ä": True}}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("größe", "größe"),
        ("a\x1b[0m", "a\\x1b[0m"),
        ("a\nb", "a\\nb"),
        ("\udcff", "\\udcff"),
    ],
)
def test_control_characters_are_spelled_out(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_reader_may_leave_early() -> None:
    process = subprocess.Popen([*OPSHIFT, "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=CLEAN)
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate()
    assert b"Traceback" not in errors


def test_any_name_fits_any_encoding(folder: Path) -> None:
    environment = {**CLEAN, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [*OPSHIFT, "inspect", "größe.onnx"], capture_output=True, env=environment, check=False
    )
    assert done.returncode == 2
    assert b"e.onnx: file does not exist" in done.stderr


def test_the_version() -> None:
    done = subprocess.run([*OPSHIFT, "--version"], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"opshift \d+\.\d+\.\d+\n", done.stdout)


def test_starting_up_loads_little() -> None:
    heavy = ("onnx", "numpy", "networkx", "pydantic", "yaml", "rich", "google.protobuf")
    code = f"import sys, opshift.cli.main; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


CONVERTING = """
import sys
from opshift.cli.main import app
try:
    app(["convert", "old.onnx", "out.onnx", "-t", {target!r}])
except SystemExit as left:
    assert left.code == 0
print([name for name in {unneeded} if name in sys.modules])
"""
UNNEEDED = (
    "onnx", "numpy", "networkx", "pydantic", "yaml", "rich", "importlib.metadata",
    "opshift.registry.loader", "opshift.registry.type_sets", "opshift.adapters.pooling",
    "opshift.converter.bodies", "opshift.converter.reversible.record", "opshift.converter.verification",
    "opshift.cli.proposal", "opshift.proposals",
)  # fmt: skip


@pytest.mark.parametrize("target", ["17", "onnx-1.12", "9"], ids=["up", "to a release", "down"])
def test_a_conversion_loads_what_it_needs(old_model: Path, target: str) -> None:
    code = CONVERTING.format(target=target, unneeded=UNNEEDED)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_onnx_is_never_needed(old_model: Path) -> None:
    code = (
        "import sys; sys.modules['onnx'] = sys.modules['numpy'] = None; from opshift.cli.main import main;"
        "sys.argv = ['opshift', 'convert', 'old.onnx', 'out.onnx', '-t', '17']; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
