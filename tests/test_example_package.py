"""The example package of a private domain works when it is installed: its tests, and every command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

import opshift

ROOT = Path(__file__).parents[1]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Install the package into a folder, and return a function that runs modules of Python with it."""
    folder = tmp_path_factory.mktemp("acme")
    source = folder / "source"
    shutil.copytree(ROOT / "examples" / "acme", source)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    # pip searches for newer versions of itself otherwise
    environment = {**os.environ, "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [*command, "--target", folder / "site", source],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shutil.copytree(source / "tests", folder / "tests")
    path = os.pathsep.join([str(folder / "site"), str(Path(opshift.__file__).parents[1])])

    def run_module(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )

    onnx.save(_model("Relu", 13), folder / "model.onnx")
    onnx.save(_model("Softmax", 11, axis=1), folder / "softmax.onnx")
    return run_module


def _model(op_type: str, opset: int, **attributes: int) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [7, 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 3])
    nodes = [
        helper.make_node("Thin", ["x"], ["t"], domain="com.acme"),
        helper.make_node("Scale", ["t", "k"], ["s"], domain="com.acme"),
        helper.make_node(op_type, ["s"], ["y"], **attributes),
    ]
    factor = helper.make_tensor("k", TensorProto.FLOAT, [], [1.5])
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.acme", 2)]
    graph = helper.make_graph(nodes, "g", [x], [y], [factor])
    return helper.make_model(graph, opset_imports=imports, ir_version=7)


def test_tests_of_the_package_pass(run: Run) -> None:
    done = run("pytest", "-q", "-p", "no:cacheprovider", "tests")
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_lists_and_shows_the_operators(run: Run) -> None:
    done = run("opshift", "list", "--domain", "com.acme", "--format", "json")
    assert "Thin" in done.stdout, done.stderr
    assert "Keeps every row" in run("opshift", "show", "com.acme.Thin").stdout


def test_converts_and_verifies(run: Run) -> None:
    options = ("--verify", "--verify-with", "acme_operators.references", "--format", "json")
    done = run("opshift", "convert", "model.onnx", "out.onnx", "-t", "17", "-t", "com.acme=1", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    data = json.loads(done.stdout)
    assert data["verification"]["equal"]
    assert [each["target"] for each in data["opsets"]] == [17, 1]
    assert "ai.onnx.Slice:13" in done.stdout


def test_shape_rule_keeps_a_softmax(run: Run) -> None:
    """Without the rank of its input, two more nodes would replace the Softmax."""
    done = run("opshift", "plan", "softmax.onnx", "-t", "13", "--format", "json")
    assert done.returncode == 0, done.stdout
    assert "ai.onnx.Softmax:13" in done.stdout
    assert "Flatten" not in done.stdout


def test_checks_and_reaches(run: Run) -> None:
    assert run("opshift", "check", "model.onnx").returncode == 0
    done = run("opshift", "reach", "model.onnx")
    assert done.returncode == 0, done.stderr
