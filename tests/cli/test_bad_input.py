"""Invalid input files: one clear message, an exit code, and no output files."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from typer.testing import Result

Run = Callable[..., Result]


def model(op_type: str = "Relu", domain: str = "", *opsets: tuple[str, int]) -> bytes:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    graph = helper.make_graph(
        [helper.make_node(op_type, ["x"], ["y"], domain=domain, name="node")], "g", values[:1], values[1:]
    )
    imports = [helper.make_opsetid(*each) for each in opsets]
    model_proto = helper.make_model(
        graph, opset_imports=imports or [helper.make_opsetid("", 13)], ir_version=8
    )
    if not opsets:
        del model_proto.opset_import[:]
    return bytes(model_proto.SerializeToString())


def cyclic_model() -> bytes:
    model_proto = onnx.ModelProto.FromString(model("Relu", "", ("", 13)))
    model_proto.graph.node[0].input[0] = "z"
    model_proto.graph.node.append(helper.make_node("Relu", ["y"], ["z"]))
    return bytes(model_proto.SerializeToString())


VALID = model("Relu", "", ("", 13))
UNREADABLE = {
    "text": (b"# Title\n\nThis is no model.\n" * 20, "is not an ONNX model"),
    "random bytes": (random.Random(1).randbytes(1000), "is not an ONNX model"),
    "empty file": (b"", "is empty"),
    "truncated model": (VALID[:-3], "is truncated"),
    "half a model": (VALID[: len(VALID) // 2], "is truncated"),
    "model without a graph": (b"\x08\x08\x42\x04\x0a\x00\x10\x0d", "it has no graph"),
    "model without opset imports": (model(), "no opset import"),
    "conflicting imports": (
        model("Relu", "", ("", 13), ("ai.onnx", 14)),
        "domain ai.onnx is imported twice, as opset 13 and 14",
    ),
}
UNRESOLVABLE = {
    "unknown operator": (model("Relou", "", ("", 13)), "ai.onnx has no operator 'Relou'"),
    "operator of a later opset": (model("Mish", "", ("", 13)), "Mish is not in opset 13 of ai.onnx"),
    "opset 99": (model("Relu", "", ("", 99)), "there is no opset 99 of ai.onnx"),
    "opset 0": (model("Relu", "", ("", 0)), "there is no opset 0 of ai.onnx"),
    "domain that is not imported": (
        model("LabelEncoder", "ai.onnx.ml", ("", 13)),
        "LabelEncoder belongs to domain 'ai.onnx.ml', which has no opset import",
    ),
}
INVALID = {"nodes in a cycle": (cyclic_model(), "nodes form a cycle: 'node', Relu -> z")}


def cases(table: dict[str, tuple[bytes, str]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("data", "message"), table.values(), ids=list(table))


@cases({**UNREADABLE, **UNRESOLVABLE, **INVALID})
@pytest.mark.parametrize("form", ["text", "json"])
def test_convert_refuses_and_writes_nothing(
    run: Run, folder: Path, data: bytes, message: str, form: str
) -> None:
    Path("bad.onnx").write_bytes(data)
    result = run("convert", "bad.onnx", "out.onnx", "-t", "17", "--format", form)
    assert result.exit_code == 1
    assert os.listdir() == ["bad.onnx"]
    if form == "text":
        assert result.stdout == ""
        assert result.stderr.startswith("error: bad.onnx: ")
        assert message in result.stderr
    else:
        error = json.loads(result.stdout)
        assert result.stderr == ""
        assert error["place"].startswith("bad.onnx")
        assert message in error["reason"]


@cases({**UNREADABLE, **INVALID})
def test_plan_reports_error(run: Run, folder: Path, data: bytes, message: str) -> None:
    Path("bad.onnx").write_bytes(data)
    result = run("plan", "bad.onnx", "-t", "17")
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr


@cases(UNREADABLE)
def test_inspect_reports_error(run: Run, folder: Path, data: bytes, message: str) -> None:
    Path("bad.onnx").write_bytes(data)
    result = run("inspect", "bad.onnx")
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr


@cases(UNRESOLVABLE)
@pytest.mark.parametrize("command", [("inspect",), ("plan", "-t", "17")], ids=["inspect", "plan"])
def test_reports_unresolved_operator_as_finding(
    run: Run, folder: Path, data: bytes, message: str, command: tuple[str, ...]
) -> None:
    Path("bad.onnx").write_bytes(data)
    result = run(command[0], "bad.onnx", *command[1:])
    assert (result.exit_code, result.stderr) == (1, "")
    assert message in result.stdout


def test_refused_in_place_conversion_keeps_file(run: Run, new_model: Path) -> None:
    before = new_model.read_bytes()
    assert run("convert", "new.onnx", "--in-place", "-t", "6").exit_code == 1
    assert new_model.read_bytes() == before
    assert os.listdir() == ["new.onnx"]


def test_escapes_control_characters_in_names(run: Run, folder: Path) -> None:
    Path("bad.onnx").write_bytes(model("Re\x1b[31m[red]\nlu", "", ("", 13)))
    for command in (("inspect", "bad.onnx"), ("plan", "bad.onnx", "-t", "17")):
        output = run(*command).stdout
        assert "\x1b" not in output
        assert "Re\\x1b[31m[red]\\nlu" in output


def test_refuses_names_that_are_not_utf_8(run: Run, folder: Path) -> None:
    """Depending on its release, protobuf raises an error or returns bytes."""
    Path("bad.onnx").write_bytes(VALID.replace(b"Relu", b"\xff\xfe\xfdx"))
    assert run("inspect", "bad.onnx").exit_code == 1
    assert run("convert", "bad.onnx", "out.onnx", "-t", "17").exit_code == 1
    assert os.listdir() == ["bad.onnx"]


@pytest.mark.some_cases(2)
@pytest.mark.parametrize("name", ["text", "empty file", "truncated model", "conflicting imports"])
def test_program_shows_no_traceback(folder: Path, name: str) -> None:
    Path("bad.onnx").write_bytes({**UNREADABLE, **UNRESOLVABLE}[name][0])
    command = [sys.executable, "-m", "opshift", "convert", "bad.onnx", "out.onnx", "-t", "17"]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (completed.returncode, completed.stdout) == (1, "")
    assert len(completed.stderr.splitlines()) == 2
    assert completed.stderr.startswith("error: bad.onnx: ")
