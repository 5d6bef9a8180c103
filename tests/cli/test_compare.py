"""`opshift compare`: changes, and whether the model version was incremented enough."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import onnx
import onnx.parser
import pytest
from typer.testing import Result

from opshift import pack_version

Run = Callable[..., Result]


@pytest.fixture
def write_versions(old_model: Path) -> Callable[[str, str], None]:
    """Return a function that writes `v1.onnx`, and `v2.onnx` with a wider input, with the given versions."""

    def write(old_version: str, new_version: str) -> None:
        model = onnx.load(old_model)
        model.model_version = pack_version(old_version)
        onnx.save(model, "v1.onnx")
        model.model_version = pack_version(new_version)
        model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
        onnx.save(model, "v2.onnx")

    return write


@pytest.mark.parametrize(
    ("old", "new", "code", "verdict"),
    [
        pytest.param("1.0.0", "1.1.0", 0, "The version increment is sufficient.", id="sufficient"),
        pytest.param("1.0.0", "1.0.1", 1, "The version must be 1.1.0 or higher.", id="insufficient"),
        pytest.param("0", "0", 1, "The version must be 1 or higher.", id="no versions"),
        pytest.param("1.0.0", "0.1.0", 1, "1.0.0 -> 0.1.0, decreased", id="decreased"),
    ],
)
def test_reports_verdict(
    run: Run, write_versions: Callable[[str, str], None], old: str, new: str, code: int, verdict: str
) -> None:
    write_versions(old, new)
    result = run("compare", "v1.onnx", "v2.onnx")
    assert (result.exit_code, result.stderr) == (code, "")
    assert verdict in result.stdout


def test_table_has_rule_place_and_change(run: Run, write_versions: Callable[[str, str], None]) -> None:
    write_versions("1.0.0", "1.1.0")
    lines = [" ".join(line.split()) for line in run("compare", "v1.onnx", "v2.onnx").stdout.splitlines()]
    assert lines[0] == "v1.onnx -> v2.onnx"
    assert "version 1.0.0 -> 1.1.0, MINOR increment" in lines
    assert "required increment MINOR" in lines
    why = "the new type holds all values of the old type"
    assert f"MINOR INPUT_TYPE_WIDENED input 'x' tensor(float) -> tensor(double) {why}" in lines


def test_equal_models_require_no_increment(run: Run, old_model: Path) -> None:
    result = run("compare", "old.onnx", "old.onnx")
    assert result.exit_code == 0
    assert "required increment  none" in result.stdout


def test_prints_json(run: Run, write_versions: Callable[[str, str], None]) -> None:
    write_versions("1.0.0", "1.0.1")
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
        pytest.param(["old.onnx", "no.onnx"], 2, "no.onnx: file does not exist", id="missing file"),
        pytest.param(["old.onnx", "bad.onnx"], 1, "bad.onnx: is not an ONNX model", id="invalid file"),
    ],
)
def test_reports_invalid_model(
    run: Run, old_model: Path, arguments: list[str], code: int, message: str
) -> None:
    Path("bad.onnx").write_bytes(b"\xff" * 9)
    result = run("compare", *arguments)
    assert result.exit_code == code
    assert message in result.stderr


TWICE, SUM, NEGATIVE = "y = Mul (two, x)", "y = Add (x, x)", "y = Neg (x)"


@pytest.mark.parametrize(
    ("old", "new", "options", "required", "difference"),
    [
        pytest.param(TWICE, SUM, [], "MAJOR", None, id="not compared"),
        pytest.param(TWICE, SUM, ["--same-meaning"], "MINOR", None, id="stated"),
        pytest.param(TWICE, SUM, ["--verify"], "MINOR", "", id="equal outputs"),
        pytest.param(TWICE, NEGATIVE, ["--verify"], "MAJOR", "output 'y' differs: ", id="other outputs"),
        pytest.param(TWICE, TWICE, ["--verify"], "NONE", "", id="same operators"),
    ],
)
def test_changed_operators(
    run: Run, tmp_path: Path, old: str, new: str, options: list[str], required: str, difference: str | None
) -> None:
    for name, node in (("v1.onnx", old), ("v2.onnx", new)):
        text = f"(float[2] x) => (float[2] y) <float two = {{2.0}}> {{ {node} }}"
        model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}')
        onnx.save(model, tmp_path / name)
    paths = str(tmp_path / "v1.onnx"), str(tmp_path / "v2.onnx")
    document = json.loads(run("compare", *paths, *options, "--format", "json").stdout)
    assert document["required"] == required
    assert str(document.get("difference")).startswith(str(difference))
