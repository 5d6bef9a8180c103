"""`opshift explain` finds errors of other tools by message, and refusals by code."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from typer.testing import Result

from opshift.registry.explanations.refusal_causes import refusal_causes
from opshift.registry.explanations.tool_errors import tool_errors

Run = Callable[..., Result]


def test_explains_message_without_quotes(run: Run) -> None:
    result = run("explain", "Unsupported", "model", "IR", "version:", "14")
    assert result.exit_code == 0
    assert result.stdout.startswith("The IR version is too new (onnxruntime, onnx.checker)\n")
    assert "\nopshift convert model.onnx fixed.onnx --ir-version 8\n" in result.stdout


@pytest.mark.parametrize("code", refusal_causes())
def test_explains_refusals(run: Run, code: str) -> None:
    result = run("explain", code)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{code}: {refusal_causes()[code].title}\n")


def test_prints_json(run: Run) -> None:
    document = json.loads(run("explain", "is not a registered function/op", "--format", "json").stdout)
    (error,) = document["errors"]
    assert error["commands"][0]["run"].startswith("opshift convert ")
    assert document["refusals"] == {}


def test_lists_all_errors_and_codes(run: Run) -> None:
    text = run("explain").stdout
    assert all(each.texts[0] in text for each in tool_errors())
    assert all(each in text for each in refusal_causes())


def test_suggests_code(run: Run) -> None:
    assert "did you mean 'type.unsupported'?" in run("explain", "type.unsuported").stdout


def test_exits_with_1_if_nothing_matches(run: Run) -> None:
    result = run("explain", "something", "else")
    assert result.exit_code == 1
    assert "Nothing matches" in result.stdout
    assert json.loads(run("explain", "else", "--format", "json").stdout) == {"errors": [], "refusals": {}}
