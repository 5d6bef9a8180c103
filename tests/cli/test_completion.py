"""The shell completes commands, targets, operators, rules and other values, without side effects."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import opshift
from opshift.cli.main import COMMANDS, app
from opshift.converter.options import ALLOW_VALUES


def environment(line: str, shell: str) -> dict[str, str]:
    """Return the variables with which the scripts of typer call a command."""
    return {
        "_OPSHIFT_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(line.count(" ")),
        "_TYPER_COMPLETE_ARGS": line,
    }


def complete(line: str) -> list[str]:
    """Return the values that bash suggests for the last word of a line."""
    result = CliRunner(env=environment(line, "bash")).invoke(app)
    assert result.stderr == ""
    return result.stdout.split()


def run_python(line: str, shell: str, *arguments: str) -> str:
    command = [sys.executable, *arguments]
    variables = {**os.environ, **environment(line, shell)}
    result = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert result.stderr == ""
    return result.stdout


REGISTRY = opshift.default_registry()

CASES: dict[str, set[str]] = {
    "opshift con": {"convert"},
    "opshift convert --target 1": {"1", "10", "17", "19"},
    "opshift convert a.onnx b.onnx -t onnxruntime-1.1": {"onnxruntime-1.1", "onnxruntime-1.14"},
    "opshift convert a.onnx b.onnx -t onnxruntime-web-": {"onnxruntime-web-1.32"},
    "opshift targets ten": {"tensorrt"},
    "opshift plan a.onnx -t ai.onnx.ml": {"ai.onnx.ml=1", "ai.onnx.ml=3"},
    "opshift plan a.onnx --allow ": set(ALLOW_VALUES),
    "opshift reach a.onnx --domain ai.onnx.p": {"ai.onnx.preview", "ai.onnx.preview.training"},
    "opshift show Conv": {"Conv", "ConvTranspose", "ConvInteger"},
    "opshift show ai.onnx.ml.L": {"ai.onnx.ml.LabelEncoder"},
    "opshift show -d ai.onnx.ml L": {"LabelEncoder", "LinearClassifier", "LinearRegressor"},
    "opshift resolve Softm": {"Softmax", "SoftmaxCrossEntropyLoss"},
    "opshift resolve Softmax --opset 1": {"1", "13"},
    "opshift resolve LabelEncoder -d ai.onnx.ml --opset ": {"1", "4"},
    "opshift list Reduce": {"ReduceSum", "ReduceMax"},
    "opshift list --status ": {"active", "preview", "deprecated", "removed"},
    "opshift list --accepts bf": {"bfloat16"},
    "opshift list --produces uint": {"uint8", "uint4"},
    "opshift diff Cli": {"Clip"},
    "opshift diff Clip ": {"1", "6", "11", "12", "13"},
    "opshift diff Clip 6 ": {"1", "6", "11", "12", "13"},
    "opshift diff --explain default-": {"default-changed"},
    "opshift breaking --policy ": {"onnx-strict", "types-free"},
    "opshift stubs ops.py --domain ai.onnx.m": {"ai.onnx.ml"},
    "opshift explain type.": {"type.unsupported"},
    "opshift proposal explain body.ag": {"body.agrees"},
    "opshift convert --external ": {"copy", "link", "keep"},
    "opshift check --level ": {"error", "warning", "info"},
}


@pytest.mark.parametrize("line", CASES)
def test_completes_in_bash(line: str) -> None:
    found = complete(line)
    assert CASES[line] <= set(found)
    last = line.split(" ")[-1]
    assert all(each.startswith(last) for each in found)


@pytest.mark.parametrize("line", ["opshift convert --target 1", "opshift show Conv", "opshift con"])
def test_completes_in_zsh(line: str) -> None:
    text = run_python(line, "zsh", "-m", "opshift")
    assert text.startswith("_arguments ")
    assert all(f'"{each}"' in text for each in CASES[line])


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_installed_script_completes_in_bash(tmp_path: Path) -> None:
    command = tmp_path / "opshift"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m opshift "$@"\n')
    command.chmod(0o755)
    script = f"""
eval "$({command} --show-completion bash)"
COMP_WORDS=(opshift show Softm)
COMP_CWORD=2
_opshift_completion {command}
echo "${{COMPREPLY[@]}}"
"""
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    result = subprocess.run(
        ["bash", "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert (result.stdout, result.stderr) == ("Softmax SoftmaxCrossEntropyLoss\n", "")


def test_completes_all_commands_and_operators() -> None:
    assert {each.name for each in COMMANDS} <= set(complete("opshift "))
    assert set(REGISTRY.names()) <= set(complete("opshift show "))


@pytest.mark.parametrize(
    "line",
    [
        "opshift show --opsets /absent Con",
        "opshift diff Absent ",
        "opshift diff ai..x: ",
        "opshift resolve X -d absent --opset ",
    ],
)
def test_suggests_nothing_for_invalid_lines(line: str) -> None:
    assert complete(line) == []


def test_completes_private_operators() -> None:
    folder = Path(__file__).parents[2] / "examples" / "acme" / "acme_operators"
    assert "com.acme" in complete(f"opshift show --opsets {folder} -d com.")


def test_does_not_run_adapters(tmp_path: Path) -> None:
    adapters = tmp_path / "adapters.py"
    adapters.write_text("raise RuntimeError('executed')")
    assert complete(f"opshift convert --adapters {adapters} --in-p") == ["--in-place"]


def test_does_not_print_the_version() -> None:
    assert complete("opshift --version con") == ["convert"]


@pytest.mark.parametrize("line", ["opshift convert --target 1", "opshift show Con", "opshift plan --allow "])
def test_imports_neither_yaml_nor_pydantic(line: str) -> None:
    code = """
import atexit, sys
from opshift.cli.main import main
atexit.register(lambda: print(sorted({"yaml", "pydantic", "networkx", "numpy", "onnx"} & set(sys.modules))))
sys.argv[0] = "opshift"
main()
"""
    complete(line)  # compiles definitions if necessary
    assert run_python(line, "bash", "-c", code).endswith("\n[]\n")
