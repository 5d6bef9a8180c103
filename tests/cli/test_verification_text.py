"""`opshift convert --verify`: the result is written only if its outputs equal those of the original."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from rich.console import Console
from support.execution import build
from support.planted import install_wrong_clip
from typer.testing import Result

from opshift import VerificationFailed, convert_version, verify
from opshift.analysis.verification.compare import compare_output
from opshift.analysis.verification.result import DifferenceLocation, InputUsed, Verification
from opshift.cli.conversion_text import write_location, write_verification
from opshift.cli.page import Page
from opshift.cli.terminal import TerminalPage

Run = Callable[..., Result]
CONVERT = ("convert", "old.onnx", "out.onnx", "-t", "17", "--verify")


def test_prints_comparison(run: Run, old_model: Path) -> None:
    result = run(*CONVERT)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "output type and shape beyond tolerance result" in lines
    assert "y float[2, 3, 8, 8] 0 of 1,728 equal" in lines
    assert "3 samples of x float[2, 3, 8, 8] (generated)" in lines
    assert any(line.startswith("run with onnxruntime ") for line in lines)
    assert Path("out.onnx").exists()


def test_prints_comparison_as_json(run: Run, old_model: Path) -> None:
    data = json.loads(run(*CONVERT, "--format", "json").stdout)
    assert data["output"] == "out.onnx"
    assert data["verification"]["equal"] is True
    assert [output["name"] for output in data["verification"]["outputs"]] == ["y"]


def test_verifies_only_with_option(run: Run, old_model: Path) -> None:
    data = json.loads(run(*CONVERT[:-1], "--format", "json").stdout)
    assert "verification" not in data


@pytest.fixture
def wrong_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the adapter of Clip by a wrong one."""
    install_wrong_clip(monkeypatch)


@pytest.mark.usefixtures("wrong_adapter")
def test_difference_writes_nothing(run: Run, old_model: Path) -> None:
    result = run(*CONVERT)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "error: old.onnx: output 'y' differs: " in result.stderr
    assert "6.0 at [" in result.stderr
    assert "; nothing was written" in result.stderr
    lines = [" ".join(line.split()) for line in result.stderr.splitlines()]
    located = lines[lines.index("First different value") :]
    assert located[1:3] == ["node graph, node 'clip1'", "operator Clip:6 becomes Clip:13"]
    assert located[3].startswith("step ai.onnx.Clip:6 -> 11: `min` and `max` change")
    assert located[4].startswith("value b, float[5, 3, 8, 8]: ")
    assert located[5].startswith("largest 6 became ")
    assert "output element before after difference relative allowed" in lines
    assert os.listdir() == ["old.onnx"]


@pytest.mark.usefixtures("wrong_adapter")
def test_difference_keeps_existing_files(run: Run, old_model: Path) -> None:
    before = old_model.read_bytes()
    Path("out.onnx").write_bytes(b"mine")
    assert run(*CONVERT, "--force").exit_code == 1
    assert run("convert", "old.onnx", "--in-place", "-t", "17", "--verify").exit_code == 1
    assert (Path("out.onnx").read_bytes(), old_model.read_bytes()) == (b"mine", before)


@pytest.mark.usefixtures("wrong_adapter")
def test_prints_difference_as_json(run: Run, old_model: Path) -> None:
    result = run(*CONVERT, "--format", "json")
    data = json.loads(result.stdout)
    assert (result.exit_code, data["error"], data["place"]) == (1, "VerificationFailed", "old.onnx")
    assert data["verification"]["equal"] is False
    assert data["verification"]["outputs"][0]["differing"] > 0
    assert data["location"]["place"] == "graph, node 'clip1'"
    assert data["location"]["value"]["worst"]["original"] == 6


@pytest.mark.usefixtures("wrong_adapter")
def test_applies_given_inputs(run: Run, old_model: Path) -> None:
    """The wrong adapter is correct for small values."""
    np.savez("inputs.npz", x=np.full((1, 3, 8, 8), 0.5, np.float32))
    result = run(*CONVERT, "--inputs", "inputs.npz")
    assert result.exit_code == 0
    assert "1 sample of x float[1, 3, 8, 8] (given)" in result.stdout


@pytest.mark.usefixtures("wrong_adapter")
@pytest.mark.parametrize("suffix", ["npy", "npz", "pb"])
def test_reads_input_from_file(run: Run, old_model: Path, suffix: str) -> None:
    """The value in the file of all inputs is replaced by the one of the single input."""
    x = np.full((1, 3, 8, 8), 0.5, np.float32)
    np.savez("inputs.npz", x=x * 100)
    if suffix == "pb":
        Path("x.pb").write_bytes(numpy_helper.from_array(x).SerializeToString())
    else:
        (np.save if suffix == "npy" else np.savez)(f"x.{suffix}", x)
    assert run(*CONVERT, "--inputs", "inputs.npz").exit_code == 1
    result = run(*CONVERT, "--inputs", "inputs.npz", "--input", f"x=x.{suffix}")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "1 sample of x float[1, 3, 8, 8] (given)" in result.stdout


def test_refuses_input_of_different_shape(run: Run, old_model: Path) -> None:
    np.save("x.npy", np.zeros((2, 3), np.float32))
    result = run(*CONVERT, "--input", "x=x.npy")
    assert result.exit_code == 2
    assert "input 'x' has the shape [2, 3] instead of [N, 3, 8, 8]" in result.stderr


def test_location_lists_only_steps_of_the_operator(capsys: pytest.CaptureFixture[str]) -> None:
    value = compare_output("y", [np.zeros(1, np.float32)], [np.ones(1, np.float32)], None)
    operators = ("Reshape:14", "MatMul:13", "Cast:13", "Add:14", "Log:13", "Reshape:14")
    steps = (
        "Attention:24 -> 23: It gets an input. More.",
        "Reshape:21 -> 19",
        "Attention:23 -> 22: It is new.",
    )
    location = DifferenceLocation(
        "graph, node 'a'",
        "ai.onnx.Attention:24",
        tuple(f"ai.onnx.{each}" for each in operators),
        tuple(f"ai.onnx.{each}" for each in steps),
        value,
    )
    write_location(Page(), location)
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "operator Attention:24 becomes 2 Reshape:14, MatMul:13, Cast:13, 2 others" in lines
    assert [line for line in lines if line.startswith("step")] == [
        "step ai.onnx.Attention:24 -> 23: It gets an input",
        "step ai.onnx.Attention:23 -> 22: It is new.",
    ]


@pytest.mark.usefixtures("wrong_adapter")
@pytest.mark.parametrize("width", [60, 80, 120])
def test_failed_verification_fits_terminal(old_model: Path, width: int) -> None:
    """No line is wider than the terminal, and no line breaks a word."""
    with pytest.raises(VerificationFailed) as error:
        verify("old.onnx", convert_version("old.onnx", 17))
    assert error.value.location is not None
    console = Console(file=StringIO(), force_terminal=True, color_system=None, width=width)
    page = TerminalPage(console)
    write_location(page, error.value.location)
    write_verification(page, error.value.verification)
    assert isinstance(console.file, StringIO)
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    words = " ".join(lines).split()
    assert {"operator", "difference", "tolerance", "different", "attributes"} <= set(words)


@pytest.mark.parametrize(
    ("original", "converted", "text"),
    [
        pytest.param(
            [1e-9, 1.0], [3.7e-8, 1.0], "y [0] 1e-09 3.7e-08 3.6e-08 1e-05", id="covered by absolute"
        ),
        pytest.param([0.1, 200.0], [0.1005, 200.0], "y [0] 0.1 0.1005 0.0005 0.001", id="large mean"),
        pytest.param([1.0, 2.0], [1.0, 2.0001], "y [1] 2 2.0001 0.0001 5e-05 0.00022", id="relative"),
        pytest.param([0.0, 2.0], [1.0, 2.0], "y [0] 0 1 1 1e-05", id="zero"),
        pytest.param([1.0, 2.0], [1.0, np.nan], "y [1] 2 nan inf inf 0.00022", id="NaN"),
        pytest.param([1.0, 2.0], [1.0, 2.0], None, id="equal"),
    ],
)
def test_relative_difference_is_never_that_of_numbers_near_zero(
    original: list[float], converted: list[float], text: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    arrays = np.array(original, np.float32), np.array(converted, np.float32)
    compared = compare_output("y", [arrays[0]], [arrays[1]], None)
    write_verification(Page(), Verification(("a", "a"), 1, 0, (), (compared,)))
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    if text is None:
        assert "Largest differences" not in lines
    else:
        assert lines[lines.index("Largest differences") + 2] == text


def test_prints_branches_that_never_ran(capsys: pytest.CaptureFixture[str]) -> None:
    found = Verification(("a", "a"), 1, 0, (), (), unreached=("graph, node 'select', then_branch",))
    write_verification(Page(), found)
    lines = capsys.readouterr().out.splitlines()
    assert "graph, node 'select', then_branch: never executed, so not compared (provide --inputs)" in lines


@pytest.mark.parametrize("count", [0, 2], ids=["equal", "different"])
def test_many_outputs_fit_one_screen(count: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Different outputs come first, and only their differences are listed if there are any."""
    one, near, far = np.ones(1, np.float32), np.full(1, 1.00001, np.float32), np.full(1, 3, np.float32)
    outputs = [compare_output(f"y{at}", [one], [near if at < 12 - count else far], None) for at in range(12)]
    inputs = tuple(InputUsed(f"x{at}", "tensor(float)", (1,), given=False) for at in range(9))
    write_verification(Page(), Verification(("a", "a"), 1, 0, inputs, tuple(outputs)))
    lines = capsys.readouterr().out.splitlines()
    middle = lines.index("Largest differences")
    names = [line.split()[0] for line in lines[3 : middle - 1]]
    ordered = [f"y{at}" for at in (*range(12 - count, 12), *range(12 - count))]
    assert names == [*ordered[:10], "..."]
    assert lines[middle - 2] == "... and 2 more outputs; `--format json` lists all"
    listed = [line.split()[0] for line in lines[middle + 2 : lines.index("", middle + 2)]]
    assert listed == (ordered[:2] if count else [*ordered[:5], "..."])
    assert " ".join(lines).count("x3 float[1] (generated), and 5 more inputs") == 1


@pytest.mark.usefixtures("wrong_adapter")
def test_applies_given_tolerance(run: Run, old_model: Path) -> None:
    assert run(*CONVERT, "--tolerance", "6").exit_code == 0


def test_writes_nothing_if_models_cannot_be_compared(run: Run, folder: Path) -> None:
    node = helper.make_node("RandomNormalLike", ["x"], ["y"])
    onnx.save(build([node], {"x": np.zeros(2, np.float32)}, ["y"], 10), "old.onnx")
    result = run(*CONVERT)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "RandomNormalLike generates random numbers" in result.stderr
    assert os.listdir() == ["old.onnx"]


def test_error_without_runtimes_has_remedy(
    run: Run, old_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("onnxruntime", "onnx"):
        monkeypatch.setitem(sys.modules, name, None)
    result = run(*CONVERT)
    assert result.exit_code == 1
    assert "pip install 'opshift[verify]'" in result.stderr
    assert os.listdir() == ["old.onnx"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(
            ["--verify", "--inputs", "no.npz"], "no.npz: cannot be read as arrays", id="missing inputs file"
        ),
        pytest.param(["--inputs", "no.npz"], "--custom-ops require --verify", id="inputs without --verify"),
        pytest.param(["--input", "x=no.npy"], "--custom-ops require --verify", id="input without --verify"),
        pytest.param(["--verify", "--input", "x=no.npy"], "no.npy: cannot be read as arrays", id="no file"),
        pytest.param(["--verify", "--input", "no.npy"], "is not of the form NAME=FILE", id="input no name"),
        pytest.param(
            ["--verify", "--input", "x=a.npy", "--input", "x=b.npy"], "x=b.npy: is given twice", id="twice"
        ),
        pytest.param(["--tolerance", "1"], "--custom-ops require --verify", id="tolerance without --verify"),
        pytest.param(["--verify", "--tolerance", "-1"], "--tolerance", id="negative tolerance"),
    ],
)
def test_refuses_wrong_usage(run: Run, old_model: Path, options: list[str], message: str) -> None:
    result = run("convert", "old.onnx", "out.onnx", "-t", "17", *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert os.listdir() == ["old.onnx"]


ACME = Path(__file__).parents[2] / "examples" / "acme" / "acme_operators"
REFERENCES = """
from opshift import reference

@reference("Scale", 1, domain="com.acme")
def scale_1(x, *, factor):
    return x * factor

@reference("Scale", 2, domain="com.acme")
def scale_2(x, factor):
    return x * factor + {offset}
"""


@pytest.fixture
def private_options(folder: Path) -> list[str]:
    """Write a model of a private domain, and return the options that convert and verify it."""
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 3]) for name in "xy")
    node = helper.make_node("Scale", ["x"], ["y"], domain="com.acme", factor=3.0)
    imports = [helper.make_opsetid("", 13), helper.make_opsetid("com.acme", 1)]
    model = helper.make_model(helper.make_graph([node], "g", [x], [y]), opset_imports=imports, ir_version=7)
    onnx.save(model, "old.onnx")
    Path("references.py").write_text(REFERENCES.format(offset=0))
    Path("wrong.py").write_text(REFERENCES.format(offset=1))
    definitions = ["--opsets", str(ACME), "--adapters", str(ACME / "adapters")]
    return ["old.onnx", "-t", "com.acme=2", *definitions, "--verify"]


# a clean interpreter for each call: references are registered once per process
def _opshift(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "opshift", "convert", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.some_cases(1)
@pytest.mark.parametrize("more", [["out.onnx"], ["-o", "out", "-j", "2"]], ids=["file", "folder"])
def test_verifies_private_operators_with_references(private_options: list[str], more: list[str]) -> None:
    Path("old2.onnx").write_bytes(Path("old.onnx").read_bytes())
    sources = [*more, "old2.onnx"] if "-o" in more else more
    model, *options = private_options
    arguments = [model, *sources, *options, "--verify-with", "references.py", "--format", "json"]
    done = _opshift(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    *lines, _ = done.stdout.splitlines() if "-o" in more else (done.stdout, "")
    for each in map(json.loads, lines):
        assert each["verification"]["equal"]
        assert each["verification"]["runtimes"][0].startswith("onnx.reference")


@pytest.mark.some_cases(1)
@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        pytest.param(["--verify-with", "wrong.py"], 1, "output 'y' differs", id="difference"),
        pytest.param([], 1, "com.acme.Scale:1 has no Python reference", id="no reference"),
        pytest.param(["--verify-with", "none.py"], 2, "none.py: FileNotFoundError", id="missing file"),
        pytest.param(["--verify-with", "acme.none"], 2, "acme.none: ModuleNotFoundError", id="module"),
        pytest.param(["--custom-ops", "none.so"], 2, "does not exist", id="missing library"),
        pytest.param(["--custom-ops", "wrong.py"], 2, "wrong.py: onnxruntime", id="no library"),
    ],
)
def test_private_operators_without_correct_references(
    private_options: list[str], options: list[str], code: int, message: str
) -> None:
    done = _opshift(private_options[0], "out.onnx", *private_options[1:], *options)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert not Path("out.onnx").exists()


@pytest.mark.some_cases(1)
@pytest.mark.parametrize("option", [["--verify-with", "references.py"], ["--custom-ops", "ops.so"]])
def test_references_require_verification(private_options: list[str], option: list[str]) -> None:
    done = _opshift(private_options[0], "out.onnx", *private_options[1:-1], *option)
    assert done.returncode == 2
    assert "require --verify" in done.stderr


@pytest.mark.full
def test_failing_adapter_is_reported_with_its_line(private_options: list[str]) -> None:
    Path("adapters.py").write_text(
        "from opshift.adapters import adapter\n"
        '@adapter("Scale", 1, 2, domain="com.acme")\n'
        "def up(node, out):\n    node.nothing\n"
        '@adapter("Scale", 2, 1, domain="com.acme")\n'
        "def down(node, out):\n    pass\n"
    )
    arguments = [
        "old.onnx",
        "out.onnx",
        "-t",
        "com.acme=2",
        "--opsets",
        str(ACME),
        "--adapters",
        "adapters.py",
    ]
    done = _opshift(*arguments)
    assert done.returncode == 1
    assert (
        "adapters.py:4: node Scale -> y: the adapter com.acme.Scale 1 -> 2 raises AttributeErr" in done.stderr
    )
    data = json.loads(_opshift(*arguments, "--format", "json").stdout)
    assert data["error"] == "ExtensionFailed"
    assert data["extension"] == "adapter com.acme.Scale 1 -> 2"
    assert data["exception"].startswith("AttributeError: ")
    assert not Path("out.onnx").exists()
