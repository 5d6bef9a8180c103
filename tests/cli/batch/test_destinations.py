"""A batch never writes two sources to one destination, and never replaces a file that it wrote."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from typer.testing import Result

from opshift.batch.ledger import LEDGER_NAME

Run = Callable[..., Result]

OPTIONS = (["--jobs", "1"], ["--jobs", "2"], ["--force"], ["--jobs", "2", "--force"], ["--external", "link"])


def save(path: str, fill: float, data: Sequence[str] = ("w.bin",)) -> None:
    """Save a model that adds constants with one value, which are in the given files."""
    file, nodes, weights = Path(path), [helper.make_node("Clip", ["x"], ["v0"], min=0.0)], []
    for number, location in enumerate(data):
        weight = TensorProto(name=f"w{number}", data_type=1, dims=[6], data_location=1)
        weight.external_data.add(key="location", value=location)
        weights.append(weight)
        nodes.append(helper.make_node("Add", [f"v{number}", f"w{number}"], [f"v{number + 1}"]))
        (file.parent / location).parent.mkdir(parents=True, exist_ok=True)
        (file.parent / location).write_bytes(np.full(6, fill, np.float32).tobytes())
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [6]) for name in ("x", f"v{len(data)}"))
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=4)
    file.write_bytes(model.SerializeToString())


def fills(path: str) -> set[float]:
    """Return the values of a model's weights; onnx itself refuses data in hard links."""
    model = onnx.load(path, load_external_data=False)
    locations = (pair.value for each in model.graph.initializer for pair in each.external_data)
    return {float(x) for each in locations for x in np.fromfile(Path(path).parent / each, np.float32)}


@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(("a/a.onnx", ["w.bin"]), ("b/b.onnx", ["w.bin"]), id="data files"),
        pytest.param(("a/a.onnx", ["s/w.bin"]), ("b/b.onnx", ["./s//w.bin", "v"]), id="spelling"),
        pytest.param(("a/a.onnx", ["b.onnx"]), ("b/b.onnx", ["w.bin"]), id="data file and model"),
        pytest.param(("a/a.onnx", ["w.bin"]), ("b/w.bin", ["v"]), id="model named like data"),
        pytest.param(("a/m.onnx", ["v"]), ("b/m.onnx", ["w"]), id="models"),
    ],
)
def test_refuses_two_sources_for_one_destination(
    run: Run, first: tuple[str, list[str]], second: tuple[str, list[str]], options: list[str]
) -> None:
    save(first[0], 1.0, first[1])
    save(second[0], 2.0, second[1])
    for order in ((first[0], second[0]), (second[0], first[0])):
        result = run("convert", *order, "--out", "out", "-t", "13", *options)
        assert (result.exit_code, Path("out").exists()) == (2, False)
        assert "convert them into separate folders" in result.stderr


def files() -> list[str]:
    """Return the output files."""
    return sorted(set(os.listdir("out")) - {LEDGER_NAME})


CASES = {
    "models": (("a/m.onnx", ["v"]), ("b/M.onnx", ["w"])),
    "data files": (("a/a.onnx", ["w.bin"]), ("b/b.onnx", ["W.bin"])),
    "folders": (("a/a.onnx", ["s/w.bin"]), ("b/b.onnx", ["S/w.bin"])),
    "data file and model": (("a/a.onnx", ["B.onnx"]), ("b/b.onnx", ["w.bin"])),
    "sharp s": (("a/straße.onnx", ["v"]), ("b/STRASSE.onnx", ["w"])),
    "composed letter": (("a/\u00e9.onnx", ["v"]), ("b/e\u0301.onnx", ["w"])),
}


@pytest.mark.some_cases(6)
@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
@pytest.mark.parametrize(("first", "second"), CASES.values(), ids=CASES)
def test_names_that_differ_in_case_are_one_destination_where_case_is_ignored(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    first: tuple[str, list[str]],
    second: tuple[str, list[str]],
    options: list[str],
) -> None:
    save(first[0], 1.0, first[1])
    save(second[0], 2.0, second[1])
    with monkeypatch.context() as patched:
        patched.setattr("opshift.batch.outputs._ignores_case", lambda folder: True)
        result = run("convert", first[0], second[0], "--out", "out", "-t", "13", *options)
    assert (result.exit_code, Path("out").exists()) == (2, False)
    assert "convert them into separate folders" in result.stderr
    # The file system of the test distinguishes them.
    result = run("convert", first[0], second[0], "--out", "out", "-t", "13", *options)
    assert (result.exit_code, result.stderr) == (0, "")
    assert [fills(f"out/{Path(name).name}") for name, _ in (first, second)] == [{1.0}, {2.0}]
    assert not list(Path("out").glob(".*"))


def test_inputs_with_another_case_are_not_replaced_where_case_is_ignored(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    save("a/m.onnx", 1.0, ["v"])
    save("out/M.onnx", 2.0, ["w"])
    monkeypatch.setattr("opshift.batch.outputs._ignores_case", lambda folder: True)
    result = run("convert", "a/m.onnx", "out/M.onnx", "--out", "out", "-t", "13", "--force")
    assert result.exit_code == 2
    assert fills("out/M.onnx") == {2.0}


@pytest.mark.some_cases(2)
@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
def test_models_of_one_folder_share_data(run: Run, options: list[str]) -> None:
    names = [f"{i}.onnx" for i in range(6)]
    for name in names:
        save(f"a/{name}", 1.0)
    for _ in range(2 if "--force" in options else 1):
        result = run("convert", "a", "--out", "out", "-t", "13", *options)
        assert (result.exit_code, result.stderr) == (0, "")
    assert all(fills(f"out/{name}") == {1.0} for name in names)
    assert files() == [*names, "w.bin"]


def test_failing_model_keeps_data_of_others(run: Run) -> None:
    for name in "abc":
        save(f"in/{name}.onnx", 1.0)
    model = onnx.load("in/a.onnx", load_external_data=False)
    model.graph.node.add(op_type="Gelu", input=["x"], output=["u"])
    Path("in/a.onnx").write_bytes(model.SerializeToString())
    assert run("convert", "in", "--out", "out", "-t", "13", "--jobs", "2").exit_code == 1
    assert files() == ["b.onnx", "c.onnx", "w.bin"]
    assert fills("out/b.onnx") == fills("out/c.onnx") == {1.0}


def test_subfolders_keep_their_data(run: Run) -> None:
    save("in/a/m.onnx", 1.0)
    save("in/b/m.onnx", 2.0)
    assert run("convert", "in", "--out", "out", "-t", "13", "--jobs", "2").exit_code == 0
    assert (fills("out/a/m.onnx"), fills("out/b/m.onnx")) == ({1.0}, {2.0})


def test_links_to_one_folder_are_one_destination(run: Run) -> None:
    save("in/a/m.onnx", 1.0)
    save("in/b/n.onnx", 2.0)
    Path("out/a").mkdir(parents=True)
    Path("out/b").symlink_to("a", target_is_directory=True)
    result = run("convert", "in", "--out", "out", "-t", "13", "--force")
    assert (result.exit_code, os.listdir("out/a")) == (2, [])


@pytest.mark.parametrize("external", ["copy", "keep"])
def test_refuses_to_replace_data_of_another_input(run: Run, external: str) -> None:
    save("c/x.onnx", 1.0, ["s/b.onnx"])
    save("b/b.onnx", 2.0, ["v"])
    options = ("--out", "c/s", "-t", "13", "--force", "--external", external)
    result = run("convert", "b/b.onnx", "c/x.onnx", *options)
    assert result.exit_code == 2
    assert "c/s/b.onnx: is also an input file of c/x.onnx" in result.stderr
    assert fills("c/x.onnx") == {1.0}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_output_has_permissions_of_input(run: Run, mode: int) -> None:
    save("a/a.onnx", 1.0)
    for path in ("a/a.onnx", "a/w.bin"):
        os.chmod(path, mode)
    assert run("convert", "a/a.onnx", "--out", "out", "-t", "13").exit_code == 0
    assert run("convert", "a/a.onnx", "a/b.onnx", "-t", "13").exit_code == 0
    assert run("convert", "a/a.onnx", "--in-place", "-t", "13").exit_code == 0
    for path in ("out/a.onnx", "out/w.bin", "a/b.onnx", "a/a.onnx"):
        assert stat.S_IMODE(os.stat(path).st_mode) == mode
