"""Accepted operators in all commands: definitions need no code, conversions name the option that runs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from support.released import released_definitions
from support.workbench import EXAMPLES, FLOAT, PRIMITIVE, Workbench, reference_text, texts
from typer.testing import CliRunner

from opshift.adapters.core.adapter_table import temporary_adapters
from opshift.analysis.verification import references
from opshift.cli.main import app
from opshift.registry.shapes.rule_table import temporary_rules

SHAPES = '''from opshift.shapes import Shape, ShapeContext, Shapes, data_rule


@data_rule("doubled_rows")
def doubled(node: ShapeContext, data: Shape) -> Shapes:
    """Double the number of rows."""
    return [(None if data[0] is None else 2 * data[0], *data[1:])] if data else []
'''
ADAPTERS = '''from opshift.adapters import Node, Rewriter, adapter


@adapter("Doubled", 29, 28)
def concatenate(node: Node, out: Rewriter) -> None:
    """Concatenate the input with itself."""
    out.emit("Concat", [node.inputs[0], node.inputs[0]], node.outputs, axis=0)
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder with a tree in which an operator with an adapter and a shape rule is accepted."""
    bench = Workbench(tmp_path_factory.mktemp("use"))
    with released_definitions():
        result = CliRunner().invoke(app, ["opset", "copy", str(bench.tree)])
        assert result.exit_code == 0, result.output
        path = bench.start("new-operator", "Doubled")
        definition = {
            "shape": "doubled_rows",
            **FLOAT,
            "before": "adapter",
            "descriptions": texts(),
        }
        files = {
            "reference.py": reference_text("np.concatenate([X, X])"),
            "examples.yaml": EXAMPLES.replace("- {name: scalar, inputs: [{values: 1.5}]}\n", ""),
            "shapes.py": SHAPES,
            "adapters.py": ADAPTERS,
        }
        bench.fill(path, definition, files, primitive_reason=PRIMITIVE)
        x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 3]) for name in "xy")
        graph = helper.make_graph([helper.make_node("Doubled", ["x"], ["y"])], "doubled", [x], [y])
        imports = [helper.make_opsetid("", 29)]
        onnx.save(
            helper.make_model(graph, opset_imports=imports, ir_version=14), bench.folder / "doubled.onnx"
        )
        yield bench.folder


@pytest.fixture(autouse=True)
def _registrations() -> Iterator[None]:
    before = dict(references._registered)
    references._load_references.cache_clear()
    with temporary_adapters(), temporary_rules():
        yield
    references._registered.clear()
    references._registered.update(before)
    references._load_references.cache_clear()


OPTION = "--adapters TREE/adapters"


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("command", "exit_code", "text"),
    [
        pytest.param("list Doubled --opset 29", 0, "ai.onnx.Doubled:29", id="list"),
        pytest.param("show Doubled", 0, "ai.onnx.Doubled:29", id="show"),
        pytest.param("resolve Doubled --opset 29", 0, "ai.onnx.Doubled:29", id="resolve"),
        pytest.param("diff --opset 28 29", 0, "operator added: Doubled", id="diff"),
        pytest.param("targets", 0, "onnx-1.24", id="targets"),
        pytest.param("opset export --domain ai.onnx --format yaml", 0, "name: Doubled", id="export"),
        pytest.param("stubs --opset 29", 0, "def Doubled(", id="stubs"),
        pytest.param("inspect doubled.onnx", 0, "Doubled", id="inspect"),
        pytest.param("check doubled.onnx", 0, "is not released", id="check"),
        pytest.param("doctor doubled.onnx", 0, "all nodes are valid at 29", id="doctor"),
        pytest.param("simplify doubled.onnx simple.onnx -f", 0, "1 kept", id="simplify"),
        pytest.param("compare doubled.onnx doubled.onnx", 0, "unchanged", id="compare"),
        pytest.param("convert doubled.onnx none.onnx -t 17", 1, OPTION, id="convert without code"),
        pytest.param("plan doubled.onnx -t 17", 1, OPTION, id="plan without code"),
        pytest.param("reach doubled.onnx", 1, OPTION, id="reach without code"),
        pytest.param("runs doubled.onnx", 1, OPTION, id="runs without code"),
        pytest.param("fit doubled.onnx none.onnx -r onnxruntime-1.20.1", 1, OPTION, id="fit without code"),
        pytest.param("node Doubled(x) --opset 29 -t 17", 1, OPTION, id="node without code"),
        pytest.param(
            "convert doubled.onnx older.onnx -f -t 17 --adapters opsets/adapters", 0, "Concat", id="convert"
        ),
        pytest.param(
            "convert doubled.onnx older.onnx -f -t 17 --adapters opsets/adapters --verify"
            " --verify-with opsets/references",
            0,
            "equal",
            id="verify",
        ),
        pytest.param(
            "convert doubled.onnx older.onnx -f -t 17 --adapters opsets/adapters --verify",
            1,
            "ai.onnx.Doubled:29, which has no Python reference",
            id="verify without references",
        ),
        pytest.param("plan doubled.onnx -t 17 --adapters opsets/adapters", 0, "Concat", id="plan"),
        pytest.param("reach doubled.onnx --adapters opsets/adapters", 0, "lowest", id="reach"),
    ],
)
def test_commands_about_an_accepted_operator(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: str, exit_code: int, text: str
) -> None:
    monkeypatch.chdir(folder)
    result = CliRunner(env={"COLUMNS": "200", "TERM": "dumb"}).invoke(
        app, [*command.split(), "--opsets", "opsets"]
    )
    assert (result.exit_code, text in result.output) == (exit_code, True), result.output


@pytest.mark.parametrize(
    ("options", "exit_code", "text"),
    [
        pytest.param((), 1, "run the file that registers it with --adapters", id="without code"),
        pytest.param(("--adapters", "opsets/adapters"), 0, "no findings", id="with code"),
    ],
)
def test_lint_of_a_tree_with_code(
    folder: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], exit_code: int, text: str
) -> None:
    monkeypatch.chdir(folder)
    result = CliRunner(env={"COLUMNS": "200", "TERM": "dumb"}).invoke(app, ["lint", "opsets", *options])
    assert (result.exit_code, text in result.output) == (exit_code, True), result.output


def test_copy_refuses_an_existing_folder(folder: Path) -> None:
    result = CliRunner().invoke(app, ["opset", "copy", str(folder)])
    assert (result.exit_code, "name a new folder" in result.stderr) == (2, True)
