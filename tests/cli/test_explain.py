"""`opshift explain` finds errors of other tools by message, and refusals by code."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from typer.testing import Result

from opshift.registry.explanations import refusal_causes, tool_errors

pytestmark = pytest.mark.every_case

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
    assert "No known error matches" in result.stdout
    document = json.loads(run("explain", "else", "--format", "json").stdout)
    assert document == {"errors": [], "refusals": {}, "mentioned": []}


@pytest.mark.parametrize(
    ("message", "commands"),
    [
        ("cannot parse LayerNormalization", ["opshift show LayerNormalization"]),
        ("no kernel of FastGelu", ["opshift show com.microsoft.FastGelu"]),
        ("bad opset 13", ["opshift convert model.onnx fixed.onnx --target 13"]),
        ("bad opset version: 99", []),
        ("Opset 11 is not supported", ["opshift convert model.onnx fixed.onnx --target 17"]),
        ("unsupported opset version 17", ["opshift convert model.onnx fixed.onnx --target 13"]),
        ("Unsupported opset: 17", ["opshift convert model.onnx fixed.onnx --target 13"]),
        ("opset 17: not supported by this", ["opshift convert model.onnx fixed.onnx --target 13"]),
        ("opset 15 is too new for this", ["opshift convert model.onnx fixed.onnx --target 13"]),
        ("opset 9 is too new for this", []),
        ("Unsupported opset 17, supported: 9 to 14", ["opshift convert model.onnx fixed.onnx --target 14"]),
        ("opset 17 is invalid; it supports 7-12", ["opshift convert model.onnx fixed.onnx --target 12"]),
        ("opset 8 not supported: 7 and 12 are", ["opshift convert model.onnx fixed.onnx --target 17"]),
        (
            "opset 17 is not supported, opset 13 is not supported",
            ["opshift convert model.onnx fixed.onnx --target 11"],
        ),
        ("opset 28 too new: use opset 20", ["opshift convert model.onnx fixed.onnx --target 20"]),
        (
            "Opset 11 is not supported, please use opset 13",
            ["opshift convert model.onnx fixed.onnx --target 13"],
        ),
        ("bad ir_version 9", ["opshift convert model.onnx fixed.onnx --ir-version 9"]),
        ("in com.microsoft", ["opshift convert model.onnx fixed.onnx --without com.microsoft"]),
        ("Shape mismatch If it is", []),
    ],
)
def test_falls_back_to_what_a_message_mentions(run: Run, message: str, commands: list[str]) -> None:
    result = run("explain", message, "--format", "json")
    assert [each["run"] for each in json.loads(result.stdout)["mentioned"]] == commands
    assert result.exit_code == (not commands)
