"""Layout of plans and conversions: short, and no word broken at the usual widths of a terminal."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from rich.console import Console

from opshift.analysis.reach import reach
from opshift.batch.settings import Settings
from opshift.cli.conversion import convert_file
from opshift.cli.conversion_text import MAX_GROUPS, write_conversion, write_plan
from opshift.cli.page import Column, Page, number
from opshift.cli.reach import ReachOfModel
from opshift.cli.terminal import TerminalPage
from opshift.converter.cost import plan_with_cost
from opshift.converter.options import Options
from opshift.converter.report import ChangedNode, Report
from opshift.model.files import read_bytes

WIDTHS = (60, 80, 120)
SCREEN_LINES = 24
GOLDEN = Path(__file__).parents[1] / "golden" / "segmenter-9.onnx"


def _value(name: str, *dims: int | str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)


def _serialized(
    nodes: list[onnx.NodeProto], inputs: list[onnx.ValueInfoProto], output: str, opset: int, **weights: object
) -> bytes:
    tensors = [
        numpy_helper.from_array(np.asarray(array, np.float32), name) for name, array in weights.items()
    ]
    outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "layout", inputs, outputs, tensors)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)]
    return bytes(helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString())


def golden() -> bytes:
    return GOLDEN.read_bytes()


def grid_sample() -> bytes:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("GridSample", ["r", "grid"], ["y"], "warp", mode="cubic"),
    ]
    return _serialized(nodes, [_value("x", 1, 3, 8, 8), _value("grid", 1, 8, 8, 2)], "y", 20)


def lstm() -> bytes:
    nodes = [
        helper.make_node("LSTM", ["x", "w", "r"], ["h"], "lstm", hidden_size=4),
        helper.make_node("Squeeze", ["h"], ["s"], axes=[1]),
        helper.make_node("Softmax", ["s"], ["y"], axis=2),
    ]
    weights = {"w": np.ones((1, 16, 3)), "r": np.ones((1, 16, 4))}
    return _serialized(nodes, [_value("x", 5, 2, 3)], "y", 10, **weights)


def transformer() -> bytes:
    nodes, last = [], "x"
    for layer in range(6):
        name = f"/model/layers.{layer}"
        inputs = [f"{part}{layer}" for part in "qkv"]
        nodes += [helper.make_node("MatMul", [last, "w"], [each], f"{name}/{each}/MatMul") for each in inputs]
        attributes = {"q_num_heads": 4, "kv_num_heads": 4, "is_causal": 1}
        nodes.append(helper.make_node("Attention", inputs, [f"a{layer}"], f"{name}/Attention", **attributes))
        nodes.append(helper.make_node("RMSNormalization", [f"a{layer}", "g"], [f"n{layer}"], f"{name}/norm"))
        nodes.append(helper.make_node("Gelu", [f"n{layer}"], [f"e{layer}"], f"{name}/mlp/Gelu"))
        last = f"e{layer}"
    return _serialized(nodes, [_value("x", 1, 8, 16)], last, 23, w=np.ones((16, 16)), g=np.ones(16))


def trees() -> bytes:
    names = "nodes_treeids nodes_nodeids nodes_featureids nodes_truenodeids nodes_falsenodeids class_treeids"
    attributes: dict[str, object] = {name: [0] for name in (*names.split(), "class_nodeids", "class_ids")}
    attributes |= {"nodes_modes": ["LEAF"], "nodes_values": [0.0], "class_weights": [1.0]}
    attributes["classlabels_int64s"] = [0, 1]
    outputs = ["label", "y"]
    node = helper.make_node("TreeEnsembleClassifier", ["x"], outputs, domain="ai.onnx.ml", **attributes)
    return _serialized([node], [_value("x", 1, 3)], "y", 17)


def slices_and_sums() -> bytes:
    nodes, last = [helper.make_node("BatchNormalization", ["x", "s", "s", "s", "s"], ["n"])], "n"
    for layer in range(4):
        start, part, other, total = (f"{name}{layer}" for name in ("start", "slice", "other", "sum"))
        nodes.append(helper.make_node("Slice", [last, start, start], [part], part))
        nodes.append(helper.make_node("Sum", [part, other], [total], total))
        last = total
    inputs = [helper.make_tensor_value_info(f"start{layer}", TensorProto.INT64, [1]) for layer in range(4)]
    inputs += [_value(f"other{layer}", "batch", 3) for layer in range(4)]
    return _serialized(nodes, [_value("x", "batch", 3), *inputs], last, 11, s=np.ones(3))


MODELS: dict[str, tuple[Callable[[], bytes], list[str]]] = {
    "golden": (golden, ["17"]),
    "golden to 21": (golden, ["21"]),
    "GridSample": (grid_sample, ["11"]),
    "LSTM": (lstm, ["17"]),
    "transformer": (transformer, ["17"]),
    "refused transformer": (transformer, ["6"]),
    "refused slices and sums": (slices_and_sums, ["6"]),
    "trees": (trees, ["ai.onnx.ml=5"]),
}


def many_operators() -> Report:
    """Return a report with 100 operators, each of which 100 others replace."""
    names = [f"ai.onnx.SomewhatLongOperator{number}:1" for number in range(100)]
    changed = tuple(
        ChangedNode(f"graph, node {name}", name, tuple(names), (f"{name} -> 2: It changes.",), 100, 8)
        for name in names
        for _ in range(3)
    )
    return Report((), (8, 8), 0, changed, 100, (), nodes=(300, 30_000), added_bytes=800, sizes=(1, 10**9))


def report_of(serialized: bytes, target: list[str]) -> tuple[Report, dict[str, int]]:
    model = read_bytes(serialized)
    imports = {each.domain or "ai.onnx": each.version for each in model.opset_import}
    return plan_with_cost(model, Options.of(target, inplace=True), len(serialized)), imports


def lines_at(width: int, write: Callable[[Page], None]) -> list[str]:
    """Return the lines that a page prints in a terminal."""
    stream = StringIO()
    write(TerminalPage(Console(file=stream, width=width, markup=False, emoji=False, highlight=False)))
    return stream.getvalue().splitlines()


def assert_no_broken_words(lines: list[str], width: int, write: Callable[[Page], None]) -> None:
    words = {word for line in lines_at(10_000, write) for word in line.split()}
    assert max(map(len, lines)) <= width
    assert {word for line in lines for word in line.split() if set(word) != {"─"}} <= words


def writer(report: Report, imports: dict[str, int], explain: bool = False) -> Callable[[Page], None]:
    return lambda page: write_plan(page, "model.onnx", report, imports, explain)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("make", "target"), MODELS.values(), ids=MODELS)
def test_plan_breaks_no_word(make: Callable[[], bytes], target: list[str], width: int) -> None:
    for explain in (False, True):
        write = writer(*report_of(make(), target), explain)
        assert_no_broken_words(lines_at(width, write), width, write)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", [name for name in MODELS if "refused" not in name])
def test_summary_of_a_conversion_breaks_no_word(folder: Path, name: str, width: int) -> None:
    make, target = MODELS[name]
    source, out = Path("in.onnx"), Path("out.onnx")
    source.write_bytes(make())
    settings = Settings(target=tuple(target))
    converted = convert_file(str(source), str(out), settings, settings.read())

    def write(page: Page) -> None:
        write_conversion(page, converted)

    lines = lines_at(width, write)
    assert_no_broken_words(lines, width, write)
    assert len(lines) <= SCREEN_LINES
    sizes = " -> ".join(f"{path.stat().st_size:,}" for path in (source, out))
    assert f"size {sizes} bytes" in [" ".join(line.split()) for line in lines]


@pytest.mark.parametrize("name", MODELS)
def test_plan_fits_one_screen(name: str) -> None:
    make, target = MODELS[name]
    assert len(lines_at(80, writer(*report_of(make(), target)))) <= SCREEN_LINES


def test_refused_plan_lists_reasons_instead_of_changes() -> None:
    report = report_of(slices_and_sums(), ["6"])
    lines = lines_at(120, writer(*report))
    assert report[0].changed
    assert "Changes" not in lines
    assert "Changes" in lines_at(120, writer(*report, explain=True))
    text = " ".join(" ".join(lines).split())
    assert text.count("the shapes of '...' must be fully known to broadcast them before opset 7") == 1
    assert text.endswith("Sum:8 graph, node 'sum0' Sum:8 graph, node 'sum1' and 2 more")


@pytest.mark.some_cases(1)
@pytest.mark.parametrize("width", WIDTHS)
def test_plan_with_many_operators_is_short(width: int) -> None:
    write = writer(many_operators(), {"ai.onnx": 17})
    lines = lines_at(width, write)
    assert_no_broken_words(lines, width, write)
    assert len(lines) <= 14 + 4 * MAX_GROUPS
    assert (
        f"and {100 - MAX_GROUPS} more ({3 * (100 - MAX_GROUPS)} nodes); `opshift plan --explain` lists all"
        in " ".join(" ".join(lines).split())
    )
    explained = lines_at(width, writer(many_operators(), {"ai.onnx": 17}, explain=True))
    assert sum("It changes." in line for line in explained) == 100


REACHED = {"transformer": transformer, "GridSample": grid_sample, "LSTM": lstm}


@pytest.mark.some_cases(2)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("make", REACHED.values(), ids=REACHED)
def test_reach_breaks_no_word(make: Callable[[], bytes], width: int) -> None:
    limits = reach(make())

    def write(page: Page) -> None:
        ReachOfModel("model.onnx", limits).write(page)

    assert_no_broken_words(lines_at(width, write), width, write)
    assert len(lines_at(80, write)) <= SCREEN_LINES


def test_cell_lists_the_most_frequent_operators() -> None:
    text = " ".join(" ".join(lines_at(80, writer(*report_of(grid_sample(), ["11"])))).split())
    assert "20 Add:7, 17 Mul:7, 6 Gather:11, 15" in text


def test_rows_with_long_words_are_paragraphs() -> None:
    name = "a" * 35
    rows = [("one", "1", "two"), (name, "short words wrap at spaces", name), ("three", "", "4")]
    columns = (Column("first"), Column("second"), Column("third"))
    lines = lines_at(60, lambda page: page.table(columns, rows))
    assert [line.rstrip() for line in lines] == [
        "first  second  third",
        "─" * 20,
        "one    1       two",
        f"{name}  short words wrap at",
        f"    spaces  {name}",
        "three          4",
    ]


def test_word_longer_than_the_terminal_is_complete() -> None:
    lines = lines_at(30, lambda page: page.table(("", ""), [("a" * 100, "b")]))
    assert max(map(len, lines)) <= 30
    assert "".join(lines).count("a") == 100


def test_paragraph_marks_empty_cells() -> None:
    rows = [("a" * 40, "", "b" * 40), ("a", "b", "")]
    columns = (Column("first"), Column("second"), Column("third"))
    lines = lines_at(60, lambda page: page.table(columns, rows))
    assert [line.rstrip() for line in lines[2:]] == [f"{'a' * 40}  -", f"    {'b' * 40}", "a      b"]


def test_long_headings_break_after_dots() -> None:
    columns = (Column("name"), number("ai.onnx.preview.training"), number("ai.onnx.ml"))
    lines = lines_at(25, lambda page: page.table(columns, [("onnx-1.7", 1, 12)]))
    assert [line.split() for line in lines] == [
        ["ai."],
        ["onnx.", "ai."],
        ["preview.", "onnx."],
        ["name", "training", "ml"],
        ["─" * 25],
        ["onnx-1.7", "1", "12"],
    ]
