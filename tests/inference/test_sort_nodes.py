"""Nodes that are only out of order are sorted, and the report contains the repair."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper
from support.execution import assert_equal, build, op_types, run

from opshift.converter.convert import convert, convert_version, plan_version
from opshift.converter.refusals import ConversionRefused
from opshift.converter.streaming.convert_file import convert_file
from opshift.model.errors import InvalidModel

X = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
FEEDS = {"x": X, "yes": np.array(True)}
SORTED = "the nodes were not in topological order, and are sorted"


def node(op_type: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> NodeProto:
    result: NodeProto = helper.make_node(op_type, inputs, outputs, **attributes)
    return result


def graph(name: str, nodes: Sequence[NodeProto], output: str) -> onnx.GraphProto:
    value = helper.make_tensor_value_info(output, TensorProto.FLOAT, [2, 3])
    result: onnx.GraphProto = helper.make_graph(nodes, name, [], [value])
    return result


CHAIN = [
    node("Clip", ["x"], ["a"], min=-1.0, max=1.0),
    node("Relu", ["a"], ["b"]),
    node("Add", ["a", "b"], ["c"]),
    node("Neg", ["c"], ["d"]),
    node("Softmax", ["d"], ["y"]),
]


def branching(*, swapped_main: bool, swapped_inner: bool) -> onnx.ModelProto:
    """Build a model with branches that read a value of the main graph."""
    then = [node("Relu", ["h"], ["t1"]), node("Clip", ["t1"], ["t"], max=1.0, min=0.0)]
    other = [node("Neg", ["h"], ["e"])]
    branches = {
        "then_branch": graph("then", then[::-1] if swapped_inner else then, "t"),
        "else_branch": graph("else", other, "e"),
    }
    nodes = [node("Abs", ["x"], ["h"]), node("If", ["yes"], ["y"], **branches)]
    return build(nodes[::-1] if swapped_main else nodes, FEEDS, ["y"], 6, ir_version=3)


def with_function(*, swapped: bool) -> onnx.ModelProto:
    body = [node("Abs", ["p"], ["h"]), node("Softmax", ["h"], ["q"], axis=1)]
    imports = [helper.make_opsetid("", 11)]
    function = helper.make_function("local", "F", ["p"], ["q"], body[::-1] if swapped else body, imports)
    model = build([node("F", ["x"], ["y"], domain="local")], {"x": X}, ["y"], {"": 11, "local": 1})
    model.functions.append(function)
    return model


PAIRS = {
    "chain backwards": (
        build(CHAIN[::-1], {"x": X}, ["y"], 10), build(CHAIN, {"x": X}, ["y"], 10), ["graph"],
    ),
    "capture of a later value": (
        branching(swapped_main=True, swapped_inner=False),
        branching(swapped_main=False, swapped_inner=False),
        ["graph"],
    ),
    "branch": (
        branching(swapped_main=False, swapped_inner=True),
        branching(swapped_main=False, swapped_inner=False),
        ["graph / If.then_branch"],
    ),
    "graph and branch": (
        branching(swapped_main=True, swapped_inner=True),
        branching(swapped_main=False, swapped_inner=False),
        ["graph / If.then_branch", "graph"],
    ),
    "function": (with_function(swapped=True), with_function(swapped=False), ["function local.F"]),
}  # fmt: skip


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize("target", [13, 17])
@pytest.mark.parametrize(("unsorted", "expected", "places"), PAIRS.values(), ids=PAIRS)
def test_sorts_and_reports(
    unsorted: onnx.ModelProto, expected: onnx.ModelProto, places: list[str], target: int, inplace: bool
) -> None:
    model = onnx.ModelProto.FromString(unsorted.SerializeToString())
    result, report = convert(model, target, inplace=inplace)
    assert result == convert_version(expected, target)
    assert list(report.repairs) == [f"{place}: {SORTED}" for place in places]
    assert model == (result if inplace else unsorted)
    feeds = {each.name: FEEDS[each.name] for each in expected.graph.input}
    assert_equal(run(result, feeds), run(expected, feeds))


@pytest.mark.parametrize("seed", range(20))
def test_sort_is_stable(seed: int) -> None:
    """Nodes without a reason to move keep their order."""
    free = [node("Neg", ["x"], [f"n{position}"]) for position in range(4)]
    shuffled = Random(seed).sample(CHAIN, len(CHAIN))
    model = build([*free[:2], *shuffled, *free[2:]], {"x": X}, ["y", *(f"n{i}" for i in range(4))], 10)
    outputs = [each.output[0] for each in convert_version(model, 17).graph.node]
    assert [each for each in outputs if each in "abcdy"] == list("abcdy")
    assert [each for each in outputs if each.startswith("n")] == ["n0", "n1", "n2", "n3"]
    assert outputs[:2] == ["n0", "n1"]


def test_models_in_order_are_not_reported() -> None:
    assert convert(build(CHAIN, {"x": X}, ["y"], 10), 17).report.repairs == ()


def test_plan_and_files(tmp_path: Path) -> None:
    model = build(CHAIN[::-1], {"x": X}, ["y"], 10)
    before = model.SerializeToString()
    assert plan_version(model, 13).repairs == (f"graph: {SORTED}",)
    assert model.SerializeToString() == before
    (tmp_path / "in.onnx").write_bytes(before)
    report = convert_file(tmp_path / "in.onnx", tmp_path / "out.onnx", 13)
    assert report.repairs == (f"graph: {SORTED}",)
    result = onnx.load(tmp_path / "out.onnx")
    assert_equal(run(result, {"x": X}), run(build(CHAIN, {"x": X}, ["y"], 10), {"x": X}))
    # The same opset: the file is sorted, not copied.
    convert_file(tmp_path / "in.onnx", tmp_path / "same.onnx", 10)
    assert op_types(onnx.load(tmp_path / "same.onnx")) == [each.op_type for each in CHAIN]


def test_refused_model_stays_as_it_is() -> None:
    model = build([node("Relu", ["a"], ["y"]), node("Gelu", ["x"], ["a"])], {"x": X}, ["y"], 10)
    before = model.SerializeToString()
    with pytest.raises(ConversionRefused, match="Gelu"):
        convert_version(model, 13, inplace=True)
    assert model.SerializeToString() == before


CYCLES = {
    "two nodes": ([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Neg", ["b"], ["y"])], 2),
    "own output": ([node("Add", ["x", "y"], ["y"])], 1),
    "through a branch": (
        [
            node(
                "If", ["yes"], ["a"],
                then_branch=graph("then", [node("Neg", ["b"], ["t"])], "t"),
                else_branch=graph("else", [node("Neg", ["x"], ["e"])], "e"),
            ),
            node("Relu", ["a"], ["b"]),
            node("Relu", ["b"], ["y"]),
        ],
        2,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("nodes", "count"), CYCLES.values(), ids=CYCLES)
def test_refuses_cycles(nodes: list[NodeProto], count: int) -> None:
    with pytest.raises(InvalidModel, match="nodes form a cycle: ") as caught:
        convert_version(build(nodes, FEEDS, ["y"], 11), 13)
    assert caught.value.reason.count("->") == count
    assert str(caught.value.place) == "graph"


def test_value_of_an_enclosing_graph_is_not_rebound() -> None:
    """Sorting must not let a node read a later value of the same graph instead of an outer one."""
    then = [node("Neg", ["h"], ["t"]), node("Abs", ["x"], ["h"])]
    branches = {
        "then_branch": graph("then", then, "t"),
        "else_branch": graph("else", [node("Neg", ["h"], ["e"])], "e"),
    }
    nodes = [node("If", ["yes"], ["y"], **branches), node("Relu", ["x"], ["h"])]
    with pytest.raises(InvalidModel, match="defined again"):
        convert_version(build(nodes, FEEDS, ["y"], 11), 13)


def test_removes_dead_nodes_that_read_undefined_values() -> None:
    dead = [node("Relu", ["missing"], ["u"]), node("Neg", ["u"], ["v"]), node("Abs", ["x"], ["kept"])]
    model = build([*dead, *CHAIN], {"x": X}, ["y"], 10)
    result, report = convert(model, 13)
    assert op_types(result) == ["Abs", *(each.op_type for each in CHAIN)]
    assert [each.split(":")[0] for each in report.repairs] == [
        "graph, node Relu -> u",
        "graph, node Neg -> v",
    ]
    assert_equal(run(result, {"x": X}), run(build(CHAIN, {"x": X}, ["y"], 10), {"x": X}))


def test_removes_dead_nodes_in_branches() -> None:
    model = branching(swapped_main=False, swapped_inner=False)
    model.graph.node[1].attribute[0].g.node.append(node("Relu", ["missing"], ["u"]))
    result, report = convert(model, 13)
    assert len(report.repairs) == 1
    expected = branching(swapped_main=False, swapped_inner=False)
    assert result == convert_version(expected, 13)


def test_refuses_undefined_values_that_an_output_depends_on() -> None:
    nodes = [node("Relu", ["missing"], ["a"]), node("Add", ["a", "x"], ["y"])]
    with pytest.raises(InvalidModel, match="'missing' is not produced by any node"):
        convert_version(build(nodes, {"x": X}, ["y"], 10), 13)
