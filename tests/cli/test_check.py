"""`opshift check` and `opshift convert --check`: violations of rules."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from typer.testing import Result

from opshift.checker.rule_table import rule_table

Run = Callable[..., Result]


@pytest.fixture
def legal(folder: Path, old_model: Path) -> Path:
    """Write `legal.onnx`, which breaks no rule."""
    model = onnx.load(old_model)
    onnx.save(model, folder / "legal.onnx")
    return folder / "legal.onnx"


@pytest.fixture
def illegal(folder: Path, old_model: Path) -> Path:
    """Write `illegal.onnx`: unknown attributes of Clip, an IR version too low for the opset, odd names."""
    model = onnx.load(old_model)
    model.ir_version = 4
    for _ in range(12):
        extra = model.graph.node.add()
        extra.CopyFrom(model.graph.node[1])
        extra.attribute[0].name = "least"
        extra.name = extra.output[0] = f"extra/{len(model.graph.node)}"
    onnx.save(model, folder / "illegal.onnx")
    return folder / "illegal.onnx"


def test_accepts_legal_model(run: Run, legal: Path) -> None:
    result = run("check", "legal.onnx")
    assert (result.exit_code, result.output) == (0, "legal.onnx\nvalid: no findings\n")


def test_reports_illegal_model(run: Run, illegal: Path) -> None:
    result = run("check", "illegal.onnx")
    assert result.exit_code == 1
    title = "error node.attribute-known: A node may only have attributes that its operator defines"
    assert title in result.stdout
    row = "  graph, node 'extra/4', attribute 'least'   is not an attribute of ai.onnx.Clip:6\n"
    assert row in result.stdout
    assert "  ... and 2 more; `--format json` lists all\n" in result.stdout
    assert "  help: remove the attribute, or correct its name\n" in result.stdout
    assert "warning model.ir-version-of-opset" in result.stdout
    assert "name.identifier" not in result.stdout
    summary = "invalid: 12 errors, 1 warning, 1 info; --level info shows all\n"
    assert result.stdout.endswith(summary)


@pytest.mark.parametrize(
    ("level", "rules"),
    [
        ("error", ["node.attribute-known"]),
        ("warning", ["node.attribute-known", "model.ir-version-of-opset"]),
        ("info", ["node.attribute-known", "model.ir-version-of-opset", "name.identifier"]),
    ],
)
def test_shows_findings_of_level_and_above(run: Run, illegal: Path, level: str, rules: list[str]) -> None:
    shown = [
        line.split()[1].rstrip(":")
        for line in run("check", "illegal.onnx", "--level", level).stdout.splitlines()
        if line.startswith(("error ", "warning ", "info "))
    ]
    assert shown == rules
    report = json.loads(run("check", "illegal.onnx", "--level", level, "--format", "json").stdout)
    assert {each["rule"] for each in report["models"][0]["findings"]} == set(rules)
    assert report["counts"] == {"error": 12, "warning": 1, "info": 1}


def test_prints_all_findings_as_json(run: Run, illegal: Path) -> None:
    result = run("check", "illegal.onnx", "--format", "json")
    assert result.exit_code == 1
    (model,) = json.loads(result.stdout)["models"]
    assert model["input"] == "illegal.onnx"
    assert len(model["findings"]) == 13
    assert model["findings"][0] == {
        "rule": "node.attribute-known",
        "level": "error",
        "place": "graph, node 'extra/4', attribute 'least'",
        "reason": "is not an attribute of ai.onnx.Clip:6",
        "remedy": "remove the attribute, or correct its name",
    }


def test_checks_all_given_models(run: Run, legal: Path, illegal: Path) -> None:
    Path("junk.onnx").write_bytes(b"\x01\x02")
    result = run("check", "junk.onnx", "illegal.onnx", "legal.onnx", "--level", "error")
    assert result.exit_code == 1
    assert [line.split() for line in result.stdout.splitlines()[:4]] == [
        ["result", "errors", "warnings", "model"],
        ["invalid", "1", "0", "junk.onnx", "model.readable"],
        ["invalid", "12", "1", "illegal.onnx", "node.attribute-known", "(12)"],
        ["valid", "0", "0", "legal.onnx"],
    ]


def test_warnings_do_not_change_exit_code(run: Run, legal: Path) -> None:
    model = onnx.load(legal)
    model.ir_version = 4
    onnx.save(model, legal)
    result = run("check", "legal.onnx")
    assert result.exit_code == 0
    assert result.stdout.endswith("\nvalid: 1 warning\n")


def test_lists_rules(run: Run) -> None:
    result = run("check", "--rules")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["rule", "level", "requirement", "source"]
    assert [line.split()[0] for line in lines[1:]] == list(rule_table())
    listed = json.loads(run("check", "--rules", "--format", "json").stdout)["rules"]
    assert [each["rule"] for each in listed] == list(rule_table())
    assert set(listed[0]) == {"rule", "level", "title", "source", "remedy"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "IN is not given"),
        (["no.onnx"], "no.onnx: file does not exist"),
        (["empty"], "empty: contains no *.onnx files"),
        (["legal.onnx", "--level", "grave"], "grave"),
    ],
    ids=["no model", "missing model", "empty folder", "unknown level"],
)
def test_refuses_wrong_usage(run: Run, legal: Path, arguments: list[str], message: str) -> None:
    Path("empty").mkdir()
    result = run("check", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_applies_additional_definitions(run: Run, legal: Path, acme: Path) -> None:
    model = onnx.load(legal)
    model.opset_import.add(domain="com.acme", version=4)
    model.graph.node[0].domain, model.graph.node[0].op_type = "com.acme", "FastConv"
    onnx.save(model, legal)
    assert run("check", "legal.onnx").exit_code == 0
    result = run("check", "legal.onnx")
    assert "1 node of com.acme was not checked: 'FastConv'" in result.stdout
    result = run("check", "legal.onnx", "--opsets", "acme")
    assert "not checked" not in result.stdout
    assert result.exit_code == 1
    assert "has 2 inputs; com.acme.FastConv:3 has 1" in result.stdout


def test_convert_checks_legal_model(run: Run, legal: Path) -> None:
    assert run("convert", "legal.onnx", "out.onnx", "-t", "17", "--check").exit_code == 0
    assert run("check", "out.onnx").exit_code == 0


def test_convert_refuses_illegal_model(run: Run, illegal: Path) -> None:
    before = sorted(os.listdir())
    assert run("convert", "illegal.onnx", "lax.onnx", "-t", "8").exit_code == 0
    os.remove("lax.onnx")
    result = run("convert", "illegal.onnx", "out.onnx", "-t", "8", "--check")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: before the conversion: node.attribute-known: ")
    assert "graph, node 'extra/4', attribute 'least'" in result.stderr
    planned = run("convert", "illegal.onnx", "out.onnx", "-t", "8", "--check", "--dry-run")
    assert (planned.exit_code, planned.stdout, planned.stderr) == (1, "", result.stderr)
    result = run("convert", "illegal.onnx", "out.onnx", "-t", "8", "--check", "--format", "json")
    error = json.loads(result.stdout)
    assert (error["error"], len(error["findings"])) == ("IllegalModel", 12)
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize(("release", "is_known"), [("1.16.3", False), ("1.31.1", True)])
def test_compares_vendor_nodes_with_the_release(run: Run, folder: Path, release: str, is_known: bool) -> None:
    """The attribute `accuracy_level` was added after 1.16, without a new version of the operator."""
    text = """<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
    g (float[2,32] x, uint8[4,1,16] b, float[4] s) => (float[2,4] y) {
      y = com.microsoft.MatMulNBits <K=32, N=4, block_size=32, bits=4, accuracy_level=1> (x, b, s)
    }"""
    onnx.save(onnx.parser.parse_model(text), folder / "vendor.onnx")
    result = run("check", "vendor.onnx", "--target", f"onnxruntime-{release}")
    assert ("does not implement all nodes" in result.stdout) is not is_known
    assert "valid: no findings" in result.stdout
