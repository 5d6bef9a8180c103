"""Branches that never run may read undefined values: they are replaced, and the report contains it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper
from support.execution import assert_equal, build, run

from opshift.converter.convert import convert, convert_version
from opshift.converter.streaming.convert_file import convert_file
from opshift.model.errors import InvalidModel

X = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)


def node(op_type: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> NodeProto:
    result: NodeProto = helper.make_node(op_type, inputs, outputs, **attributes)
    return result


def graph(name: str, nodes: Sequence[NodeProto]) -> onnx.GraphProto:
    value = helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
    result: onnx.GraphProto = helper.make_graph(nodes, name, [], [value])
    return result


def branching(*, condition: bool, unused: Sequence[NodeProto], output: str = "y") -> NodeProto:
    """Return an If that adds a large constant to `x`, and has a second branch that never runs."""
    used = graph(
        "used", [node("Clip", ["x"], ["clipped"], min=-1.0), node("Add", ["clipped", "w"], ["used"])]
    )
    used.initializer.append(numpy_helper.from_array(np.full((1000, 1, 3), 2, np.float32), "w"))
    branches = {f"{condition}": used, f"{not condition}": graph("unused", unused)}
    return node("If", ["cond"], [output], then_branch=branches["True"], else_branch=branches["False"])


UNDEFINED = [node("Relu", ["missing"], ["unused"])]


def model_with(*nodes: NodeProto, condition: bool | None) -> onnx.ModelProto:
    model = build(nodes, {"x": X}, ["y"], 10, ir_version=5)
    if condition is not None:
        model.graph.initializer.append(numpy_helper.from_array(np.array(condition), "cond"))
    return model


def initializer(*, condition: bool) -> onnx.ModelProto:
    return model_with(branching(condition=condition, unused=UNDEFINED), condition=condition)


def constant_node(*, condition: bool) -> onnx.ModelProto:
    value = numpy_helper.from_array(np.array([condition]))
    nodes = [node("Constant", [], ["cond"], value=value), branching(condition=condition, unused=UNDEFINED)]
    return model_with(*nodes, condition=None)


def derived(*, condition: bool) -> onnx.ModelProto:
    nodes = [node("Squeeze", ["flags"], ["flag"], axes=[0]), node("Identity", ["flag"], ["cond"])]
    model = model_with(*nodes, branching(condition=condition, unused=UNDEFINED), condition=None)
    model.graph.initializer.append(numpy_helper.from_array(np.array([condition]), "flags"))
    return model


def undefined_output(*, condition: bool) -> onnx.ModelProto:
    return model_with(branching(condition=condition, unused=[]), condition=condition)


def nested(*, condition: bool) -> onnx.ModelProto:
    """Build a model with an If that never runs one branch, in the branch of another If."""
    inner = branching(condition=condition, unused=UNDEFINED, output="inner")
    ones = numpy_helper.from_array(np.ones((1000, 1, 3), np.float32))
    other = [node("Constant", [], ["ones"], value=ones), node("Add", ["x", "ones"], ["other"])]
    branches = {"then_branch": graph("inner", [inner]), "else_branch": graph("other", other)}
    outer = node("If", ["fed"], ["y"], **branches)
    model = model_with(outer, condition=condition)
    model.graph.input.append(helper.make_tensor_value_info("fed", TensorProto.BOOL, []))
    return model


def inside_unused_branch(*, condition: bool) -> onnx.ModelProto:
    inner = branching(condition=not condition, unused=UNDEFINED, output="unused")
    return model_with(branching(condition=condition, unused=[inner]), condition=condition)


def in_function(*, condition: bool) -> onnx.ModelProto:
    nodes = constant_node(condition=condition).graph.node
    model = model_with(node("F", ["x"], ["y"], domain="local"), condition=None)
    model.opset_import.add(domain="local", version=1)
    imports = [helper.make_opsetid("", 10)]
    model.functions.append(helper.make_function("local", "F", ["x"], ["y"], nodes, imports))
    model.ir_version = 8
    return model


FORMS = (initializer, constant_node, derived, undefined_output, nested, inside_unused_branch, in_function)


@pytest.mark.parametrize("condition", [True, False])
@pytest.mark.parametrize("target", [9, 10, 13])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_replaces_branches_that_never_run(
    form: Callable[..., onnx.ModelProto], target: int, condition: bool
) -> None:
    model = form(condition=condition)
    feeds = {"x": X, "fed": np.array(True)} if form is nested else {"x": X}
    result, report = convert(model, target, ir_version="keep")
    assert_equal(run(result, feeds), [np.maximum(X, -1) + np.full((1000, 1, 3), 2, np.float32)])
    (repair,) = report.repairs
    unused, used = ("else_branch", "then_branch") if condition else ("then_branch", "else_branch")
    value = "unused" if form is undefined_output else "missing"
    assert repair.endswith(
        f": {unused} never runs and reads the undefined value '{value}'; it is replaced by {used}"
    )


def test_writes_files_with_replaced_branches(tmp_path: Path) -> None:
    onnx.save(initializer(condition=True), tmp_path / "in.onnx")
    convert_file(tmp_path / "in.onnx", tmp_path / "out.onnx", 13)
    expected = np.maximum(X, -1) + np.full((1000, 1, 3), 2, np.float32)
    assert_equal(run(onnx.load(tmp_path / "out.onnx"), {"x": X}), [expected])


def test_refuses_undefined_values_in_branches_that_may_run() -> None:
    fed = initializer(condition=True)
    fed.graph.input.append(helper.make_tensor_value_info("cond", TensorProto.BOOL, []))
    in_used_branch = initializer(condition=True)
    del in_used_branch.graph.initializer[:]
    in_used_branch.graph.initializer.append(numpy_helper.from_array(np.array(False), "cond"))
    for model in (fed, in_used_branch):
        with pytest.raises(InvalidModel, match="'missing' is not produced by any node"):
            convert_version(model, 13)
