"""`opshift opset`: sets are written, read, listed, unpacked, and used by other commands."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.acme.kernels import run_acme
from support.running import assert_equal, build
from typer.testing import Result

from opshift.adapters.table import registering
from opshift.registry.catalogue import default_registry
from opshift.registry.documents.files import read_document

Run = Callable[..., Result]
ACME = Path(__file__).parents[1] / "support" / "acme"
X = np.linspace(-3, 12, 6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        pytest.param([], "set.onnxopset", id="by its name"),
        pytest.param([], "set.yaml", id="YAML by its name"),
        pytest.param(["--format", "json"], "set.json", id="JSON"),
        pytest.param([], "set.bin", id="a name that says nothing"),
    ],
)
def test_a_set_is_written_and_listed(run: Run, arguments: list[str], name: str) -> None:
    result = run("opset", "export", name, "--domain", "ai.onnx.ml", "--version", "3", *arguments)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    listed = run("opset", "load", name)
    assert listed.exit_code == 0
    assert listed.stdout.startswith("ai.onnx.ml, opset 3: ")
    data = json.loads(run("opset", "load", name, "--format", "json").stdout)
    assert (data["domain"], data["opset_version"]) == ("ai.onnx.ml", 3)
    assert "ai.onnx.ml.LabelEncoder:2" in data["operators"]


def test_a_set_goes_to_stdout(run: Run) -> None:
    result = run("opset", "export", "--domain", "ai.onnx.preview.training", "--format", "json")
    assert json.loads(result.stdout)["magic"] == "ONNXOPSET"
    message = onnx.OperatorSetProto.FromString(
        run("opset", "export", "--domain", "ai.onnx.preview.training").stdout_bytes
    )
    assert {each.op_type for each in message.operator} >= {"Adam", "Momentum"}


def test_a_file_is_replaced_only_on_request(run: Run) -> None:
    arguments = ("opset", "export", "set.json", "--domain", "ai.onnx.preview")
    assert run(*arguments).exit_code == 0
    again = run(*arguments)
    assert (again.exit_code, "already exists" in again.stderr) == (2, True)
    assert run(*arguments, "--force").exit_code == 0


def test_a_set_is_unpacked(run: Run) -> None:
    run("opset", "export", "set.onnxopset", "--domain", "ai.onnx.ml")
    result = run("opset", "load", "set.onnxopset", "--out", "tree")
    assert result.stdout.splitlines()[-1].startswith("wrote ")
    names = {path.stem for path in Path("tree/ai.onnx.ml").glob("*.yaml")}
    assert names == set(default_registry().names("ai.onnx.ml"))
    again = run("opset", "load", "set.onnxopset", "--out", "tree")
    assert (again.exit_code, "already" in again.stderr) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        pytest.param(["export", "--domain", "com.acme"], "no definitions for domain", 1, id="no domain"),
        pytest.param(["export", "-d", "ai.onnx", "--version", "99"], "no opset 99", 1, id="no opset"),
        pytest.param(["load", "none.onnxopset"], "file does not exist", 2, id="no file"),
        pytest.param(["load", "junk.onnxopset"], "OperatorSetProto", 1, id="no message"),
        pytest.param(["load", "junk.json"], "is not JSON", 1, id="no JSON"),
    ],
)
def test_what_cannot_be_done(run: Run, folder: Path, arguments: list[str], message: str, code: int) -> None:
    for suffix in ("onnxopset", "json"):
        (folder / f"junk.{suffix}").write_bytes(b"\xff\xff\xff")
    result = run("opset", *arguments)
    assert result.exit_code == code
    assert message in result.stderr


# In other commands


@pytest.fixture
def acme_set(run: Run) -> Path:
    """`acme.onnxopset`, of a company's own domain."""
    run("opset", "export", "acme.onnxopset", "--domain", "com.acme", "--opsets", str(ACME))
    return Path("acme.onnxopset")


@pytest.fixture
def _table() -> Iterator[None]:
    with registering():
        yield


def _model() -> onnx.ModelProto:
    node = onnx.helper.make_node("Scale", ["x"], ["y"], domain="com.acme", factor=1.5, offset=0.75)
    return build([node], {"x": X}, ["y"], {"": 13, "com.acme": 1})


def test_a_document_is_taken_like_a_folder(run: Run, acme_set: Path) -> None:
    assert len(read_document(acme_set).operators) == 2
    shown = run("show", "com.acme.Scale", "--opsets", str(acme_set))
    assert shown.stdout == run("show", "com.acme.Scale", "--opsets", str(ACME)).stdout
    missing = run("show", "com.acme.Scale", "--opsets", "none.onnxopset")
    assert (missing.exit_code, "does not exist" in missing.stderr) == (2, True)


@pytest.mark.usefixtures("_table")
@pytest.mark.parametrize(
    "jobs",
    [[], ["second.onnx", "--out", "out", "--jobs", "2"]],
    ids=["one model", "several, in other processes"],
)
def test_a_company_converts_its_models(run: Run, acme_set: Path, jobs: list[str]) -> None:
    for name in ("model.onnx", "second.onnx"):
        onnx.save(_model(), name)
    where = jobs or ["new.onnx"]
    result = run(
        "convert",
        "model.onnx",
        *where,
        "-t",
        "com.acme=3",
        "--opsets",
        str(acme_set),
        "--adapters",
        str(ACME / "adapters"),
    )
    assert result.exit_code == 0, result.output
    found = onnx.load("out/model.onnx" if jobs else "new.onnx")
    assert len(found.graph.node[0].input) == 2
    assert_equal(run_acme(found, {"x": X}), run_acme(_model(), {"x": X}))


@pytest.mark.usefixtures("_table")
def test_plan_and_reach_take_adapters_too(run: Run) -> None:
    onnx.save(_model(), "model.onnx")
    options = ("--opsets", str(ACME), "--adapters", str(ACME / "adapters" / "scaling.py"))
    assert run("plan", "model.onnx", "-t", "com.acme=3", *options).exit_code == 0
    assert run("reach", "model.onnx", "--domain", "com.acme", *options).exit_code == 0


def test_code_runs_only_when_it_is_named(run: Run) -> None:
    onnx.save(_model(), "model.onnx")
    before = set(sys.modules)
    result = run("plan", "model.onnx", "-t", "com.acme=3", "--opsets", str(ACME))
    assert result.exit_code == 1
    assert "no adapter is registered" in result.stderr
    assert not [name for name in set(sys.modules) - before if name.startswith("opshift_adapters_")]


def test_adapters_that_there_are_not(run: Run) -> None:
    onnx.save(_model(), "model.onnx")
    result = run("plan", "model.onnx", "-t", "com.acme=3", "--adapters", "none.py")
    assert (result.exit_code, "found no Python file with adapters" in result.stderr) == (1, True)
