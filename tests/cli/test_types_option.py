"""`--types` and `--keep-interface` of convert and plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
import onnx.parser
import pytest
from typer.testing import Result

import opshift

Run = Callable[..., Result]

MODEL = """
    <ir_version: 9, opset_import: ["": 17]>
    main (TYPE[N, 2] x) => (TYPE[N, 2] y) <TYPE[2, 2] w> { a = MatMul (x, w) b = Relu (a) y = Softmax (b) }
"""


@pytest.fixture
def write(folder: Path) -> Callable[[str], str]:
    def save(element_type: str) -> str:
        model = onnx.parser.parse_model(
            MODEL.replace("TYPE", element_type).replace(f"<{element_type}[2, 2] w>", "")
        )
        number = onnx.TensorProto.DataType.Value(element_type.upper())
        model.graph.initializer.append(onnx.helper.make_tensor("w", number, [2, 2], [1.0, -2.0, 0.5, 4.0]))
        onnx.save(model, folder / "model.onnx")
        return "model.onnx"

    return save


def types_of(path: str) -> list[str]:
    graph = onnx.load(path).graph
    numbers = [*(each.type.tensor_type.elem_type for each in (*graph.input, *graph.output))]
    return [onnx.TensorProto.DataType.Name(each) for each in (*numbers, graph.initializer[0].data_type)]


@pytest.mark.parametrize(
    ("old", "new", "options", "found"),
    [
        ("bfloat16", "float", (), ["FLOAT"] * 3),
        ("bfloat16", "float16", ("--allow", "approximate"), ["FLOAT16"] * 3),
        ("float", "float16", ("--allow", "approximate", "--keep-interface"), ["FLOAT", "FLOAT", "FLOAT16"]),
        ("float16", "float", ("--target", "13"), ["FLOAT"] * 3),
    ],
)
def test_converts_and_verifies(
    run: Run, write: Callable[[str], str], old: str, new: str, options: tuple[str, ...], found: list[str]
) -> None:
    done = run("convert", write(old), "out.onnx", "--types", f"{old}={new}", "--verify", *options)
    assert done.exit_code == 0, done.stderr
    assert f"element types: {old} to {new}" in done.stdout
    assert "beyond tolerance" in done.stdout
    assert types_of("out.onnx") == found


def test_plan_names_what_to_allow(run: Run, write: Callable[[str], str]) -> None:
    done = run("plan", write("float"), "--types", "float=float16")
    assert done.exit_code == 1
    assert "float16 cannot represent all numbers of float" in done.stdout
    assert "allow approximate" in done.stdout


def test_suggests_types(run: Run, write: Callable[[str], str]) -> None:
    done = run("convert", write("float"), "out.onnx", "--types", "flaot=float16")
    assert done.exit_code == 2
    assert "did you mean 'float'?" in done.stderr


def float_model(write: Callable[[str], str]) -> onnx.ModelProto:
    """Return the float model with its weight in `raw_data`, which can be saved in a separate file."""
    model = onnx.load(write("float"))
    (weight,) = model.graph.initializer
    weight.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(weight), "w"))
    return model


def external_model(write: Callable[[str], str], path: str) -> None:
    """Write the float model with its weight in a separate file."""
    onnx.save(float_model(write), path, save_as_external_data=True, location="w.bin", size_threshold=0)


@pytest.mark.parametrize("out", ["out.onnx", "sub/out.onnx"])
def test_verifies_converted_weights_in_another_file(
    run: Run, write: Callable[[str], str], folder: Path, out: str
) -> None:
    external_model(write, "ext.onnx")
    Path(out).parent.mkdir(exist_ok=True)
    done = run("convert", "ext.onnx", out, "--types", "float=float16", "--allow", "approximate", "--verify")
    assert done.exit_code == 0, done.stderr
    assert "beyond tolerance" in done.stdout
    onnx.checker.check_model(out, full_check=True)
    assert Path(f"{out}.data").exists()
    assert opshift.verify("ext.onnx", out).equal


def sizes_in(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("size")]


def test_plans_weights_in_another_file(run: Run, write: Callable[[str], str], folder: Path) -> None:
    external_model(write, "ext.onnx")
    before, options = set(folder.iterdir()), ("--types", "float=double")
    plans = run("plan", "ext.onnx", *options), run("convert", "ext.onnx", "o.onnx", *options, "--dry-run")
    assert set(folder.iterdir()) == before
    done = run("convert", "ext.onnx", "--in-place", *options)
    assert [each.exit_code for each in (*plans, done)] == [0, 0, 0], plans[0].output
    assert sizes_in(plans[0].stdout) == sizes_in(plans[1].stdout) == sizes_in(done.stdout) != []


def test_writes_no_weights_if_outputs_differ(run: Run, write: Callable[[str], str], folder: Path) -> None:
    external_model(write, "ext.onnx")
    options = ("--types", "float=float16", "--allow", "approximate", "--verify", "--tolerance", "0")
    done = run("convert", "ext.onnx", "out.onnx", *options)
    assert done.exit_code == 1
    assert "differ" in done.stderr
    assert sorted(each.name for each in folder.iterdir()) == ["ext.onnx", "model.onnx", "w.bin"]


def test_verifies_the_types_of_many_models(run: Run, write: Callable[[str], str], folder: Path) -> None:
    (folder / "zoo").mkdir()
    external_model(write, "zoo/external.onnx")
    command = ("convert", "zoo", "--out", "out", "--types", "float=float16", "--allow", "approximate")
    done = run(*command, "--verify")
    assert done.exit_code == 0, done.stderr
    assert opshift.verify("zoo/external.onnx", "out/external.onnx").equal


def test_converts_the_types_of_many_models(run: Run, write: Callable[[str], str], folder: Path) -> None:
    model = float_model(write)
    (folder / "zoo").mkdir()
    onnx.save(model, "zoo/own.onnx")
    onnx.save(model, "zoo/external.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    command = ("convert", "zoo", "--out", "out", "--types", "float=float16", "--allow", "approximate")
    assert run(*command).exit_code == 0
    for name in ("own", "external"):
        onnx.checker.check_model(f"out/{name}.onnx", full_check=True)
        assert types_of(f"out/{name}.onnx") == ["FLOAT16"] * 3
    assert "2 skipped" in run(*command).stdout
    (folder / "out/external.onnx.data").write_bytes(b"damaged")
    assert "1 converted" in run(*command).stdout


@pytest.mark.parametrize(
    ("types", "data", "planned", "converted"),
    [
        pytest.param("bfloat16=float", None, "unchanged", "unchanged", id="absent type"),
        pytest.param("bfloat16=float", "m.onnx.data", "unchanged", "unchanged", id="equal data file"),
        pytest.param("bfloat16=float", "w.bin", "unchanged", "converted", id="renamed data file"),
        pytest.param("float=double", None, "convertible", "converted", id="changed type"),
    ],
)
def test_reports_models_without_the_type_as_unchanged(
    run: Run, write: Callable[[str], str], types: str, data: str | None, planned: str, converted: str
) -> None:
    Path("zoo").mkdir()
    model = float_model(write)
    onnx.save(model, "zoo/m.onnx", save_as_external_data=bool(data), location=data, size_threshold=0)
    for expected, command in ((planned, ("plan",)), (converted, ("convert", "--out", "out"))):
        done = run(command[0], "zoo", *command[1:], "--types", types)
        assert done.stdout.splitlines()[1].split()[0] == expected
    assert (Path("out/m.onnx").read_bytes() == Path("zoo/m.onnx").read_bytes()) is (converted == "unchanged")


def test_does_not_write_weights_beside_standard_output(
    run: Run, write: Callable[[str], str], folder: Path
) -> None:
    model = float_model(write)
    onnx.save(model, "external.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    done = run("convert", "external.onnx", "-", "--types", "float=float16", "--allow", "approximate")
    assert done.exit_code == 2
    assert "need a new file in the folder of the output" in done.stderr
