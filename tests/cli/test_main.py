"""The table of commands."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from types import ModuleType

import pytest
from typer.core import TyperGroup
from typer.testing import Result

from opshift.cli.commands import SUMMARY_LENGTH
from opshift.cli.main import COMMANDS, Command, app

Run = Callable[..., Result]


def _greet() -> None:
    """Say hello."""
    sys.stdout.write("hello\n")


@pytest.fixture
def greet(monkeypatch: pytest.MonkeyPatch) -> Command:
    """Add a command by one row of the table."""
    module = ModuleType("opshift.cli.greeting")
    module.greet = _greet  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    command = Command("greet", "Say hello.", "greeting", "greet")
    monkeypatch.setattr("opshift.cli.main.COMMANDS", [*COMMANDS, command])
    return command


def test_one_row_adds_a_command(greet: Command, run: Run) -> None:
    shown = run("--help")
    assert shown.exit_code == 0
    assert greet.name in shown.stdout
    assert "Say hello." in shown.stdout
    assert run("greet").stdout == "hello\n"
    assert "Examples" not in run("greet", "--help").stdout


def test_names_and_functions_are_unique() -> None:
    assert len({command.name for command in COMMANDS}) == len(COMMANDS)
    assert len({(command.module, command.function) for command in COMMANDS}) == len(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_summary_is_the_start_of_the_help(command: Command) -> None:
    assert command.load().get_short_help_str(limit=SUMMARY_LENGTH) == command.summary


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_has_examples(command: Command) -> None:
    loaded = command.load()
    commands = loaded.commands if isinstance(loaded, TyperGroup) else {command.name: loaded}
    assert [name for name, each in commands.items() if "Examples:" not in (each.epilog or "")] == []


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_help_shows_the_examples(command: Command, run: Run) -> None:
    shown = run(command.name, "--help")
    assert shown.exit_code == 0
    for example in command.examples:
        assert f"opshift {command.name} {example}".rstrip() in shown.stdout


@pytest.mark.skipif(os.name == "nt", reason="a process of Windows cannot send itself Ctrl+C")
@pytest.mark.parametrize("moment", ["", "import opshift.cli.main"])
def test_interrupt_while_starting(moment: str) -> None:
    start = "import opshift_start; opshift_start.exit_on_interrupt()"
    interrupt = "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(9)"
    script = f"{start}\n{moment}\n{interrupt}"
    # coverage imports modules before the script starts
    clean = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, env=clean
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "error: interrupted\n")


@pytest.mark.skipif(os.name == "nt", reason="a process of Windows cannot send itself Ctrl+C")
@pytest.mark.parametrize(
    ("name", "code", "message"), [("SIGINT", 130, "error: interrupted\n"), ("SIGTERM", 143, "")]
)
def test_signal_that_an_extension_module_replaces_by_an_error(name: str, code: int, message: str) -> None:
    script = f"""
import os, signal, time, opshift_start, opshift.cli.main

def run(after_imports):
    opshift.cli.main.exit_on_signals()
    try:
        os.kill(os.getpid(), signal.{name})
        time.sleep(9)
    except BaseException:
        raise TypeError("expected a message argument")

opshift.cli.main.main = run
opshift_start.main()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", message)


@pytest.mark.parametrize(
    ("arguments", "start"),
    [(["resolve", "Relu", "--opset", "17"], "ai.onnx.Relu:14\n"), (["--help"], "Usage: opshift")],
)
def test_commands_collect_garbage_but_not_their_modules(arguments: list[str], start: str) -> None:
    report = "print(gc.isenabled(), gc.get_freeze_count() > 10_000)"
    script = f"""
import atexit, gc, opshift_start, sys
atexit.register(lambda: {report})
sys.argv = {["opshift", *arguments]}
opshift_start.main()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(start)
    assert done.stdout.endswith("\nTrue True\n")


@pytest.mark.parametrize("is_enabled", [True, False])
def test_commands_keep_the_garbage_collection_of_another_program(run: Run, *, is_enabled: bool) -> None:
    before = gc.isenabled(), gc.get_freeze_count()
    try:
        (gc.enable if is_enabled else gc.disable)()
        assert run("resolve", "Relu", "--opset", "17").exit_code == 0
        assert (gc.isenabled(), gc.get_freeze_count()) == (is_enabled, before[1])
    finally:
        (gc.enable if before[0] else gc.disable)()


def test_import_keeps_the_handler_of_interrupts() -> None:
    script = "import signal, opshift.__main__, opshift.cli.main; print(signal.getsignal(signal.SIGINT))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "default_int_handler" in done.stdout


def test_interrupted_command_prints_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("opshift.analysis.model_text.model_of_text", interrupted)
    with pytest.raises(SystemExit) as ended:
        app(["node", "Relu(x)", "-t", "13"])
    assert ended.value.code == 130
    assert capsys.readouterr().err == "error: interrupted\n"
