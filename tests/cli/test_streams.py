"""Models from standard input and on standard output."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from subprocess import PIPE
from typing import IO, Any

import onnx
import pytest
from cli.conftest import PLAIN_ENVIRONMENT
from cli.test_output import OPSHIFT, run_in_terminal
from onnx import TensorProto
from support.large_models import model, raw
from support.unmeasured import unmeasured
from typer.testing import CliRunner, Result

from opshift.cli.main import app
from opshift.converter.convert import convert_version

COMMAND = " ".join(OPSHIFT)
TO_STDOUT = ("-", "-t", "17")
NO_SPACE = "No space left on device"


def run_in_shell(script: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["bash", "-o", "pipefail", "-c", script], capture_output=True, check=True)


def start(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*OPSHIFT, *arguments], stdout=PIPE, stderr=PIPE, **options)


def output_of(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdout is not None
    return process.stdout


def invoke(data: bytes, *arguments: str) -> Result:
    """Run a command in this process, with these bytes as its standard input."""
    return CliRunner(env=PLAIN_ENVIRONMENT).invoke(app, arguments, input=data, catch_exceptions=False)


def test_converts_from_pipe_to_pipe(old_model: Path) -> None:
    data = old_model.read_bytes()
    with start("convert", "-", *TO_STDOUT, stdin=PIPE) as process:
        output, errors = process.communicate(data)
    assert process.returncode == 0, errors
    assert output == convert_version(data, 17)
    assert errors.startswith(b"<stdin> -> <stdout>")
    assert os.listdir() == ["old.onnx"]


def test_commands_form_a_pipeline(old_model: Path) -> None:
    first, second, third = "convert - - -t 17 -q", "convert - - -t 13 -q", "doctor - - --fix -q"
    script = f"{COMMAND} {first} < old.onnx | {COMMAND} {second} | {COMMAND} {third} > out.onnx"
    assert run_in_shell(script).stderr == b""
    assert {each.version for each in onnx.load("out.onnx").opset_import} == {13}


def test_verifies_before_the_first_byte_is_written(old_model: Path) -> None:
    pytest.importorskip("onnxruntime")
    done = invoke(old_model.read_bytes(), "convert", "-", *TO_STDOUT, "--verify")
    assert done.exit_code == 0
    assert "equal" in done.stderr
    assert done.stdout_bytes == convert_version(old_model.read_bytes(), 17)


def test_recommends_a_command_for_standard_input(old_model: Path) -> None:
    newer = convert_version(old_model.read_bytes(), 24)
    done = invoke(newer, "runs", "-", "--runtime", "onnxruntime-1.16.3", "--explain")
    assert "opshift convert - OUT -t " in done.stdout


READING = {
    "plan": ("plan", "-", "-t", "17"),
    "check": ("check", "-"),
    "inspect": ("inspect", "-"),
    "reach": ("reach", "-"),
    "doctor": ("doctor", "-"),
    "compare": ("compare", "-", "old.onnx"),
    "diff-model": ("diff-model", "-", "old.onnx"),
    "textconv": ("textconv", "-"),
}


@pytest.mark.parametrize("arguments", READING.values(), ids=READING)
def test_reads_standard_input_like_a_file(arguments: tuple[str, ...], old_model: Path) -> None:
    data, named = old_model.read_bytes(), ["old.onnx" if each == "-" else each for each in arguments]
    expected, found = invoke(b"", *named), invoke(data, *arguments)
    assert found.stdout == expected.stdout.replace("old.onnx", "<stdin>", 1)
    assert found.exit_code == expected.exit_code == 0
    assert "<stdin>" in json.dumps(json.loads(invoke(data, *arguments, "--format", "json").stdout))


def test_reads_a_redirected_file(old_model: Path) -> None:
    with old_model.open("rb") as file, start("inspect", "-", stdin=file) as process:
        assert output_of(process).read().startswith(b"<stdin>\nsize ")


@pytest.mark.parametrize("arguments", READING.values(), ids=READING)
@pytest.mark.parametrize("data", [b"", b"\xff" * 40], ids=["empty", "no model"])
def test_reports_invalid_input(arguments: tuple[str, ...], data: bytes, old_model: Path) -> None:
    found = invoke(data, *arguments)
    if arguments[0] == "textconv":  # prints the reason, because an error would end `git diff`
        assert found.exit_code == 0
        assert "sha256" in found.stdout
        return
    assert found.exit_code == 1
    assert "<stdin>" in found.output


def test_refused_conversion_writes_nothing(new_model: Path) -> None:
    done = invoke(new_model.read_bytes(), "convert", "-", "-", "-t", "5")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "<stdin>: " in done.stderr


WRONG = {
    "json and model": (("convert", "-", *TO_STDOUT, "--format", "json"), "both the model and JSON"),
    "json and fixed model": (("doctor", "-", "-", "--fix", "--format", "json"), "both the model and JSON"),
    "in place": (("convert", "-", "--in-place", "-t", "17"), "--in-place needs a file"),
    "batch": (("convert", "-", "--out", "out", "-t", "17"), "standard input has no file name"),
    "no output": (("convert", "-", "-t", "17"), "OUT is not given"),
}


@pytest.mark.parametrize(("arguments", "reason"), WRONG.values(), ids=WRONG)
def test_refuses_wrong_usage(arguments: tuple[str, ...], reason: str, old_model: Path) -> None:
    done = invoke(old_model.read_bytes(), *arguments)
    assert done.exit_code == 2
    assert reason in done.output
    assert not Path("out").exists()


@pytest.mark.some_cases(1)
@pytest.mark.parametrize(
    "arguments",
    [("convert", "old.onnx", *TO_STDOUT), ("inspect", "-"), ("opset", "export", "-d", "ai.onnx.ml")],
)
def test_refuses_terminals(arguments: tuple[str, ...], old_model: Path) -> None:
    output, code = run_in_terminal(80, *arguments)
    assert code == 2
    assert "this stream is a terminal" in output


def external_model(folder: Path) -> bytes:
    """Write `in/model.onnx` with weights in `in/w.bin`, and return the model."""
    tensor = TensorProto(name="w", data_type=1, dims=[1], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="w.bin")
    (folder / "in").mkdir()
    (folder / "in" / "w.bin").write_bytes(bytes(4))
    data: bytes = model(initializers=[tensor]).SerializeToString()
    (folder / "in" / "model.onnx").write_bytes(data)
    return data


def test_names_weights_that_stay_in_their_folder(folder: Path) -> None:
    data = external_model(folder)
    for source in "in/model.onnx", "-":
        done = invoke(data, "convert", source, *TO_STDOUT)
        assert done.exit_code == 0
        assert "<stdout> has weights in separate files: copy w.bin to its folder." in done.stderr
    kept = invoke(data, "convert", "-", "out.onnx", "-t", "17", "--external", "keep")
    assert "out.onnx has weights in separate files: copy w.bin to its folder." in kept.stdout


@pytest.mark.parametrize("arguments", [("convert", "-t", "17"), ("doctor", "--fix")])
def test_refuses_to_copy_weights_of_an_unknown_folder(arguments: tuple[str, ...], folder: Path) -> None:
    data, (command, *options) = external_model(folder), arguments
    refused = invoke(data, command, "-", "out.onnx", *options)
    assert refused.exit_code == 1
    assert "--external keep" in refused.stderr
    assert not Path("out.onnx").exists()
    assert invoke(data, command, "-", "out.onnx", *options, "--external", "keep").exit_code == 0


@pytest.mark.parametrize("command", [("convert", "-", "out.onnx"), ("plan", "-")], ids=" ".join)
def test_converts_no_weights_of_an_unknown_folder(command: tuple[str, ...], folder: Path) -> None:
    refused = invoke(external_model(folder), *command, "--types", "float=double")
    assert refused.exit_code == 1
    assert "the folder of the model is unknown" in refused.stderr
    assert "pass the path of the model" in refused.stderr
    assert "--external" not in refused.stderr


@pytest.mark.parametrize("place", [".", "in"])
def test_checks_no_weights_of_an_unknown_folder(
    place: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = external_model(folder)
    Path("in", "w.bin").write_bytes(b"")  # too short
    assert "external." in invoke(b"", "check", "in/model.onnx").stdout
    monkeypatch.chdir(place)
    assert "external." not in invoke(data, "check", "-").stdout


def large_file(folder: Path, size: int = 8 << 20) -> str:
    path = folder / "large.onnx"
    path.write_bytes(model(initializers=[raw("w", bytes(size))]).SerializeToString())
    return str(path)


def test_reports_a_closed_pipe(folder: Path) -> None:
    with start("convert", large_file(folder), *TO_STDOUT, "-q") as process:
        output_of(process).read(10)
        output_of(process).close()
        message = process.stderr.read() if process.stderr else b""
    assert process.returncode == 1
    assert message == b"error: <stdout>: cannot be written: Broken pipe\n"


@pytest.mark.parametrize("arguments", [("list",), ("opset", "export", "-d", "ai.onnx")])
def test_text_to_a_closed_pipe_ends_quietly(arguments: tuple[str, ...], folder: Path) -> None:
    with start(*arguments) as process:
        output_of(process).close()
        message = process.stderr.read() if process.stderr else b""
    assert (process.returncode, message) == (1, b"")


def test_reports_a_full_disk(old_model: Path) -> None:
    with open("/dev/full", "wb") as full:
        command = [*OPSHIFT, "convert", "old.onnx", *TO_STDOUT, "-q"]
        done = subprocess.run(command, stdout=full, stderr=PIPE, check=False)
    assert done.returncode == 1
    assert done.stderr == b"error: <stdout>: cannot be written: No space left on device\n"


FULL = {
    "plan": (("plan", "old.onnx", "-t", "17"), 1, NO_SPACE),
    "plan of several models": (("plan", "old.onnx", "new.onnx", "-t", "17"), 1, NO_SPACE),
    "refused plan": (("plan", "new.onnx", "-t", "6"), 1, NO_SPACE),
    "missing model": (("plan", "nope.onnx", "-t", "17"), 2, "nope.onnx: file does not exist"),
    "unknown opset": (("plan", "old.onnx", "-t", "99"), 2, "there is no opset 99 of ai.onnx"),
    "unknown option": (("plan", "old.onnx", "--bad"), 2, "No such option: --bad"),
    "check": (("check", "old.onnx"), 1, NO_SPACE),
    "check of several models": (("check", "old.onnx", "new.onnx"), 1, NO_SPACE),
    "reach": (("reach", "old.onnx"), 1, NO_SPACE),
    "runs": (("runs", "old.onnx", "-r", "onnxruntime-1.20.1"), 1, NO_SPACE),
    "doctor": (("doctor", "old.onnx"), 1, NO_SPACE),
    "inspect": (("inspect", "old.onnx"), 1, NO_SPACE),
    "compare": (("compare", "old.onnx", "new.onnx"), 1, NO_SPACE),
    "convert": (("convert", "old.onnx", "out.onnx", "-f", "-t", "17"), 1, NO_SPACE),
    "convert of several models": (("convert", "old.onnx", "new.onnx", "-o", "out", "-t", "17"), 1, NO_SPACE),
    "simplify": (("simplify", "old.onnx", "out.onnx", "-f"), 1, NO_SPACE),
    "fit": (("fit", "old.onnx", "out.onnx", "-f", "-r", "onnxruntime-1.20.1"), 1, NO_SPACE),
    "targets": (("targets",), 1, NO_SPACE),
    "explain": (("explain", "Unsupported model IR version: 10"), 1, NO_SPACE),
}


@pytest.mark.some_cases(6)
@pytest.mark.parametrize(("arguments", "code", "message"), FULL.values(), ids=FULL)
def test_prints_one_error_if_stdout_is_full(
    arguments: tuple[str, ...], code: int, message: str, old_model: Path, new_model: Path
) -> None:
    for form in "text", "json":
        with open("/dev/full", "wb") as full:
            command = [*OPSHIFT, *arguments, "--format", form]
            done = subprocess.run(command, stdout=full, stderr=PIPE, text=True, check=False)
        errors = [line for line in done.stderr.splitlines() if not line.startswith(("  help: ", "Usage: "))]
        assert (done.returncode, errors) == (code, [f"error: {message}"]), form


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_write_leaves_no_files(number: signal.Signals, code: int, folder: Path) -> None:
    path, temporary = large_file(folder), folder / "tmp"
    temporary.mkdir()
    with start("convert", path, *TO_STDOUT, env={**unmeasured(), "TMPDIR": str(temporary)}) as process:
        output_of(process).read(10)  # the rest does not fit into the pipe
        time.sleep(0.2)
        process.send_signal(number)
        process.communicate(timeout=20)
    assert process.returncode == code
    assert not list(temporary.iterdir())


CLOSED = {
    "<&-": (("inspect", "-"), 2, "<stdin>: this stream is closed"),
    "<&- >&-": (("convert", "old.onnx", "-", "-t", "17"), 2, "<stdout>: this stream is closed"),
    ">&-": (("convert", "old.onnx", "out.onnx", "-t", "17"), 0, ""),
    "2>&-": (("convert", "old.onnx", "out.onnx", "-t", "17"), 0, ""),
}


@pytest.mark.some_cases(2)
@pytest.mark.parametrize("redirection", CLOSED)
def test_closed_streams(redirection: str, old_model: Path) -> None:
    arguments, code, message = CLOSED[redirection]
    script = f"{COMMAND} {' '.join(arguments)} {redirection}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.full
def test_long_pipe_is_not_kept_in_memory(folder: Path) -> None:
    size = Path(large_file(folder, 200 << 20)).stat().st_size
    run_in_shell(f"ulimit -v 400000; cat large.onnx | {COMMAND} convert - - -t 17 -q > out.onnx")
    assert (folder / "out.onnx").stat().st_size > size


def test_absolute_path_names_a_file_called_dash(old_model: Path) -> None:
    path = old_model.rename(old_model.with_name("-"))
    assert invoke(b"", "inspect", str(path.absolute())).exit_code == 0
