"""Progress of long tasks in a terminal."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli.test_output import run_in_terminal

TASK = """
import sys, time
from opshift.cli.progress import show_progress
with show_progress("Reading \\x1b[31m[bold]m.onnx", unit={unit!r}, quiet={quiet}) as progress:
    progress.total, progress.done, progress.note = {total}, {total} // 4, "1 failed"
    time.sleep({seconds})
print("rich.progress" in sys.modules)
"""


def shown(
    folder: Path,
    *,
    unit: str = "models",
    total: int = 20,
    seconds: float = 1.6,
    quiet: bool = False,
    width: int = 80,
    **variables: str,
) -> str:
    """Return what a task prints in a terminal."""
    script = folder / "task.py"
    script.write_text(TASK.format(unit=unit, total=total, seconds=seconds, quiet=quiet))
    output, code = run_in_terminal(width, command=[sys.executable, str(script)], **variables)
    assert code == 0, output
    return output


@pytest.mark.some_cases(1)
@pytest.mark.parametrize("width", [60, 80, 120])
def test_shows_amounts_and_percentage_after_a_second(folder: Path, width: int) -> None:
    assert "25% 5 of 20 models, 1 failed" in re.sub(r"\x1b\[[0-9;]*m", "", shown(folder, width=width))
    sizes = re.sub(r"\x1b\[[0-9;]*m", "", shown(folder, unit="bytes", total=4_000_000_000, width=width))
    assert "25% 1.0 GB of 4.0 GB" in sizes


def test_escapes_names_and_leaves_nothing_on_the_screen(folder: Path) -> None:
    output = shown(folder, unit="", total=0, width=120)
    assert r"Reading \x1b[31m[bold]m.onnx" in output
    last = output.rpartition("\x1b[2K")[2]  # erases the line
    assert re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", last).strip() == "True"


def test_imports_rich_only_to_show_progress(folder: Path) -> None:
    assert shown(folder, seconds=0.0) == "False\n"
    assert shown(folder, seconds=1.2, quiet=True) == "False\n"


def test_pipe_gets_no_progress(folder: Path) -> None:
    code = TASK.format(unit="", total=0, seconds=1.2, quiet=False)
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (completed.stdout, completed.stderr) == ("False\n", "")


def test_dumb_terminal_gets_no_progress(folder: Path) -> None:
    assert "Reading" not in shown(folder, seconds=1.2, TERM="dumb")
