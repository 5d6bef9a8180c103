"""Files that are no sound models: one clear message, an exit code, and nothing left behind."""

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
    made = helper.make_model(graph, opset_imports=imports or [helper.make_opsetid("", 13)], ir_version=8)
    if not opsets:
        del made.opset_import[:]
    return bytes(made.SerializeToString())


def cycle() -> bytes:
    made = onnx.ModelProto.FromString(model("Relu", "", ("", 13)))
    made.graph.node[0].input[0] = "z"
    made.graph.node.append(helper.make_node("Relu", ["y"], ["z"]))
    return bytes(made.SerializeToString())


SOUND = model("Relu", "", ("", 13))
UNREADABLE = {
    "text": (b"# Title\n\nThis is no model.\n" * 20, "is not an ONNX model"),
    "random bytes": (random.Random(1).randbytes(1000), "is not an ONNX model"),
    "empty file": (b"", "is empty"),
    "truncated model": (SOUND[:-3], "is truncated"),
    "half a model": (SOUND[: len(SOUND) // 2], "is truncated"),
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
UNSOUND = {"nodes in a cycle": (cycle(), "the nodes are not in order, or form a cycle")}


def cases(table: dict[str, tuple[bytes, str]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("data", "message"), table.values(), ids=list(table))


@cases({**UNREADABLE, **UNRESOLVABLE, **UNSOUND})
@pytest.mark.parametrize("form", ["text", "json"])
def test_convert_refuses_and_leaves_nothing(
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
        told = json.loads(result.stdout)
        assert result.stderr == ""
        assert told["place"].startswith("bad.onnx")
        assert message in told["reason"]


@cases({**UNREADABLE, **UNSOUND})
def test_plan_says_what_is_wrong(run: Run, folder: Path, data: bytes, message: str) -> None:
    Path("bad.onnx").write_bytes(data)
    result = run("plan", "bad.onnx", "-t", "17")
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr


@cases(UNREADABLE)
def test_inspect_says_what_is_wrong(run: Run, folder: Path, data: bytes, message: str) -> None:
    Path("bad.onnx").write_bytes(data)
    result = run("inspect", "bad.onnx")
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr


@cases(UNRESOLVABLE)
@pytest.mark.parametrize("command", [("inspect",), ("plan", "-t", "17")], ids=["inspect", "plan"])
def test_what_cannot_be_resolved_is_a_finding(
    run: Run, folder: Path, data: bytes, message: str, command: tuple[str, ...]
) -> None:
    Path("bad.onnx").write_bytes(data)
    result = run(command[0], "bad.onnx", *command[1:])
    assert (result.exit_code, result.stderr) == (1, "")
    assert message in result.stdout


def test_an_in_place_conversion_that_is_refused_changes_nothing(run: Run, new_model: Path) -> None:
    before = new_model.read_bytes()
    assert run("convert", "new.onnx", "--in-place", "-t", "6").exit_code == 1
    assert new_model.read_bytes() == before
    assert os.listdir() == ["new.onnx"]


def test_names_cannot_steer_the_terminal(run: Run, folder: Path) -> None:
    Path("bad.onnx").write_bytes(model("Re\x1b[31m[red]\nlu", "", ("", 13)))
    for command in (("inspect", "bad.onnx"), ("plan", "bad.onnx", "-t", "17")):
        shown = run(*command).stdout
        assert "\x1b" not in shown
        assert "Re\\x1b[31m[red]\\nlu" in shown


def test_names_that_are_no_text_are_refused(run: Run, folder: Path) -> None:
    """Whether protobuf raises or gives bytes depends on its release."""
    Path("bad.onnx").write_bytes(SOUND.replace(b"Relu", b"\xff\xfe\xfdx"))
    assert run("inspect", "bad.onnx").exit_code == 1
    assert run("convert", "bad.onnx", "out.onnx", "-t", "17").exit_code == 1
    assert os.listdir() == ["bad.onnx"]


@pytest.mark.parametrize("name", ["text", "empty file", "truncated model", "conflicting imports"])
def test_the_program_itself_shows_no_traceback(folder: Path, name: str) -> None:
    Path("bad.onnx").write_bytes({**UNREADABLE, **UNRESOLVABLE}[name][0])
    command = [sys.executable, "-m", "opshift", "convert", "bad.onnx", "out.onnx", "-t", "17"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 2
    assert done.stderr.startswith("error: bad.onnx: ")
