"""`opshift diff`: two versions, two opsets, and violations of a compatibility mode."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from opshift.registry.changes.classes import CHANGE_RULES
from opshift.registry.changes.policies import POLICIES

Run = Callable[..., Result]


def test_compares_two_versions(run: Run) -> None:
    result = run("diff", "Clip", "6", "11")
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert result.exit_code == 0
    assert lines == [
        "ai.onnx.Clip 6 -> 11: re-encodes",
        "class rule change",
        "re-encodes attribute-became-input attribute removed: max: 3.4028234663852886e+38 -> nothing",
        "re-encodes attribute-became-input attribute removed: min: -3.4028234663852886e+38 -> nothing",
        "re-encodes attribute-became-input input added: min: nothing -> optional",
        "re-encodes attribute-became-input input added: max: nothing -> optional",
        "backward no, forward no; onnx-strict requires a new version",
    ]


@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        pytest.param(["Clip", "6", "11"], "ai.onnx.Clip 6 -> 11: re-encodes", id="versions"),
        pytest.param(["Clip", "10", "12"], "ai.onnx.Clip 6 -> 12: re-encodes", id="opsets between versions"),
        pytest.param(["Clip", "12"], "ai.onnx.Clip 12 -> 13: widening", id="newest version by default"),
        pytest.param(["Clip", "13", "12"], "ai.onnx.Clip 13 -> 12: narrows", id="reverse order"),
        pytest.param(["Clip", "6", "7"], "ai.onnx.Clip 6 -> 6: no change", id="same version"),
        pytest.param(
            ["LabelEncoder", "1", "2", "-d", "ai.onnx.ml"],
            "ai.onnx.ml.LabelEncoder 1 -> 2: re-encodes",
            id="different domain",
        ),
    ],
)
def test_selects_versions(run: Run, arguments: list[str], title: str) -> None:
    assert run("diff", *arguments).stdout.splitlines()[0] == title


def test_lists_added_types(run: Run) -> None:
    assert "input types: input: also tensor(bfloat16)" in run("diff", "Clip", "12", "13").stdout


def test_compares_two_opsets(run: Run) -> None:
    result = run("diff", "--opset", "12", "13", "--format", "json")
    differences = {each["operator"]: each for each in json.loads(result.stdout)["differences"]}
    assert differences["ai.onnx.Softmax"]["class"] == "re-encodes"
    assert differences["ai.onnx.Relu"]["old"] == "ai.onnx.Relu:6"
    assert "ai.onnx.Conv" not in differences
    assert "ai.onnx.Softmax 11 -> 13: re-encodes" in run("diff", "--opset", "12", "13").stdout
    assert run("diff", "--opset", "13", "13").stdout == "no operator changed\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        pytest.param(["Clip", "12", "13"], 0, id="no mode"),
        pytest.param(["Clip", "12", "13", "--mode", "backward"], 0, id="widening passes backward"),
        pytest.param(["Clip", "12", "13", "--mode", "forward"], 1, id="widening fails forward"),
        pytest.param(["Clip", "6", "11", "--mode", "full"], 1, id="re-encoding fails full"),
        pytest.param(["--opset", "12", "13", "--mode", "backward"], 1, id="opset"),
    ],
)
def test_violated_mode_fails(run: Run, arguments: list[str], code: int) -> None:
    result = run("diff", *arguments)
    assert result.exit_code == code
    assert ("not " in result.stdout.splitlines()[-1]) == bool(code)


@pytest.mark.parametrize(
    ("policy", "is_required"), [("onnx-strict", True), ("types-free", False), ("additive-free", False)]
)
def test_policy_decides_on_new_version(run: Run, policy: str, is_required: bool) -> None:
    data = json.loads(run("diff", "ReduceLogSum", "13", "18", "--policy", policy, "--format", "json").stdout)
    assert data["policy"] == policy
    data = json.loads(run("diff", "Acos", "7", "22", "--policy", policy, "--format", "json").stdout)
    assert data["differences"][0]["new_version_needed"] is is_required


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        pytest.param([], "expected either OPERATOR and OLD, or --opset", 2, id="no arguments"),
        pytest.param(["Clip"], "expected either OPERATOR and OLD, or --opset", 2, id="no version"),
        pytest.param(
            ["Clip", "6", "--opset", "1", "2"], "expected either OPERATOR and OLD, or --opset", 2, id="both"
        ),
        pytest.param(["Cnov", "6", "11"], "did you mean Conv?", 2, id="misspelled operator"),
        pytest.param(["Clip", "6", "99"], "there is no opset 99", 2, id="unknown version"),
        pytest.param(["--opset", "6", "99"], "there is no opset 99", 2, id="unknown opset"),
        pytest.param(
            ["Clip", "6", "11", "--policy", "loose"], "unknown policy 'loose'", 2, id="unknown policy"
        ),
        pytest.param(["--explain", "default"], "unknown rule 'default'", 2, id="unknown rule"),
    ],
)
def test_refuses_invalid_arguments(run: Run, arguments: list[str], message: str, code: int) -> None:
    result = run("diff", *arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert message in result.stderr


def test_lists_rules(run: Run) -> None:
    data = json.loads(run("diff", "--rules", "--format", "json").stdout)
    assert [each["rule"] for each in data["rules"]] == list(CHANGE_RULES)
    assert set(data["policies"]) == set(POLICIES)
    text = run("diff", "--rules").stdout
    assert all(rule in text for rule in CHANGE_RULES)


@pytest.mark.parametrize("rule", list(CHANGE_RULES))
def test_explains_rule(run: Run, rule: str) -> None:
    text = run("diff", "--explain", rule).stdout
    assert text.splitlines()[:2] == [rule, CHANGE_RULES[rule].purpose]
    data = json.loads(run("diff", "--explain", rule, "--format", "json").stdout)
    assert data["class"] == str(CHANGE_RULES[rule].change_class)


def test_compares_definitions_of_folder(run: Run, acme: Path) -> None:
    result = run("diff", "com.acme.FastConv", "2", "3", "--opsets", str(acme))
    assert "attribute-removed" in result.stdout
