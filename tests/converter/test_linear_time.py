"""The work of a conversion is linear in the model size: four times the nodes, four times the calls.

The tests count function calls in Python and in C; they measure no time.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper
from support.execution import build

from opshift.analysis.infer import infer
from opshift.analysis.runs import runs
from opshift.checker.check import check
from opshift.converter.convert import convert, plan_version, plan_with
from opshift.converter.options import Options
from opshift.converter.report import Report
from opshift.inference.shared_facts import SharedFacts
from opshift.model.errors import OpshiftError

X = np.ones((1, 4, 8), np.float32)
SMALL, LARGE = 1_000, 4_000
SLACK = 1.05
"""Tolerance for costs such as the growth of lists."""


def node(op_type: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> NodeProto:
    result: NodeProto = helper.make_node(op_type, inputs, outputs, **attributes)
    return result


def chain(step: Callable[[int, str, str], list[NodeProto]], count: int, opset: int = 9) -> onnx.ModelProto:
    """Return a model of about `count` nodes, each of which reads the one before."""
    nodes: list[NodeProto] = []
    value, number = "x", 0
    while len(nodes) < count:
        nodes += step(number, value, f"v{number}")
        value, number = f"v{number}", number + 1
    return build(nodes, {"x": X, "yes": np.array(True)}, [value], opset)


def unchanged(i: int, a: str, b: str) -> list[NodeProto]:
    return [node(("Relu", "Sigmoid", "Tanh", "Neg")[i % 4], [a], [b])]


def changed(i: int, a: str, b: str) -> list[NodeProto]:
    """Return nodes with steps that query types, ranks or constants, or emit several nodes."""
    return [
        node("Clip", [a], [b + "c"], min=float(i)),
        node("Unsqueeze", [b + "c"], [b + "u"], axes=[0]),
        node("Softmax", [b + "u"], [b + "s"], axis=1),
        node("ReduceMean", [b + "s"], [b + "m"], axes=[0], keepdims=0),
        node("Pad", [b + "m"], [b + "p"], pads=[0] * 6),
        node("Dropout", [b + "p"], [b]),
    ]


def with_subgraphs(i: int, a: str, b: str) -> list[NodeProto]:
    """Return four nodes, two of them in branches that change and read outer values."""
    bodies = {
        name: helper.make_graph(
            [node("Clip", [a], [b + name[0]], min=0.5)],
            name,
            [],
            [helper.make_tensor_value_info(b + name[0], TensorProto.FLOAT, None)],
        )
        for name in ("then_branch", "else_branch")
    }
    return [node("If", ["yes"], [b + "_"], **bodies), node("Relu", [b + "_"], [b])]


def shapes(i: int, a: str, b: str) -> list[NodeProto]:
    """Return nodes with ranks that depend on the shape of the previous node."""
    return [
        node("Shape", [a], [b + "s"]),
        node("Reshape", [a, b + "s"], [b + "r"]),
        node("Softmax", [b + "r"], [b], axis=2),
    ]


def weighted(count: int) -> onnx.ModelProto:
    """Return a model with one used and one unused weight per node."""
    model = chain(lambda i, a, b: [node("Add", [a, f"w{i}"], [b])], count)
    for i in range(count):
        model.graph.initializer.append(numpy_helper.from_array(np.zeros(1, np.float32), f"w{i}"))
        model.graph.initializer.append(numpy_helper.from_array(np.zeros(1, np.float32), f"unused{i}"))
    return model


def wide(count: int) -> onnx.ModelProto:
    """Return a model with a last node that reads the outputs of all other nodes."""
    nodes = [node("Clip", ["x"], [f"v{i}"], min=0.5) for i in range(count)]
    nodes.append(node("Concat", [f"v{i}" for i in range(count)], ["y"], axis=0))
    return build(nodes, {"x": X}, ["y"], 9)


def with_functions(count: int) -> onnx.ModelProto:
    """Return a model in which each node calls a different function."""
    imports = [helper.make_opsetid("", 9)]
    model = chain(lambda i, a, b: [node(f"F{i}", [a], [b], domain="local")], count // 2)
    model.opset_import.append(helper.make_opsetid("local", 1))
    for i in range(count // 2):
        body = [node("Unsqueeze", ["a"], ["b"], axes=[0])]
        model.functions.append(helper.make_function("local", f"F{i}", ["a"], ["b"], body, imports))
    return model


def with_used_names(count: int) -> onnx.ModelProto:
    """Return a model that already uses the names that new values would have."""
    model = chain(changed, count)
    for i in range(count):
        name = f"const_{i}" if i else "const"
        model.graph.initializer.append(numpy_helper.from_array(np.zeros(1, np.float32), name))
    return model


def count_calls(action: Callable[[], object]) -> int:
    """Return the number of function calls."""
    count = 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


MODELS: list[tuple[str, Callable[[int], onnx.ModelProto]]] = [
    ("kept nodes", lambda n: chain(unchanged, n)),
    ("rewritten nodes", lambda n: chain(changed, n)),
    ("nodes with subgraphs", lambda n: chain(with_subgraphs, n // 2)),
    ("shapes that depend on shapes", lambda n: chain(shapes, n)),
    ("weights", weighted),
    ("node that reads all others", wide),
    ("functions", with_functions),
    ("used names", with_used_names),
]


@pytest.mark.some_cases(1)
@pytest.mark.parametrize("make", [row[1] for row in MODELS], ids=[row[0] for row in MODELS])
def test_work_is_linear(make: Callable[[int], onnx.ModelProto]) -> None:
    small, large = make(SMALL), make(LARGE)
    convert(make(10), 21)  # loads definitions and finds routes, both cached
    few = count_calls(lambda: convert(small, 21))
    many = count_calls(lambda: convert(large, 21))
    assert many < few * (LARGE / SMALL) * SLACK


def test_work_for_refusals_is_linear() -> None:
    def plan(count: int) -> Report:
        model = chain(lambda i, a, b: [node("Nonesuch", [a], [b])], count)
        return Report.of(plan_version(model, 21))

    plan(10)
    few, many = (count_calls(lambda count=count: plan(count)) for count in (SMALL // 4, LARGE // 4))  # type: ignore[misc]  # mypy does not infer the type of a default
    assert many < few * (LARGE / SMALL) * SLACK


def test_work_for_several_targets_is_linear() -> None:
    """Each plan forgets the facts about the values that the one before added, in each subgraph."""

    def plan_all(model: onnx.ModelProto) -> None:
        facts = SharedFacts(model.graph)
        for target in (13, 16, 21):
            plan_with(model, replace(Options.of(target), shared_facts=facts))

    small, large = (chain(with_subgraphs, count) for count in (SMALL // 4, LARGE // 4))
    plan_all(chain(with_subgraphs, 10))
    few, many = (count_calls(lambda model=model: plan_all(model)) for model in (small, large))  # type: ignore[misc]  # mypy does not infer the type of a default
    assert many < few * (LARGE / SMALL) * SLACK


def test_memory_for_training_with_subgraphs_is_linear() -> None:
    """Subgraphs do not copy all names of values that training reads."""

    def peak(count: int) -> int:
        model = chain(with_subgraphs, count, 24)
        training = model.training_info.add().algorithm
        for each in model.graph.node:
            training.node.append(node("Neg", each.output, [f"n{each.output[0]}"]))
        tracemalloc.start()
        try:
            plan_version(model, 24, recognize="Swish")
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(10)
    few, many = peak(SMALL // 10), peak(LARGE // 10)
    assert many < few * (LARGE / SMALL) * SLACK


def differing_calls(count: int) -> onnx.ModelProto:
    """Return a model with `count` calls, all with other attributes, of a function with `count` nodes."""
    calls = [node("f", ["x"], [f"y{i}"], domain="local", axis=i) for i in range(count)]
    model = build(calls, {"x": X}, ["y0"], 9)
    model.opset_import.append(helper.make_opsetid("local", 1))
    del model.graph.input[0].type.tensor_type.shape.dim[:]
    body = [node("Relu", [f"v{i}" if i else "a"], [f"v{i + 1}"]) for i in range(count)]
    body.append(node("Softmax", [f"v{count}"], ["b"]))
    attribute = body[-1].attribute.add(name="axis", ref_attr_name="axis", type=onnx.AttributeProto.INT)
    function = helper.make_function("local", "f", ["a"], ["b"], body, [helper.make_opsetid("", 9)])
    function.attribute.append(attribute.ref_attr_name)
    model.functions.append(function)
    return model


def differing_branches(count: int) -> onnx.ModelProto:
    """Return a model as `differing_calls` does, with a function that has its nodes in branches."""
    model = differing_calls(count)
    function = model.functions[0]
    branch = helper.make_graph(function.node, "b", [], [helper.make_empty_tensor_value_info("b")])
    del function.node[:]
    function.node.append(
        helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.array(True)))
    )
    function.node.append(node("If", ["c"], ["b"], then_branch=branch, else_branch=branch))
    return model


def constant_calls(count: int) -> onnx.ModelProto:
    """Return a model with `count` calls of a function with `count` nodes, all with the same constant."""
    nodes = [node("f", ["w"], [f"y{i}"], domain="local") for i in range(count)]
    nodes.append(node("Resize", ["x", "", "", "sizes"], ["y"]))
    model = build(nodes, {"x": X, "sizes": np.array([1, 4, 8])}, ["y"], 17)
    model.opset_import.append(helper.make_opsetid("local", 1))
    model.graph.initializer.append(numpy_helper.from_array(X, "w"))
    body = [node("Relu", [f"v{i}" if i else "a"], [f"v{i + 1}"]) for i in range(count)]
    imports = [helper.make_opsetid("", 17)]
    model.functions.append(helper.make_function("local", "f", ["a"], [f"v{count}"], body, imports))
    return model


def chain_in_function(count: int) -> onnx.ModelProto:
    """Return a model with a call of a function, which has a chain of values of unknown rank."""
    model = differing_calls(count)
    del model.graph.node[1:]
    model.graph.input[0].type.tensor_type.ClearField("shape")
    return model


def shared_constant(op_type: str, count: int) -> onnx.ModelProto:
    """Return a model with nodes that all read the same integers, as many as there are nodes."""
    attributes = {"to": TensorProto.INT32} if op_type == "Cast" else {}
    inputs = ["w"] if op_type == "Cast" else ["x", "w"]
    nodes = [node(op_type, inputs, [f"v{i}"], **attributes) for i in range(count)]
    model = build(nodes, {"x": X}, ["v0"], 13)
    model.graph.initializer.append(numpy_helper.from_array(np.ones(count, np.int64), "w"))
    return model


def captured_values(count: int) -> onnx.ModelProto:
    """Return nested branches, the last of which reads many values of the main graph."""
    depth = count // 200
    nodes = [node("Relu", [f"v{i}"], [f"w{i}"]) for i in range(count)]
    body = helper.make_graph(nodes, "b", [], [helper.make_empty_tensor_value_info("w0")])
    for _ in range(depth):
        outer = node("If", ["yes"], ["w0"], then_branch=body, else_branch=body.__class__(name="e"))
        body = helper.make_graph([outer], "b", [], [helper.make_empty_tensor_value_info("w0")])
    model = build(list(body.node), {"x": X, "yes": np.array(True)}, ["w0"], 13)
    model.graph.input.extend(
        helper.make_tensor_value_info(f"v{i}", TensorProto.FLOAT, None) for i in range(count)
    )
    return model


def plan_older(model: onnx.ModelProto) -> object:
    return plan_version(model, 10, allow=["approximate"])


def shared_sequence(op_type: str, count: int) -> onnx.ModelProto:
    """Return a model with nodes that all read one sequence, which has as many tensors as there are nodes."""
    inputs = ["s", "i"] if op_type == "SequenceAt" else ["s"]
    attributes = {} if op_type == "SequenceAt" else {"axis": 0}
    nodes = [node("SequenceConstruct", ["x"] * count, ["s"])]
    nodes += [node(op_type, inputs, [f"v{i}"], **attributes) for i in range(count)]
    return build(nodes, {"x": X, "i": np.array(0)}, ["v0"], 12)


def neutral_chain(count: int) -> onnx.ModelProto:
    """Return a model with a chain of nodes that optimizers remove."""
    return chain(lambda i, a, b: [node("Dropout", [a], [b])], count, 12)


LISTS: list[tuple[str, Callable[[int], onnx.ModelProto], Callable[[onnx.ModelProto], object]]] = [
    ("calls that differ", differing_calls, lambda model: plan_version(model, 13)),
    ("calls that differ in runs", differing_calls, infer),
    (
        "calls that differ of functions with branches",
        differing_branches,
        lambda model: plan_version(model, 13),
    ),
    ("calls with a constant", constant_calls, lambda model: runs(model, "onnxruntime-1.20.1")),
    ("chain of unknown ranks in a function", chain_in_function, lambda model: plan_version(model, 13)),
    ("casts of a list", lambda count: shared_constant("Cast", count), check),
    ("shapes in a list", lambda count: shared_constant("Expand", count), check),
    ("values that nested branches capture", captured_values, check),
    ("nodes that optimizers remove", neutral_chain, lambda model: runs(model, "onnxruntime-1.20.1")),
    ("elements of a sequence", lambda count: shared_sequence("SequenceAt", count), plan_older),
    ("joins of a sequence", lambda count: shared_sequence("ConcatFromSequence", count), plan_older),
]
"""Models with two long lists, and calls whose work might be proportional to the product of the lengths."""


@pytest.mark.parametrize(("make", "action"), [row[1:] for row in LISTS], ids=[row[0] for row in LISTS])
def test_work_for_two_long_lists_is_linear(
    make: Callable[[int], onnx.ModelProto],
    action: Callable[[onnx.ModelProto], object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opshift.inference.function_scope.MIN_INFERRED_NODES", 0)
    monkeypatch.setattr("opshift.runtimes.called_functions.MIN_CALLED_NODES", 0)
    monkeypatch.setattr("opshift.inference.facts.MAX_EVALUATED_ELEMENTS", LARGE)
    monkeypatch.setattr("opshift.converter.internal_types.sequence_pass.MAX_WORK", LARGE)

    def count(length: int) -> int:
        model = make(length)
        return count_calls(lambda: _result_or_error(action, model))

    _result_or_error(action, make(10))
    few, many = count(SMALL // 2), count(LARGE // 2)
    assert many < few * (LARGE / SMALL) * SLACK


def _result_or_error(action: Callable[[onnx.ModelProto], object], model: onnx.ModelProto) -> object:
    try:
        return action(model)
    except OpshiftError as error:
        return error


def test_kept_nodes_cost_few_calls() -> None:
    """Nodes of an unaffected operator are examined together, once."""
    few, many = (count_calls(_conversion_of(chain(unchanged, count))) for count in (SMALL, LARGE))
    assert (many - few) / (LARGE - SMALL) < 10


def _conversion_of(model: onnx.ModelProto) -> Callable[[], object]:
    return lambda: convert(model, 21)
