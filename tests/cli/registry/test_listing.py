"""`opshift list`, `opshift resolve` and `opshift targets`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from opshift.registry.registry import default_registry
from opshift.registry.selection import STATUSES

Run = Callable[..., Result]


@pytest.mark.parametrize(
    ("arguments", "version"),
    [
        pytest.param(["Conv", "--opset", "17"], "ai.onnx.Conv:11", id="opset"),
        pytest.param(["Conv"], "ai.onnx.Conv:22", id="newest opset"),
        pytest.param(["Conv:17"], "ai.onnx.Conv:11", id="opset in the name"),
        pytest.param(
            ["LabelEncoder", "--opset", "3", "-d", "ai.onnx.ml"],
            "ai.onnx.ml.LabelEncoder:2",
            id="domain option",
        ),
        pytest.param(["ai.onnx.ml.LabelEncoder"], "ai.onnx.ml.LabelEncoder:4", id="qualified name"),
    ],
)
def test_resolve_prints_only_the_version(run: Run, arguments: list[str], version: str) -> None:
    result = run("resolve", *arguments)
    assert (result.exit_code, result.output) == (0, f"{version}\n")
    assert json.loads(run("resolve", *arguments, "--format", "json").stdout)["operator"] == version


@pytest.mark.parametrize(
    ("arguments", "code", "error", "message"),
    [
        pytest.param(["Cnov"], 2, "UnknownOperator", "did you mean Conv?", id="misspelled name"),
        pytest.param(
            ["LabelEncoder"], 2, "UnknownOperator", "use --domain ai.onnx.ml", id="name of a different domain"
        ),
        pytest.param(
            ["Mish", "--opset", "9"],
            1,
            "NotYetIntroduced",
            "use opset 18 or newer",
            id="later operator",
        ),
        pytest.param(
            ["Conv", "--opset", "99"], 2, "UnknownOpset", "an opset version from 1 to", id="unknown opset"
        ),
        pytest.param(["Conv", "--opset", "0"], 2, "UnknownOpset", "an opset version from 1 to", id="opset 0"),
        pytest.param(["Conv", "-d", "nope"], 2, "UnknownDomain", "'nope'", id="unknown domain"),
    ],
)
def test_resolve_reports_reason(run: Run, arguments: list[str], code: int, error: str, message: str) -> None:
    result = run("resolve", *arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert message in result.stderr
    error_data = json.loads(run("resolve", *arguments, "--format", "json").stdout)
    assert error_data["error"] == error
    assert message in error_data["reason"] + error_data["remedy"]


def test_resolve_names_replacement_of_removed_operator(run: Run, acme: Path) -> None:
    result = run("resolve", "com.acme.FastConv:5", "--opsets", "acme")
    assert result.exit_code == 1
    assert "FastConv was removed from com.acme in opset 5" in result.stderr
    assert "help: Conv takes the same input." in result.stderr


def test_lists_all_operators_of_all_domains(run: Run) -> None:
    data = json.loads(run("list", "--format", "json").stdout)
    registry = default_registry()
    assert [each["domain"] for each in data["domains"]] == list(registry.domains())
    for each in data["domains"]:
        statuses = [operator["status"] for operator in each["operators"]]
        names = [operator["op_type"] for operator in each["operators"]]
        existing = len(names) - statuses.count("removed")
        assert set(statuses[existing:]) <= {"removed"}
        assert sorted(names) == sorted(registry.names(each["domain"]))
        assert names[:existing] == [
            name for name in registry.names(each["domain"]) if registry.has(name, None, each["domain"])
        ]


FILTERS = {
    "pattern": ["Reduce*"],
    "types": ["--accepts", "bfloat16", "--opset", "20"],
    "outputs": ["--produces", "seq(tensor(float))", "-d", "ai.onnx"],
    "parameter": ["--accepts", "int8", "--parameter", "x_zero_point"],
    "attribute": ["--attribute", "axes", "--opset", "12"],
    "functions": ["--function", "--changed", "13", "17"],
    "other operators": ["--no-function", "-d", "ai.onnx.ml"],
    "first": ["Softmax", "--accepts", "bfloat16", "--versions", "first"],
    "all": ["Cl*", "--versions", "all", "--opset", "12"],
    "statuses": ["--status", "preview", "--status", "deprecated"],
}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "pattern": {"name": "Reduce*"},
    "types": {"accepts": "bfloat16", "opset": 20},
    "outputs": {"produces": "seq(tensor(float))", "domain": ""},
    "parameter": {"accepts": "int8", "parameter": "x_zero_point"},
    "attribute": {"attribute": "axes", "opset": 12},
    "functions": {"function": True, "changed": (13, 17)},
    "other operators": {"function": False, "domain": "ai.onnx.ml"},
    "first": {"name": "Softmax", "accepts": "bfloat16", "versions": "first"},
    "all": {"name": "Cl*", "versions": "all", "opset": 12},
    "statuses": {"status": ("preview", "deprecated")},
}


@pytest.mark.parametrize("filters", FILTERS)
def test_filters_equal_those_of_select(run: Run, filters: str) -> None:
    arguments = {"status": STATUSES, **ARGUMENTS[filters]}
    expected = [str(each.id) for each in default_registry().select(**arguments)]
    data = json.loads(run("list", *FILTERS[filters], "--format", "json").stdout)
    assert expected
    assert [each["operator"] for domain in data["domains"] for each in domain["operators"]] == expected
    text = run("list", *FILTERS[filters]).stdout
    assert [word for word in text.split() if word in expected] == expected


def test_lists_removed_operators_last(run: Run) -> None:
    lines = run("list", "S*", "-d", "ai.onnx").stdout.splitlines()
    count = sum("ai.onnx.S" in line for line in lines)
    newest = default_registry().newest_opset()
    assert lines[0] == f"ai.onnx, opset {newest}: {count - 2} operators, 2 removed"
    assert lines[-2].split()[1:] == ["ai.onnx.Scale:1", "removed", "in", "opset", "10,", "use", "Mul"]
    assert lines[-1].split()[1:6] == ["ai.onnx.ScaledTanh:1", "removed", "in", "opset", "10"]
    assert "removed" not in run("list", "S*", "-d", "ai.onnx", "--opset", "9").stdout


def test_status_in_json(run: Run, acme: Path) -> None:
    def entry(*arguments: str) -> dict[str, Any]:
        data = json.loads(run("list", *arguments, "--format", "json", "--opsets", "acme").stdout)
        (found,) = [each for domain in data["domains"] for each in domain["operators"]]
        return {key: found[key] for key in ("operator", "status", "removed_in", "replaced_by")}

    assert entry("Upsample") == {
        "operator": "ai.onnx.Upsample:10",
        "status": "deprecated",
        "removed_in": None,
        "replaced_by": "Resize",
    }
    assert entry("FastConv") == {
        "operator": "com.acme.FastConv:3",
        "status": "removed",
        "removed_in": 5,
        "replaced_by": "Conv",
    }
    assert entry("FastConv", "-d", "com.acme", "--opset", "4")["status"] == "active"
    assert entry("FlexAttention")["status"] == "preview"


@pytest.mark.parametrize(
    ("arguments", "message", "remedy"),
    [
        pytest.param(["Sofmax"], "no operator 'Sofmax'", "did you mean Softmax", id="name"),
        pytest.param(["--accepts", "flot16"], "'tensor(flot16)'", "did you mean tensor(float16)", id="type"),
        pytest.param(["--attribute", "axess"], "unknown attribute 'axess'", "axes", id="attribute"),
        pytest.param(["--parameter", "x_zero_pont"], "unknown parameter", "x_zero_point", id="parameter"),
        pytest.param(["--status", "gone"], "unknown status 'gone'", "use active, preview", id="status"),
        pytest.param(["--versions", "last"], "unknown choice", "use current, first, all", id="versions"),
        pytest.param(["--changed", "17", "13"], "an older and a newer opset", "--changed 13 17", id="order"),
        pytest.param(["-d", "ai.onnx.lm"], "domain 'ai.onnx.lm'", "did you mean ai.onnx.ml or", id="domain"),
    ],
)
def test_list_reports_unknown_names(run: Run, arguments: list[str], message: str, remedy: str) -> None:
    result = run("list", *arguments)
    assert (result.exit_code != 0, result.stdout) == (True, "")
    assert message in result.stderr
    assert remedy in result.stderr


def test_opset_selects_other_domains_of_its_release(run: Run) -> None:
    data = json.loads(run("list", "--opset", "17", "--format", "json").stdout)
    assert {each["domain"]: each["opset"] for each in data["domains"]} == {
        "ai.onnx": 17,
        "ai.onnx.ml": 3,
        "ai.onnx.preview.training": 1,
        "com.microsoft": 1,
    }
    versions = {each["operator"] for domain in data["domains"] for each in domain["operators"]}
    assert {"ai.onnx.Conv:11", "ai.onnx.ml.LabelEncoder:2"} <= versions
    assert "ai.onnx.Mish:18" not in versions


def test_lists_one_domain(run: Run) -> None:
    lines = run("list", "-d", "ai.onnx.ml", "--opset", "5").stdout.splitlines()
    assert lines[0] == f"ai.onnx.ml, opset 5: {len(lines) - 2} operators"
    assert ["LabelEncoder", "ai.onnx.ml.LabelEncoder:4"] in [line.split() for line in lines]
    assert any(line.split()[-3:] == ["deprecated,", "use", "TreeEnsemble"] for line in lines)


def test_lists_additional_definitions(run: Run, acme: Path) -> None:
    assert "com.acme.FastConv:3" in run("list", "-d", "com.acme", "--opset", "4", "--opsets", "acme").stdout
    assert "com.acme, opset 5: 0 operators" in run("list", "--opset", "17", "--opsets", "acme").stdout


@pytest.mark.parametrize("arguments", [["--opset", "99"], ["--opset", "0"], ["-d", "nope"]], ids=" ".join)
def test_list_reports_unknown_opset_or_domain(run: Run, arguments: list[str]) -> None:
    result = run("list", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")


def test_listed_targets_can_be_used(run: Run, old_model: Path) -> None:
    data = json.loads(run("targets", "--format", "json").stdout)
    text = run("targets").stdout
    for product in data:
        newest = data[product][-1]["target"]
        assert newest.startswith(f"{product}-")
        assert f"\n{newest} " in text
        assert run("plan", "old.onnx", "-t", newest).exit_code == 0
    assert ["onnx-1.12", "8", "17", "3", "1"] in [line.split() for line in text.splitlines()]


def test_targets_are_grouped(run: Run) -> None:
    lines = run("targets").stdout.splitlines()
    places = [
        next(place for place, line in enumerate(lines) if line.startswith(start))
        for start in (
            "ONNX: onnx",
            "onnx-1.0 ",
            "Frameworks and servers: onnxruntime, ",
            "Accelerators of ",
            "hailo: its maintainers suggest opset 13",
        )
    ]
    assert places == sorted(places)
    assert sum("onnxruntime-web" in line for line in lines) == 1
    assert max(map(len, lines)) < 110


def test_targets_of_one_product(run: Run) -> None:
    assert json.loads(run("targets", "tensorrt", "--format", "json").stdout).keys() == {"tensorrt"}
    assert run("targets", "onnxruntime-web").stdout == run("targets", "onnxruntime").stdout
    failed = run("targets", "tensort")
    assert (failed.exit_code, failed.stdout) == (2, "")
    assert "unknown product 'tensort'" in failed.stderr
    assert "did you mean tensorrt?" in failed.stderr
    assert "hailo does not document its newest opset" in run("targets", "hailo").stderr


def test_targets_have_sources(run: Run) -> None:
    data = json.loads(run("targets", "--format", "json").stdout)
    lines = [line.split() for line in run("targets", "tensorrt").stdout.splitlines()]
    for releases in data.values():
        assert all(each["source"].startswith("https://") for each in releases)
    tensorrt = next(each for each in data["tensorrt"] if each["target"] == "tensorrt-8.6")
    assert ["tensorrt-8.6", "17", tensorrt["source"]] in lines
    assert f"source: {data['onnx'][0]['source']}" in run("targets", "onnx").stdout


def test_folder_adds_targets(run: Run, old_model: Path) -> None:
    Path("ours").mkdir()
    consumer = 'phone: {"2": {opsets: {ai.onnx: 9}, ir_version: 4, source: tried}}'
    Path("ours/consumers.yaml").write_text(consumer, "utf-8")
    assert ["phone-2", "4", "9"] in [
        line.split() for line in run("targets", "--opsets", "ours").stdout.splitlines()
    ]
    assert "Other programs: phone\n" in run("targets", "--opsets", "ours").stdout
    assert "source: tried" in run("targets", "phone", "--opsets", "ours").stdout
    assert run("convert", "old.onnx", "new.onnx", "-t", "phone-2", "--opsets", "ours").exit_code == 0
    assert run("convert", "old.onnx", "new2.onnx", "-t", "phone-2").exit_code == 2
