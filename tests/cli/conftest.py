"""Fixtures: a command runner, and models in an empty working folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner, Result

from opshift.cli.main import app

Run = Callable[..., Result]
PLAIN_ENVIRONMENT = {
    "FORCE_COLOR": None,
    "TTY_COMPATIBLE": None,
    "PY_COLORS": None,
    "COLUMNS": None,
    "TERM": "dumb",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to an empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(folder: Path) -> Run:
    """Return a function that runs a command in the working folder and raises its exceptions."""

    def run(*arguments: str) -> Result:
        return CliRunner(env=PLAIN_ENVIRONMENT).invoke(app, arguments, catch_exceptions=False)

    return run


def make_model(
    nodes: Sequence[onnx.NodeProto],
    opsets: Mapping[str, int],
    *,
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    """Build a model from x to y with one weight."""
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3, 8, 8])],
        [numpy_helper.from_array(np.ones((3, 3, 1, 1), np.float32), "w")],
    )
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    model = helper.make_model(graph, opset_imports=imports, functions=functions, producer_name="tester")
    model.ir_version = 8 if functions else 6
    return model


@pytest.fixture
def old_model(folder: Path) -> Path:
    """Write `old.onnx` of opset 10: an upgrade changes two Clip nodes and keeps Conv."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="conv"),
        helper.make_node("Clip", ["a"], ["b"], name="clip1", min=0.0, max=6.0),
        helper.make_node("Clip", ["b"], ["y"], name="clip2", min=0.0, max=6.0),
    ]
    path = folder / "old.onnx"
    onnx.save(make_model(nodes, {"": 10}), path)
    return path


@pytest.fixture
def new_model(folder: Path) -> Path:
    """Write `new.onnx` of opset 18 with two Sin nodes, which opset 6 does not support."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="conv"),
        helper.make_node("Sin", ["a"], ["b"], name="sin1"),
        helper.make_node("Sin", ["b"], ["y"], name="sin2"),
    ]
    path = folder / "new.onnx"
    onnx.save(make_model(nodes, {"": 18}), path)
    return path


ACME = """
domain: com.acme
name: FastConv
versions:
- since_version: 2
  descriptions: {operator: "A convolution, but fast."}
  before: {refuse: no equivalent operator exists}
  inputs:
  - {name: X, type: T}
  outputs:
  - {name: Y, type: T}
  attributes:
    speed: {type: FLOAT, default: 0.1, minimum: 0}
    mode: {type: STRING, default: warm, values: [warm, hot]}
  type_constraints:
    T: [tensor(float)]
- since_version: 3
  step:
    change: The mode was removed.
    up:
    - drop_attribute: mode
    down: {refuse: the older version requires a mode}
  inputs:
  - {name: X, type: T}
  outputs:
  - {name: Y, type: T}
  attributes:
    speed: {type: FLOAT, default: 0.1, minimum: 0}
  type_constraints:
    T: [tensor(float)]
  removal:
    removed_in: 5
    replaced_by: Conv
    mapping: Conv takes the same input.
    up: {refuse: no operator of the set is equivalent}
"""


@pytest.fixture
def acme(folder: Path) -> Path:
    """Write `acme`, a folder with the definition of one removed operator."""
    path = folder / "acme" / "com.acme" / "FastConv.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(ACME)
    return folder / "acme"
