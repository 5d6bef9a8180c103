"""`opshift convert` and `opshift plan`: output files, printed results and refusals."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from typer.testing import Result

Run = Callable[..., Result]


def opset_of_file(path: Path) -> int:
    return int(onnx.load(path, load_external_data=False).opset_import[0].version)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        pytest.param(["--target", "17"], 17, id="opset"),
        pytest.param(["-t", "13"], 13, id="short option"),
        pytest.param(["-t", "onnx-1.12"], 17, id="ONNX release"),
        pytest.param(["-t", "onnxruntime-1.14"], 10, id="program that supports the opset"),
        pytest.param(["-t", "windowsml-1809"], 7, id="program that supports an older opset"),
        pytest.param(["-t", "onnxruntime-1.14", "--exact"], 18, id="newest opset of a program"),
        pytest.param(["-t", "17", "-t", "ai.onnx.ml=3"], 17, id="several targets"),
        pytest.param(["-t", "10"], 10, id="current opset"),
    ],
)
def test_converts_to_target(run: Run, old_model: Path, target: list[str], expected: int) -> None:
    before = old_model.read_bytes()
    result = run("convert", "old.onnx", "new.onnx", *target)
    assert (result.exit_code, result.stderr) == (0, "")
    assert opset_of_file(Path("new.onnx")) == expected
    onnx.checker.check_model("new.onnx")
    assert old_model.read_bytes() == before


def test_summary_lists_changes(run: Run, old_model: Path) -> None:
    result = run("convert", "old.onnx", "new.onnx", "-t", "17")
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0] == ["old.onnx", "->", "new.onnx"]
    assert ["ai.onnx", "10", "->", "17"] in lines
    assert ["IR", "version", "6", "->", "8"] in lines
    assert ["2", "Clip:6", "Clip:13", "8", "B"] in lines
    sizes = f"{old_model.stat().st_size} -> {Path('new.onnx').stat().st_size} bytes"
    assert sizes in result.stdout
    assert "1 kept, 2 changed" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(["--ir-version", "8"], (10, 8), id="IR version only"),
        pytest.param(["-t", "17", "--ir-version", "7"], (17, 7), id="IR version and target"),
        pytest.param(["-t", "17", "--ir-version", "keep"], (17, 6), id="keep"),
        pytest.param(["-t", "8"], (8, 3), id="lowered with the opset"),
        pytest.param(["-t", "windowsml-1809"], (7, 3), id="IR version of a release"),
    ],
)
def test_sets_ir_version(run: Run, old_model: Path, arguments: list[str], expected: tuple[int, int]) -> None:
    assert run("convert", "old.onnx", "new.onnx", *arguments).exit_code == 0
    assert (opset_of_file(Path("new.onnx")), onnx.load("new.onnx").ir_version) == expected
    assert run("plan", "old.onnx", *arguments).exit_code == 0


def test_summary_lists_changes_for_ir_version(run: Run, old_model: Path) -> None:
    result = run("convert", "old.onnx", "new.onnx", "--ir-version", "3")
    change = "6 -> 3; initializers that are not graph inputs become graph inputs"
    assert f"IR version {change}" in [" ".join(line.split()) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("wanted", ["2", "15", "new"])
def test_refuses_unknown_ir_version(run: Run, old_model: Path, wanted: str) -> None:
    result = run("convert", "old.onnx", "new.onnx", "--ir-version", wanted)
    assert result.exit_code == 2
    assert f"'{wanted}' is not an IR version to convert to" in result.stderr
    assert "pass a version from 3 to 14, or keep" in result.stderr


def test_quiet_prints_nothing(run: Run, old_model: Path) -> None:
    result = run("convert", "old.onnx", "new.onnx", "-t", "17", "--quiet")
    assert (result.exit_code, result.output) == (0, "")


def test_prints_summary_as_json(run: Run, old_model: Path) -> None:
    result = run("convert", "old.onnx", "new.onnx", "-t", "17", "--format", "json", "--quiet")
    data = json.loads(result.stdout)
    assert (data["input"], data["output"]) == ("old.onnx", "new.onnx")
    assert data["opsets"] == [{"domain": "ai.onnx", "source": 10, "target": 17}]
    assert (data["ir_version"], data["kept"], len(data["changed"])) == ([6, 8], 1, 2)
    assert data["refusals"] == []


def test_in_place_replaces_the_input(run: Run, old_model: Path) -> None:
    assert run("convert", "old.onnx", "--in-place", "-t", "17").exit_code == 0
    assert opset_of_file(old_model) == 17
    assert os.listdir() == ["old.onnx"]


def test_in_place_keeps_link(run: Run, old_model: Path) -> None:
    Path("link.onnx").symlink_to("old.onnx")
    assert run("convert", "link.onnx", "--in-place", "-t", "17").exit_code == 0
    assert Path("link.onnx").is_symlink()
    assert opset_of_file(old_model) == 17


def test_replaces_existing_output_only_with_force(run: Run, old_model: Path) -> None:
    Path("out.onnx").write_bytes(b"mine")
    refused = run("convert", "old.onnx", "out.onnx", "-t", "17")
    assert refused.exit_code == 2
    assert "out.onnx: already exists" in refused.stderr
    assert Path("out.onnx").read_bytes() == b"mine"
    assert run("convert", "old.onnx", "out.onnx", "-t", "17", "--force").exit_code == 0
    assert opset_of_file(Path("out.onnx")) == 17


@pytest.mark.parametrize("out", ["old.onnx", "./sub/../old.onnx", "absolute", "hard.onnx", "soft.onnx"])
def test_refuses_input_as_output(run: Run, old_model: Path, out: str) -> None:
    Path("sub").mkdir()
    Path("hard.onnx").hardlink_to(old_model)
    Path("soft.onnx").symlink_to(old_model)
    before = old_model.read_bytes()
    output = str(old_model.resolve()) if out == "absolute" else out
    result = run("convert", "old.onnx", output, "-t", "17", "--force")
    assert result.exit_code == 2
    assert "is the input file" in result.stderr
    assert "--in-place" in result.stderr
    assert old_model.read_bytes() == before


def test_refuses_device_as_output(run: Run, old_model: Path) -> None:
    result = run("convert", "old.onnx", os.devnull, "-t", "17", "--force")
    assert result.exit_code == 2
    assert "not a regular file" in result.stderr
    assert not Path(os.devnull).is_file()


def test_refusal_names_every_node(run: Run, new_model: Path) -> None:
    result = run("convert", "new.onnx", "out.onnx", "-t", "6")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "error: new.onnx: 2 nodes cannot be converted; nothing was written" in result.stderr
    assert "no operator of opset 6 computes" in result.stderr
    assert "help: convert to opset 7 or later" in result.stderr
    assert "'sin1'" in result.stderr
    assert "'sin2'" in result.stderr
    assert os.listdir() == ["new.onnx"]


def test_prints_refusal_as_json(run: Run, new_model: Path) -> None:
    result = run("convert", "new.onnx", "out.onnx", "-t", "6", "--format=json")
    data = json.loads(result.stdout)
    assert (result.exit_code, result.stderr) == (1, "")
    assert (data["error"], data["place"]) == ("ConversionRefused", "new.onnx")
    assert [refusal["place"] for refusal in data["refusals"]] == [
        "graph, node 'sin1'",
        "graph, node 'sin2'",
    ]
    fields = {"place", "operator", "reason", "remedy", "code", "subject", "target", "nearest"}
    assert set(data["refusals"][0]) == fields
    (group,) = data["refusal_groups"]
    assert (group["code"], group["count"]) == ("operator.no-equivalent", 2)


def test_limits_number_of_printed_refusals(run: Run, folder: Path) -> None:
    names = ["x", *(f"v{index}" for index in range(29)), "y"]
    nodes = [helper.make_node("Sin", [a], [b]) for a, b in pairwise(names)]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), "long.onnx")
    refused = run("convert", "long.onnx", "out.onnx", "-t", "6")
    assert refused.stderr.count("node Sin ->") == 2
    assert "and 28 more" in refused.stderr
    summary = "operator.no-equivalent: 30 nodes have no equivalent: no operator of opset 6"
    assert summary in refused.stderr
    plan = run("plan", "long.onnx", "-t", "6", "--format", "json")
    assert plan.stdout.count("graph, node Sin ->") == 60


def test_plan_lists_changes_and_writes_nothing(run: Run, old_model: Path) -> None:
    result = run("plan", "old.onnx", "-t", "17")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "2 Clip:6 Clip:13 8 B" in lines
    assert "All nodes can be converted. --explain describes the changes." in lines
    assert "change from attributes to" not in result.stdout
    assert os.listdir() == ["old.onnx"]


def test_plan_explains_steps(run: Run, old_model: Path) -> None:
    lines = run("plan", "old.onnx", "-t", "17", "--explain").stdout.splitlines()
    assert any(line.startswith("  Clip:6 -> 11: `min` and `max` change from attributes to") for line in lines)
    assert "--explain" not in " ".join(lines)


def test_plan_with_refusals_fails(run: Run, new_model: Path) -> None:
    result = run("plan", "new.onnx", "-t", "6")
    assert result.exit_code == 1
    assert "2 refused" in result.stdout
    assert "  Sin:7  graph, node 'sin1'" in result.stdout
    assert "help: convert to opset 7 or later" in result.stdout


def test_prints_plan_as_json(run: Run, new_model: Path) -> None:
    result = run("plan", "new.onnx", "-t", "6", "--format", "json")
    data = json.loads(result.stdout)
    assert result.exit_code == 1
    assert data["possible"] is False
    assert len(data["refusals"]) == 2


def test_applies_additional_definitions(run: Run, folder: Path, acme: Path) -> None:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    node = helper.make_node("FastConv", ["x"], ["y"], domain="com.acme", name="fast")
    graph = helper.make_graph([node], "g", values[:1], values[1:])
    imports = [helper.make_opsetid("", 13), helper.make_opsetid("com.acme", 2)]
    onnx.save(helper.make_model(graph, opset_imports=imports), "acme.onnx")
    without = run("plan", "acme.onnx", "-t", "com.acme=3")
    assert without.exit_code == 2
    assert "no definitions for domain 'com.acme'" in without.stderr
    assert run("convert", "acme.onnx", "out.onnx", "-t", "com.acme=3", "--opsets", "acme").exit_code == 0
    downgraded = run("convert", "out.onnx", "back.onnx", "-t", "com.acme=2", "--opsets", "acme")
    assert downgraded.exit_code == 1
    assert "the older version requires a mode" in downgraded.stderr


@pytest.mark.parametrize("is_batch", [False, True], ids=["one model", "to a folder"])
def test_bump_raises_model_version(run: Run, old_model: Path, is_batch: bool) -> None:
    model = onnx.load(old_model)
    model.model_version = 7
    onnx.save(model, old_model)
    out = ["--out", "out"] if is_batch else ["new.onnx"]
    result = run("convert", "old.onnx", *out, "-t", "17", "--bump")
    assert (result.exit_code, result.stderr) == (0, "")
    assert onnx.load("out/old.onnx" if is_batch else "new.onnx").model_version == 8
    assert is_batch or "model version  8" in " ".join(result.stdout.splitlines())
