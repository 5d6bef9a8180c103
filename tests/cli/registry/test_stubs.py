"""`opshift stubs`: the module, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from opshift.registry.documents.node_builders import node_builders
from opshift.registry.registry import default_registry

Run = Callable[..., Result]


@pytest.mark.parametrize(
    ("arguments", "domain", "opset"),
    [((), "", None), (("--opset", "13"), "", 13), (("-d", "ai.onnx.ml", "--opset", "3"), "ai.onnx.ml", 3)],
)
def test_writes_a_module(run: Run, arguments: tuple[str, ...], domain: str, opset: int | None) -> None:
    expected = node_builders(default_registry(), domain, opset)
    result = run("stubs", "ops.py", *arguments)
    assert (result.exit_code, result.output) == (0, "")
    assert Path("ops.py").read_text("utf-8") == expected
    assert run("stubs", *arguments).stdout == expected


def test_includes_private_domains(run: Run, acme: Path) -> None:
    code = run("stubs", "-d", "com.acme", "--opset", "4", "--opsets", "acme").stdout
    assert 'DOMAIN: Final = "com.acme"' in code
    assert "def FastConv(" in code
    assert (
        "def FastConv(" not in run("stubs", "-d", "com.acme", "--opsets", "acme").stdout
    )  # removed in opset 5


def test_keeps_an_existing_file(run: Run) -> None:
    Path("ops.py").write_text("mine", "utf-8")
    result = run("stubs", "ops.py")
    assert (result.exit_code, Path("ops.py").read_text("utf-8")) == (2, "mine")
    assert "replace it with --force" in result.stderr
    assert run("stubs", "ops.py", "--force").exit_code == 0
    assert Path("ops.py").read_text("utf-8").startswith('"""Functions')


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--opset", "99"), "use an opset version from 1 to"),
        (("-d", "ai.onnx.lm"), "did you mean ai.onnx.ml"),
        (("-d", "ai.onnx.ml", "--opset", "6"), "there is no opset 6 of ai.onnx.ml"),
    ],
)
def test_reports_unknown_opset_or_domain(run: Run, arguments: tuple[str, ...], message: str) -> None:
    result = run("stubs", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
