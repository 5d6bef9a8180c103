"""Checks of files without their weights have the findings of checks of whole models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from onnx import ModelProto, TensorProto
from support.large_models import LOCATIONS, RAW, TENSORS, model, raw, save
from typer.testing import CliRunner

from opshift.checker.check import check
from opshift.checker.findings import Finding
from opshift.cli.main import app
from opshift.converter.streaming import weights
from opshift.converter.streaming.weights import Weights, open_without_weights

FLAWS = {
    "too short": {"raw_data": raw().raw_data[:-4]},
    "too long": {"raw_data": raw().raw_data * 2},
    "in two fields": {"float_data": [1.0]},
    "in the wrong field": {"data_type": TensorProto.STRING},
    "6 bits, unused bits set": {"data_type": 27, "dims": [341]},
    "no type": {"data_type": 0},
    "large dimension": {"dims": [1 << 62, 1 << 62]},
}


@pytest.fixture(autouse=True)
def _extract_small_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "MIN_STREAMED_FILE", "MIN_EXTRACTED_TENSOR":
        monkeypatch.setattr(weights, name, 8)


def streamed_findings(path: Path) -> tuple[Finding, ...]:
    with open_without_weights(path) as found:
        return check(found)


@pytest.mark.parametrize("location", LOCATIONS)
@pytest.mark.parametrize("tensor", TENSORS)
def test_findings_are_those_of_the_whole_model(tensor: str, location: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    save(LOCATIONS[location](TENSORS[tensor]()), path)
    assert streamed_findings(path) == check(path)


@pytest.mark.parametrize("flaw", FLAWS)
@pytest.mark.parametrize("location", ["initializer", "Constant", "sparse initializer"])
def test_flaws_of_large_tensors_are_found(flaw: str, location: str, tmp_path: Path) -> None:
    tensor = raw()
    for name, value in FLAWS[flaw].items():
        if name in ("dims", "float_data"):
            tensor.ClearField(name)
            getattr(tensor, name).extend(value)
        else:
            setattr(tensor, name, value)
    path = tmp_path / "model.onnx"
    save(LOCATIONS[location](tensor), path)
    assert streamed_findings(path) == check(path)
    assert any("tensor" in each.rule for each in check(path))


@pytest.mark.parametrize("tensor", [each for each in TENSORS if each != "one text"])
def test_flaw_of_the_last_of_several_large_tensors_is_found(tensor: str, tmp_path: Path) -> None:
    tensors = [TENSORS[tensor]() for _ in range(3)]
    for number, each in enumerate(tensors):
        each.name = f"w{number}"
    if tensor.startswith("raw_data"):
        tensors[-1].raw_data = RAW[:-4]
    else:
        del getattr(tensors[-1], tensor)[-1:]
    path = tmp_path / "model.onnx"
    save(model(initializers=tensors), path)
    found = streamed_findings(path)
    assert found == check(path)
    assert any("'w2'" in each.place for each in found if each.rule == "tensor.size")


@pytest.mark.parametrize("command", ["check", "doctor", "reach"])
def test_commands_read_no_weights(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.onnx"
    save(model(initializers=[raw()]), path)
    monkeypatch.setattr(Weights, "whole", lambda *_: pytest.fail("reads a weight"))
    done = CliRunner().invoke(app, [command, str(path), "--format", "json"])
    assert done.exit_code == 0, done.output


def test_a_file_that_is_not_a_model_is_a_finding(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"PK\3\4" + bytes(100))
    done = CliRunner().invoke(app, ["check", str(path), "--format", "json"])
    assert json.loads(done.stdout)["counts"]["error"] == 1


def test_external_data_is_found(tmp_path: Path) -> None:
    found: ModelProto = model(initializers=[raw()])
    tensor = found.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="missing.bin")
    path = tmp_path / "model.onnx"
    save(found, path)
    done = CliRunner().invoke(app, ["check", str(path), "--format", "json"])
    assert "missing.bin" in done.stdout
