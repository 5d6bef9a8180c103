"""Type checkers see precise types of the public functions, and reject wrong uses."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[1] / "src"

SNIPPET = """\
from pathlib import Path

import io
import opshift
import opshift.defs as defs
from opshift.compat import version_converter
from opshift.compat.onnx_ir import ConvertVersionPass
from onnx.onnx_ml_pb2 import ModelProto
import onnx_ir as ir

class Program:  # like torch.onnx.ONNXProgram
    model: ir.Model
    exported_program: object
    def release(self) -> None: ...

model = ModelProto()
ir_model = ir.from_proto(model)
reveal_type(opshift.convert_version(model, 17))
reveal_type(opshift.convert_version(b"", 17))
reveal_type(opshift.convert_version(Path("model.onnx"), 17))
reveal_type(opshift.convert(model, 17).model)
reveal_type(opshift.convert(b"", 17).model)
reveal_type(opshift.convert(io.BytesIO(), 17).model)
reveal_type(opshift.convert("model.onnx", 17, allow=["approximate"]).report)
reveal_type(opshift.plan_version(model, 17))
reveal_type(opshift.read_model("model.onnx"))
reveal_type(opshift.default_registry().get_schema("Softmax", 12))
reveal_type(defs.get_schema("Softmax", 12).domain)
reveal_type(defs.get_schema("Softmax", 12).inputs[0].option)
reveal_type(defs.get_schema("Softmax", 12).attributes["axis"].default_value)
reveal_type(defs.get_schema("Softmax", 12).function_body)
reveal_type(version_converter.convert_version(model, 17))
reveal_type(opshift.convert_version(ir_model, 17))
reveal_type(opshift.convert(ir_model, 17).model)
reveal_type(opshift.restamp(ir_model))
reveal_type(opshift.convert_version(Program(), 17))
reveal_type(ConvertVersionPass(17)(ir_model).model)
reveal_type(opshift.check(ir_model)[0])
opshift.verify(ir_model, Program())
opshift.common_opset([ir_model, model, "model.onnx"])
opshift.convert_version(model, 17, allow="aproximate")
opshift.convert(model, 17, checks=True)
opshift.plan_version(17, 17)
opshift.nothing
defs.get_schema("Softmax", 12).nothing
version_converter.convert_version(model, "17")
opshift.convert_version(ir_model.graph, 17)
version_converter.convert_version(ir_model, 17)
ConvertVersionPass(17, checks=True)
"""

REVEALED = [
    "ModelProto",
    "bytes",
    "ModelProto",
    "ModelProto",
    "bytes",
    "ModelProto",
    "Report",
    "Plan",
    "ModelProto",
    "OperatorVersion",
    "str",
    "FormalParameterOption",
    "AttributeProto",
    "FunctionProto",
    "ModelProto",
    "Model",
    "Model",
    "Model",
    "Program",
    "Model",
    "Finding",
]

REJECTED_LINES = [41, 42, 43, 44, 45, 46, 47, 48, 49]


@pytest.mark.full
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_public_functions_have_precise_types(checker: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed")
    (tmp_path / "snippet.py").write_text(SNIPPET)
    config = {"extraPaths": [str(SOURCES)], "reportUnusedExpression": False}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    options = {
        "mypy": ["--strict", "--follow-imports=silent", "--cache-dir=cache"],
        "pyright": ["--pythonpath", sys.executable],
    }
    done = subprocess.run(
        [sys.executable, "-m", checker, *options[checker], "snippet.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(SOURCES)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert [_last_name(each) for each in REVEAL.findall(done.stdout)] == REVEALED, done.stdout + done.stderr
    assert sorted({int(line) for line in ERROR.findall(done.stdout)}) == REJECTED_LINES


REVEAL = re.compile(r'Revealed type is "(.*)"|Type of ".*" is "(.*)"')
ERROR = re.compile(r"snippet\.py:(\d+)(?::\d+)?(?: -|:) error")


def _last_name(types: tuple[str, str]) -> str:
    return "".join(types).rpartition(".")[2]
