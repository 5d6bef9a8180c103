"""Plans of files with their cost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from opshift.converter.cost import plan_with_cost
from opshift.converter.options import Options
from opshift.converter.report import Report
from opshift.converter.streaming.convert_file import convert_file
from opshift.converter.streaming.weights import open_without_weights


def _write(path: Path, opset: int, elements: int, *nodes: onnx.NodeProto) -> Path:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [elements]) for name in "xy"]
    weight = numpy_helper.from_array(np.ones(elements, np.float32), "w")
    added = helper.make_node("Add", ["x", "w"], ["a"])
    graph = helper.make_graph([added, *nodes], "cost", values[:1], values[1:], [weight])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)
    return path


def _clips(path: Path, elements: int) -> Path:
    node = helper.make_node
    return _write(
        path, 10, elements, node("Clip", ["a"], ["b"], max=1.0), node("Clip", ["b"], ["y"], min=0.0)
    )


def _plan(path: Path, target: int) -> Report:
    with open_without_weights(path) as model:
        return plan_with_cost(model, Options.of(target, inplace=True), path.stat().st_size)


@pytest.mark.parametrize("elements", [3, 1 << 19], ids=["small", "streamed"])
@pytest.mark.parametrize("target", [10, 13, 21])
def test_plan_has_the_sizes_and_nodes_of_the_conversion(tmp_path: Path, elements: int, target: int) -> None:
    path = _clips(tmp_path / "in.onnx", elements)
    planned, converted = _plan(path, target), convert_file(path, tmp_path / "out.onnx", target)
    assert planned.sizes == converted.sizes
    assert (planned.nodes, planned.changed) == (converted.nodes, converted.changed)


def test_counts_kept_operators(tmp_path: Path) -> None:
    report = _plan(_clips(tmp_path / "in.onnx", 3), 13)
    assert report.kept_operators == report.as_dict()["kept_operators"] == {"ai.onnx.Add": 1}


def _unknown(path: Path) -> Path:
    return _write(path, 18, 3, helper.make_node("Softmx", ["a"], ["y"]))


def _refused(path: Path) -> Path:
    return _write(path, 18, 3, helper.make_node("Sin", ["a"], ["y"]))


@pytest.mark.parametrize("write", [_unknown, _refused])
def test_refused_nodes_are_not_kept(write: Callable[[Path], Path], tmp_path: Path) -> None:
    report = _plan(write(tmp_path / "in.onnx"), 6)
    assert len(report.refusals) == 1
    assert (report.sizes, report.nodes[0]) == (None, 2)
    assert report.kept_operators == {"ai.onnx.Add": report.kept} == {"ai.onnx.Add": 1}
