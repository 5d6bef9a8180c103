"""`opshift compare`: what changed, and whether the version says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from typer.testing import Result

from opshift import pack_version

Run = Callable[..., Result]


@pytest.fixture
def versions(old_model: Path) -> Callable[[str, str], None]:
    """Writes `v1.onnx`, and `v2.onnx` with a wider input, under versions."""

    def write(one: str, other: str) -> None:
        model = onnx.load(old_model)
        model.model_version = pack_version(one)
        onnx.save(model, "v1.onnx")
        model.model_version = pack_version(other)
        model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
        onnx.save(model, "v2.onnx")

    return write


@pytest.mark.parametrize(
    ("old", "new", "code", "verdict"),
    [
        pytest.param("1.0.0", "1.1.0", 0, "The version increment is sufficient.", id="enough"),
        pytest.param("1.0.0", "1.0.1", 1, "The version must be 1.1.0 or higher.", id="too little"),
        pytest.param("0", "0", 1, "The version must be 1 or higher.", id="no versions"),
        pytest.param("1.0.0", "0.1.0", 1, "1.0.0 -> 0.1.0, decreased", id="down"),
    ],
)
def test_the_verdict(
    run: Run, versions: Callable[[str, str], None], old: str, new: str, code: int, verdict: str
) -> None:
    versions(old, new)
    result = run("compare", "v1.onnx", "v2.onnx")
    assert (result.exit_code, result.stderr) == (code, "")
    assert verdict in result.stdout


def test_the_table_tells_rule_place_and_change(run: Run, versions: Callable[[str, str], None]) -> None:
    versions("1.0.0", "1.1.0")
    lines = [" ".join(line.split()) for line in run("compare", "v1.onnx", "v2.onnx").stdout.splitlines()]
    assert lines[0] == "v1.onnx -> v2.onnx"
    assert "version 1.0.0 -> 1.1.0, MINOR increment" in lines
    assert "required increment MINOR" in lines
    why = "the new type holds all values of the old type"
    assert f"MINOR INPUT_TYPE_WIDENED input 'x' tensor(float) -> tensor(double) {why}" in lines


def test_the_same_model_asks_for_nothing(run: Run, old_model: Path) -> None:
    result = run("compare", "old.onnx", "old.onnx")
    assert result.exit_code == 0
    assert "required increment  none" in result.stdout


def test_json_has_it_all(run: Run, versions: Callable[[str, str], None]) -> None:
    versions("1.0.0", "1.0.1")
    result = run("compare", "v1.onnx", "v2.onnx", "--format", "json")
    data = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (data["old"], data["new"], data["required"], data["enough"]) == (
        "v1.onnx",
        "v2.onnx",
        "MINOR",
        False,
    )
    assert [change["rule"] for change in data["changes"]] == ["INPUT_TYPE_WIDENED"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        pytest.param(["old.onnx", "no.onnx"], 2, "no.onnx: file does not exist", id="not there"),
        pytest.param(["old.onnx", "bad.onnx"], 1, "bad.onnx: is not an ONNX model", id="no model"),
    ],
)
def test_what_is_no_model(run: Run, old_model: Path, arguments: list[str], code: int, message: str) -> None:
    Path("bad.onnx").write_bytes(b"\xff" * 9)
    result = run("compare", *arguments)
    assert result.exit_code == code
    assert message in result.stderr
