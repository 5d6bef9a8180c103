"""`opshift node`: nodes as text, and their conversion."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from typer.testing import CliRunner, Result

from opshift.cli.main import app

Run = Callable[..., Result]


def test_shows_what_a_node_becomes(run: Run) -> None:
    result = run("node", "y = Softmax <axis = 1> (float[2, 3, 4] x)", "--opset", "9", "-t", "13")
    assert result.exit_code == 0
    assert "Softmax:1" in result.stdout
    assert "    y = Reshape(softmax, shape)\n" in result.stdout


def test_refuses_with_a_remedy_that_helps(run: Run) -> None:
    arguments = ["node", "TopK(x, k)", "--opset", "10", "--target", "9"]
    refused = run(*arguments)
    assert refused.exit_code == 1
    assert "--shape x=..." in refused.stdout
    assert "Result" not in refused.stdout
    assert run("node", "Unique(float[3] x)", "--opset", "11", "-t", "10", "--shape", "x=3").exit_code == 0


def test_asks_for_types_in_the_syntax_of_nodes(run: Run) -> None:
    refused = run("node", "y = Gelu(x)", "--opset", "20", "--target", "17")
    assert "help: write the type before the name of the value, such as float[N, 10] x" in refused.stdout
    assert run("node", "y = Gelu(float[N, 10] x)", "--opset", "20", "--target", "17").exit_code == 0


def test_reads_standard_input() -> None:
    arguments = ["node", "-", "--opset", "17", "--target", "13"]
    result = CliRunner().invoke(app, arguments, input="a = Relu(x)\nb = Neg(a)\n")
    assert "    b = Neg(a)\n" in result.stdout


@pytest.mark.parametrize(
    ("text", "reason"),
    [("y = Relu(x", "line 1, column 11: expected"), ("Relu(3)", "not a number"), ("", "expected a node")],
)
def test_text_that_cannot_be_read_is_an_error(run: Run, text: str, reason: str) -> None:
    result = run("node", text, "--opset", "17", "--target", "13")
    assert (result.exit_code, result.stdout) == (1, "")
    assert reason in result.stderr
    assert "\n  help: " in result.stderr


def test_binary_input_is_an_error() -> None:
    result = CliRunner().invoke(app, ["node", "-", "-t", "13"], input=b"\x08\xff\xfe")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "is not text" in result.stderr
    assert "opshift plan" in result.stderr


def test_prints_json(run: Run) -> None:
    arguments = ["--opset", "9", "--target", "13", "--format", "json"]
    found = json.loads(run("node", "Softmax(float[2, 3] x, axis=1)", *arguments).stdout)
    assert found["possible"]
    assert found["lines"][-1] == "  output = Softmax <axis=-1>(x)"
    failed = run("node", "Softmax(", *arguments)
    assert json.loads(failed.stdout)["place"] == "line 1, column 9"


def test_explains_steps(run: Run) -> None:
    result = run("node", "Softmax(float[2, 3] x)", "--opset", "9", "--target", "13", "--explain")
    assert "flatten" in result.stdout
