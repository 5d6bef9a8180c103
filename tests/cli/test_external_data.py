"""`--external`: transfer of external data files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from typer.testing import Result

Run = Callable[..., Result]
CONVERT_TO_SUBFOLDER = ("convert", "old.onnx", "sub/new.onnx", "-t", "17")


@pytest.fixture
def weights(old_model: Path) -> bytes:
    """Return the contents of `weights.bin` next to `old.onnx`; `sub` is an empty folder."""
    model = onnx.load(old_model)
    onnx.save(model, old_model, save_as_external_data=True, location="weights.bin", size_threshold=0)
    Path("sub").mkdir()
    return Path("weights.bin").read_bytes()


def test_transfers_nothing_in_same_folder(run: Run, weights: bytes) -> None:
    result = run("convert", "old.onnx", "new.onnx", "-t", "17")
    assert result.exit_code == 0
    assert "weights.bin" not in result.stdout
    assert sorted(os.listdir()) == ["new.onnx", "old.onnx", "sub", "weights.bin"]


@pytest.mark.parametrize(
    ("options", "links"),
    [
        pytest.param([], 1, id="default"),
        pytest.param(["--external", "copy"], 1, id="copy"),
        pytest.param(["--external", "link", "--quiet"], 2, id="link"),
    ],
)
def test_transfers_weights(run: Run, weights: bytes, options: list[str], links: int) -> None:
    result = run(*CONVERT_TO_SUBFOLDER, *options)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "weights.bin" not in result.stdout
    assert Path("sub/weights.bin").read_bytes() == weights
    assert Path("sub/weights.bin").stat().st_nlink == links
    assert sorted(os.listdir("sub")) == ["new.onnx", "weights.bin"]


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("convert", ["-t", "17"]),
        ("doctor", ["--fix"]),
        ("doctor", ["--fix", "--verify"]),
        ("fit", ["-r", "onnxruntime-1.20.1"]),
        ("simplify", []),
    ],
)
def test_commands_copy_weights(run: Run, weights: bytes, command: str, options: list[str]) -> None:
    result = run(command, "old.onnx", "sub/new.onnx", *options)
    assert (result.exit_code, result.stderr) == (0, "")
    assert Path("sub/weights.bin").read_bytes() == weights
    refused = run(command, "old.onnx", "sub/weights.bin", "--force", *options)
    assert refused.exit_code == 2
    assert "sub/weights.bin: is also the path of a file with weights of the model" in refused.stderr
    assert Path("sub/weights.bin").read_bytes() == weights


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("convert", ["-t", "17"]),
        ("doctor", ["--fix"]),
        ("fit", ["-r", "onnxruntime-1.20.1"]),
        ("simplify", []),
    ],
)
def test_commands_advise_on_links_and_kept_files(
    run: Run, weights: bytes, command: str, options: list[str]
) -> None:
    notes = {
        "link": "sub/new.onnx and old.onnx share weights.bin by links",
        "copy": "",
        "keep": "sub/new.onnx has weights in separate files: copy weights.bin",
    }
    for external, note in notes.items():
        result = run(command, "old.onnx", "sub/new.onnx", *options, "--external", external, "--force")
        assert result.exit_code == 0
        printed = " ".join(result.stdout.split())
        assert [each for each in notes.values() if each and each in printed] == ([note] if note else [])


def test_warns_of_links(run: Run, weights: bytes) -> None:
    run(*CONVERT_TO_SUBFOLDER, "--external", "link")
    assert "external.links" in run("check", "sub/new.onnx").stdout
    with pytest.raises(onnx.checker.ValidationError, match="multiple hard links"):
        onnx.load("sub/new.onnx")
    copied = run(*CONVERT_TO_SUBFOLDER, "--external", "link", "--types", "float=double", "--force")
    assert "by links" not in copied.stdout
    assert onnx.load("sub/new.onnx").graph.initializer[0].data_type == onnx.TensorProto.DOUBLE


@pytest.mark.parametrize("options", [[], ["--force"]], ids=["new name", "force"])
def test_copy_replaces_links(run: Run, weights: bytes, options: list[str]) -> None:
    run(*CONVERT_TO_SUBFOLDER, "--external", "link")
    if not options:
        Path("sub/new.onnx").unlink()
    copied = run(*CONVERT_TO_SUBFOLDER, *options)
    assert (copied.exit_code, "by links" in copied.stdout) == (0, False)
    models = [onnx.load(each) for each in ("old.onnx", "sub/new.onnx")]
    assert [each.graph.initializer[0].raw_data for each in models] == [weights] * 2


def test_link_keeps_equal_copies(run: Run, weights: bytes) -> None:
    run(*CONVERT_TO_SUBFOLDER)
    linked = run(*CONVERT_TO_SUBFOLDER, "--external", "link", "--force")
    assert (linked.exit_code, "by links" in linked.stdout) == (0, False)
    assert onnx.load("sub/new.onnx").graph.initializer[0].raw_data == weights


def test_batch_advises_on_links_once(run: Run, weights: bytes) -> None:
    Path("other.onnx").write_bytes(Path("old.onnx").read_bytes())
    batch = ("convert", "old.onnx", "other.onnx", "--out", "out", "-t", "17")
    printed = run(*batch, "--external", "link").stdout
    assert printed.count("the output and the source share weights.bin by links") == 1
    assert "by links" not in run(*batch).stdout
    assert onnx.load("out/old.onnx").graph.initializer[0].raw_data == weights


def test_names_kept_weights(run: Run, weights: bytes) -> None:
    Path("weights.bin").unlink()
    result = run(*CONVERT_TO_SUBFOLDER, "--external", "keep")
    assert result.exit_code == 0
    assert "sub/new.onnx has weights in separate files: copy weights.bin to its folder." in result.stdout
    assert os.listdir("sub") == ["new.onnx"]


def test_prints_external_data_as_json(run: Run, weights: bytes) -> None:
    data = json.loads(run(*CONVERT_TO_SUBFOLDER, "--format", "json").stdout)
    assert (data["external_data"], data["external"]) == (["weights.bin"], "copy")


def test_verifies_model_with_external_weights(run: Run, weights: bytes) -> None:
    assert run(*CONVERT_TO_SUBFOLDER, "--verify").exit_code == 0


def test_refuses_weights_file_as_output(run: Run, weights: bytes) -> None:
    result = run("convert", "old.onnx", "weights.bin", "-t", "17", "--force")
    assert result.exit_code == 2
    assert "contains weights of the input model" in result.stderr
    assert Path("weights.bin").read_bytes() == weights


def test_reports_missing_weights_and_writes_nothing(run: Run, weights: bytes) -> None:
    Path("weights.bin").unlink()
    result = run(*CONVERT_TO_SUBFOLDER)
    assert result.exit_code == 1
    assert "weights.bin: contains weights of the model, but is not an existing file" in result.stderr
    assert os.listdir("sub") == []


def test_replaces_different_file_only_with_force(run: Run, weights: bytes) -> None:
    Path("sub/weights.bin").write_bytes(b"mine")
    refused = run(*CONVERT_TO_SUBFOLDER)
    assert refused.exit_code == 2
    assert "sub/weights.bin: already exists" in refused.stderr
    assert os.listdir("sub") == ["weights.bin"]
    assert Path("sub/weights.bin").read_bytes() == b"mine"
    assert run(*CONVERT_TO_SUBFOLDER, "--force").exit_code == 0
    assert Path("sub/weights.bin").read_bytes() == weights


def test_keeps_equal_file(run: Run, weights: bytes) -> None:
    assert run(*CONVERT_TO_SUBFOLDER).exit_code == 0
    before = Path("sub/weights.bin").stat().st_ino
    Path("sub/new.onnx").unlink()
    assert run(*CONVERT_TO_SUBFOLDER).exit_code == 0
    assert Path("sub/weights.bin").stat().st_ino == before
