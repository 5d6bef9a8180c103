"""Every example runs as its docstring says, and the examples' README lists it."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SEGMENTER = str(ROOT / "tests" / "golden" / "segmenter-9.onnx")
RUNS = {
    "convert_folder": (str(ROOT / "tests" / "golden"), "converted", "17"),
    "convert_model": (SEGMENTER, "segmenter-17.onnx", "17"),
    "estimate_batch": ("--workers", "100"),
    "export_from_torch": ("classifier.onnx",),
    "plan_conversion": (SEGMENTER, "8"),
    "private_domain": (),
    "query_registry": (),
    "verify_conversion": (SEGMENTER, "17"),
}
OUTPUT = {
    "convert_folder": "-> converted/segmenter-9.onnx",
    "convert_model": "ai.onnx.Upsample:9 -> ai.onnx.Resize:13",
    "estimate_batch": "| total | 1,000,000 | 100.0",
    "export_from_torch": "classifier.onnx: opset 13" if find_spec("torch") else "skipped: pip install torch",
    "plan_conversion": "1 refusals",
    "private_domain": "scaled = com.acme.Scale <factor: float = 3> (x)",
    "query_registry": "opset 12 has ai.onnx.Softmax:11",
    "verify_conversion": "mask: 384 elements, largest difference 0.0",
}


@pytest.mark.parametrize("name", RUNS)
def test_example_runs(name: str, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / f"{name}.py"), *RUNS[name]]
    completed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    assert OUTPUT[name] in completed.stdout


@pytest.mark.parametrize(
    "name", [name for name, arguments in RUNS.items() if arguments and "--" not in arguments[0]]
)
def test_example_without_arguments_prints_its_command(name: str) -> None:
    command = [sys.executable, str(ROOT / "examples" / f"{name}.py")]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.returncode == 1
    assert f"python examples/{name}.py" in completed.stderr
    assert "Traceback" not in completed.stderr


def test_every_example_is_run_and_listed() -> None:
    names = {path.stem for path in (ROOT / "examples").glob("*.py")}
    listed = (ROOT / "examples" / "README.md").read_text("utf-8")
    assert names == set(RUNS)
    assert [name for name in names if f"[{name}.py]({name}.py)" not in listed] == []


def test_docstrings_have_the_command() -> None:
    for name in RUNS:
        text = (ROOT / "examples" / f"{name}.py").read_text("utf-8")
        assert f"python examples/{name}.py" in text
