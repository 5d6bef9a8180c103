"""`opshift opset`: export, list and unpack operator sets, and use them in other commands."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.acme.kernels import run_acme
from support.execution import assert_equal, build
from typer.testing import Result

from opshift.adapters.core.adapter_table import temporary_adapters
from opshift.model.wire_format import bytes_field
from opshift.registry.documents.files import read_document
from opshift.registry.documents.onnxopset import DEFINITIONS_FIELD
from opshift.registry.registry import default_registry
from opshift.registry.yaml_files import dump_yaml

Run = Callable[..., Result]
ACME = Path(__file__).parents[2] / "support" / "acme"
X = np.linspace(-3, 12, 6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        pytest.param([], "set.onnxopset", id="binary by suffix"),
        pytest.param([], "set.yaml", id="YAML by suffix"),
        pytest.param(["--format", "json"], "set.json", id="JSON by option"),
        pytest.param([], "set.bin", id="unknown suffix"),
    ],
)
def test_writes_and_lists_set(run: Run, arguments: list[str], name: str) -> None:
    result = run("opset", "export", name, "--domain", "ai.onnx.ml", "--version", "3", *arguments)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    listed = run("opset", "load", name)
    assert listed.exit_code == 0
    assert listed.stdout.startswith("ai.onnx.ml, opset 3: ")
    data = json.loads(run("opset", "load", name, "--format", "json").stdout)
    assert (data["domain"], data["opset_version"]) == ("ai.onnx.ml", 3)
    assert "ai.onnx.ml.LabelEncoder:2" in data["operators"]


def test_writes_set_to_stdout(run: Run) -> None:
    result = run("opset", "export", "--domain", "ai.onnx.preview.training", "--format", "json")
    assert json.loads(result.stdout)["magic"] == "ONNXOPSET"
    message = onnx.OperatorSetProto.FromString(
        run("opset", "export", "--domain", "ai.onnx.preview.training").stdout_bytes
    )
    assert {each.op_type for each in message.operator} >= {"Adam", "Momentum"}


def test_replaces_file_only_with_force(run: Run) -> None:
    arguments = ("opset", "export", "set.json", "--domain", "ai.onnx.preview")
    assert run(*arguments).exit_code == 0
    repeated = run(*arguments)
    assert (repeated.exit_code, "already exists" in repeated.stderr) == (2, True)
    assert run(*arguments, "--force").exit_code == 0


def test_failed_export_keeps_the_file(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("opset", "export", "set.json", "--domain", "ai.onnx.preview", "--force")
    Path("set.json").write_text("before")

    def fail(file: int, data: bytes) -> None:
        os.write(file, data[:100])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("opshift.model.atomic_files.write_all", fail)
        result = run(*arguments)
    assert (result.exit_code, "No space left on device" in result.stderr) == (1, True)
    assert (os.listdir(), Path("set.json").read_text()) == (["set.json"], "before")
    assert run(*arguments).exit_code == 0
    assert json.loads(Path("set.json").read_text())


@pytest.mark.parametrize(
    ("name", "message"), [("missing/set.json", "folder that does not exist"), (".", "not a regular file")]
)
def test_refuses_export_to_unusable_paths(run: Run, name: str, message: str) -> None:
    result = run("opset", "export", name, "--domain", "ai.onnx.preview", "--force")
    assert (result.exit_code, message in result.stderr, os.listdir()) == (2, True, [])


def test_writes_and_shows_header(run: Run) -> None:
    texts = ("--prerelease", "rc.1", "--build-metadata", "7", "--doc", "A set.")
    arguments = ("opset", "export", "set.onnxopset", "--domain", "ai.onnx", "--version", "9")
    assert run(*arguments, *texts).exit_code == 0
    assert run("opset", "load", "set.onnxopset").stdout.splitlines()[1:3] == ["IR version 4-rc.1+7", "A set."]
    data = json.loads(run("opset", "load", "set.onnxopset", "--format", "json").stdout)
    assert [data[key] for key in ("ir_version", "ir_version_prerelease", "defined")] == [4, "rc.1", True]
    refused = run(*arguments, "--force", "--prerelease", "rc 1")
    assert (refused.exit_code, "invalid ir_version_prerelease 'rc 1'" in refused.stderr) == (2, True)


def test_lists_names_in_document_of_another_tool(run: Run) -> None:
    operators = [onnx.OperatorProto(op_type=name, since_version=2, status=1) for name in ("Blur", "Arc")]
    operators.append(onnx.OperatorProto(op_type="Try", since_version=1, status=0))
    header = {"magic": "ONNXOPSET", "ir_version": 8, "domain": "com.acme", "opset_version": 2}
    Path("plain.onnxopset").write_bytes(
        onnx.OperatorSetProto(**header, operator=operators).SerializeToString()
    )
    listed = run("opset", "load", "plain.onnxopset")
    assert listed.exit_code == 0
    lines = listed.stdout.splitlines()
    assert lines[0] == "com.acme, opset 2: 3 operators"
    assert "names only" in lines[2]
    assert lines[-1].split() == ["Try", "com.acme.Try:1", "experimental"]
    data = json.loads(run("opset", "load", "plain.onnxopset", "--format", "json").stdout)
    assert (data["defined"], data["operators"][0]) == (False, "com.acme.Blur:2")
    for arguments in (
        ("opset", "load", "plain.onnxopset", "--out", "tree"),
        ("list", "--opsets", "plain.onnxopset"),
    ):
        refused = run(*arguments)
        assert (refused.exit_code, "does not define them" in refused.stderr) == (1, True)


def test_unpacks_set(run: Run) -> None:
    run("opset", "export", "set.onnxopset", "--domain", "ai.onnx.ml")
    result = run("opset", "load", "set.onnxopset", "--out", "tree")
    assert result.stdout.splitlines()[-1].startswith("wrote ")
    names = {path.stem for path in Path("tree/ai.onnx.ml").glob("*.yaml")}
    assert names == set(default_registry().names("ai.onnx.ml"))
    repeated = run("opset", "load", "set.onnxopset", "--out", "tree")
    assert (repeated.exit_code, "already" in repeated.stderr) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        pytest.param(["export", "--domain", "com.acme"], "no definitions for domain", 2, id="unknown domain"),
        pytest.param(["export", "-d", "ai.onnx", "--version", "99"], "no opset 99", 2, id="unknown opset"),
        pytest.param(["load", "none.onnxopset"], "file does not exist", 2, id="missing file"),
        pytest.param(["load", "junk.onnxopset"], "OperatorSetProto", 1, id="invalid message"),
        pytest.param(["load", "junk.json"], "is not JSON", 1, id="invalid JSON"),
    ],
)
def test_reports_invalid_arguments_and_files(
    run: Run, folder: Path, arguments: list[str], message: str, code: int
) -> None:
    for suffix in ("onnxopset", "json"):
        (folder / f"junk.{suffix}").write_bytes(b"\xff\xff\xff")
    result = run("opset", *arguments)
    assert result.exit_code == code
    assert message in result.stderr


# Use in other commands


@pytest.fixture
def acme_set(run: Run) -> Path:
    """Write `acme.onnxopset` with a custom domain."""
    run("opset", "export", "acme.onnxopset", "--domain", "com.acme", "--opsets", str(ACME))
    return Path("acme.onnxopset")


@pytest.fixture
def _registered_adapters() -> Iterator[None]:
    with temporary_adapters():
        yield


def _model() -> onnx.ModelProto:
    node = onnx.helper.make_node("Scale", ["x"], ["y"], domain="com.acme", factor=1.5, offset=0.75)
    return build([node], {"x": X}, ["y"], {"": 13, "com.acme": 1})


def test_accepts_document_like_folder(run: Run, acme_set: Path) -> None:
    assert len(read_document(acme_set).operators) == 2
    shown = run("show", "com.acme.Scale", "--opsets", str(acme_set))
    assert shown.stdout == run("show", "com.acme.Scale", "--opsets", str(ACME)).stdout
    missing = run("show", "com.acme.Scale", "--opsets", "none.onnxopset")
    assert (missing.exit_code, "does not exist" in missing.stderr) == (2, True)


@pytest.mark.some_cases(1)
@pytest.mark.usefixtures("_registered_adapters")
@pytest.mark.parametrize(
    "jobs",
    [[], ["second.onnx", "--out", "out", "--jobs", "2"]],
    ids=["one model", "several models in processes"],
)
def test_converts_models_of_custom_domain(run: Run, acme_set: Path, jobs: list[str]) -> None:
    for name in ("model.onnx", "second.onnx"):
        onnx.save(_model(), name)
    destination = jobs or ["new.onnx"]
    result = run(
        "convert",
        "model.onnx",
        *destination,
        "-t",
        "com.acme=3",
        "--opsets",
        str(acme_set),
        "--adapters",
        str(ACME / "adapters"),
    )
    assert result.exit_code == 0, result.output
    converted = onnx.load("out/model.onnx" if jobs else "new.onnx")
    assert len(converted.graph.node[0].input) == 2
    assert_equal(run_acme(converted, {"x": X}), run_acme(_model(), {"x": X}))


@pytest.mark.usefixtures("_registered_adapters")
def test_plan_and_reach_accept_adapters(run: Run) -> None:
    onnx.save(_model(), "model.onnx")
    options = ("--opsets", str(ACME), "--adapters", str(ACME / "adapters" / "scaling.py"))
    assert run("plan", "model.onnx", "-t", "com.acme=3", *options).exit_code == 0
    assert run("reach", "model.onnx", "--domain", "com.acme", *options).exit_code == 0


def test_runs_only_named_adapter_files(run: Run) -> None:
    onnx.save(_model(), "model.onnx")
    before = set(sys.modules)
    result = run("plan", "model.onnx", "-t", "com.acme=3", "--opsets", str(ACME))
    assert result.exit_code == 1
    assert "no adapter is registered" in result.stderr
    assert not [name for name in set(sys.modules) - before if name.startswith("opshift_file_")]


def test_reports_missing_adapters(run: Run) -> None:
    onnx.save(_model(), "model.onnx")
    result = run("plan", "model.onnx", "-t", "com.acme=3", "--adapters", "none.py")
    assert (result.exit_code, "found no Python file with adapters" in result.stderr) == (1, True)


def test_runs_no_file_for_an_empty_path(run: Run) -> None:
    """An unset variable of a shell script must not select the files of the current folder."""
    onnx.save(_model(), "model.onnx")
    Path("script.py").write_text("from pathlib import Path\nPath('ran').touch()\n")
    result = run("plan", "model.onnx", "-t", "com.acme=3", "--adapters", "")
    assert (result.exit_code, "the path is empty" in result.stderr) == (2, True)
    assert not Path("ran").exists()


HOSTILE_NAMES = {
    "parent folder": "../../outside",
    "parent at the end": "a/..",
    "absolute path": "/tmp/outside",
    "backslash": "..\\outside",
    "drive": "C:outside",
    "separator": "a/b",
    "hidden": ".hidden",
    "two dots": "a..b",
    "only dots": "..",
    "line break": "a\nb",
    "escape sequence": "\x1b[31mred",
    "null character": "a\0b",
    "space": "a b",
    "direction mark": "a\u202eb",
    "long": "a" * 300,
    "long in UTF-8": "é" * 150,
}


@pytest.mark.parametrize(
    ("part", "hostile", "form"),
    [
        *((part, hostile, "json") for part in ("domain", "name") for hostile in HOSTILE_NAMES.values()),
        *((part, "../../outside", "json") for part in ("domain without operators", "one of two names")),
        *((part, "../../outside", form) for part in ("domain", "name") for form in ("yaml", "onnxopset")),
    ],
)
def test_refuses_names_that_are_paths(run: Run, folder: Path, part: str, hostile: str, form: str) -> None:
    Path("sub/out").mkdir(parents=True)
    run("opset", "export", "set.json", "--domain", "ai.onnx.preview.training")
    data = json.loads(Path("set.json").read_text())
    Path("set.json").unlink()
    if part.startswith("domain"):
        data["domain"] = hostile
        data["operators"] = [] if "without" in part else data["operators"]
        for each in data["operators"]:
            each["domain"] = hostile
    else:
        data["operators"] = data["operators"][: 1 if part == "name" else 2]
        data["operators"][-1]["name"] = hostile
    path = Path(f"set.{form}")
    if form == "onnxopset":
        message = onnx.OperatorSetProto(magic="ONNXOPSET", ir_version=8, opset_version=data["opset_version"])
        message.domain = data["domain"]
        definitions = bytes_field(DEFINITIONS_FIELD, json.dumps(data).encode())
        path.write_bytes(message.SerializeToString() + definitions)
    else:
        path.write_text(json.dumps(data) if form == "json" else dump_yaml(data), encoding="utf-8")
    result = run("opset", "load", path.name, "--out", "sub/out")
    assert (result.exit_code, result.stderr.startswith(f"error: {path.name}: ")) == (1, True)
    assert all(each.isprintable() for each in result.stderr.splitlines())
    assert [each for each in folder.rglob("*") if each.is_file()] == [folder / path]


def test_writes_through_no_link_out_of_folder(run: Run, folder: Path) -> None:
    Path("outside").mkdir()
    Path("out").mkdir()
    Path("out/ai.onnx.preview").symlink_to(folder / "outside", target_is_directory=True)
    run("opset", "export", "set.json", "--domain", "ai.onnx.preview")
    result = run("opset", "load", "set.json", "--out", "out")
    assert (result.exit_code, list(Path("outside").iterdir())) == (2, [])
    assert "is outside of the folder out" in result.stderr


def test_replaces_no_dangling_link(run: Run, folder: Path) -> None:
    run("opset", "export", "set.json", "--domain", "ai.onnx.preview")
    Path("out/ai.onnx.preview").mkdir(parents=True)
    Path("out/ai.onnx.preview/FlexAttention.yaml").symlink_to(folder / "outside.yaml")
    result = run("opset", "load", "set.json", "--out", "out")
    assert (result.exit_code, Path("outside.yaml").exists()) == (2, False)


@pytest.mark.parametrize("command", ["list", "load"])
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda text: "[" * 100_000, id="deep"),
        pytest.param(
            lambda text: text.replace('"opset_version": 1', f'"opset_version": {10**30}'), id="opset"
        ),
        pytest.param(lambda text: text.replace('"operator": "', r'"operator": "\ud800'), id="surrogate"),
    ],
)
def test_reports_hostile_document(run: Run, command: str, change: Callable[[str], str]) -> None:
    run("opset", "export", "set.json", "--domain", "ai.onnx.preview.training")
    Path("set.json").write_text(change(Path("set.json").read_text()))
    arguments = ("list", "--opsets", "set.json") if command == "list" else ("opset", "load", "set.json")
    result = run(*arguments)
    assert (result.exit_code, result.stderr.startswith("error: set.json: ")) == (1, True)
