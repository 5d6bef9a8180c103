"""Limits on calls of local functions: facts within them, and errors that name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from onnx import helper, numpy_helper
from support.calls import FEEDS, X, call, function, model, node, with_references
from support.calls import INT as INTEGER
from support.execution import assert_equal, run

from opshift.analysis.infer import infer
from opshift.converter.convert import convert_version, plan_version
from opshift.inference import function_scope
from opshift.model.errors import InvalidModel
from opshift.runtimes import called_functions

if TYPE_CHECKING:
    import onnx


def layers(count: int, size: int, *nodes: onnx.NodeProto) -> onnx.ModelProto:
    """Return a model with calls of a function with `size` nodes, each call with another bias.

    Each Softmax between the calls depends on the shape of the result. `nodes` call the function `G`.
    """
    body = [node("Add", ["a", "w"], ["v1"])]
    body += [node("Relu", [f"v{number}"], [f"v{number + 1}"]) for number in range(1, size - 1)]
    body.append(node("Identity", [f"v{size - 1}"], ["b"]))
    found, value = list(nodes), "x"
    for number in range(count):
        found += [
            call("L", [value, f"w{number}"], [f"h{number}"]),
            node("Softmax", [f"h{number}"], [f"s{number}"]),
        ]
        found[-1].attribute.add(name="axis", i=1, type=INTEGER)
        value = f"s{number}"
    functions = [function("L", body, 13, inputs=("a", "w"))]
    if nodes:
        functions.append(
            function("G", [node("Softmax", ["a"], ["t"], axis=0), node("Abs", ["t"], ["b"])], 13)
        )
    weights = {f"w{number}": np.full(4, number, np.float32) for number in range(count)}
    outputs = [value, *(each.output[0] for each in nodes)]
    return model(found, functions, 13, outputs=outputs, initializers=weights)


def limit(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(function_scope, "MIN_INFERRED_NODES", count)
    monkeypatch.setattr(function_scope, "INFERENCES_PER_NODE", 0)


def test_facts_of_known_calls_remain_in_the_next_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """The calls of `G` need copies, so that the model is planned twice."""
    limit(monkeypatch, 95)
    tested = layers(10, 10, call("G", ["x"], ["y1"]), call("G", ["w0"], ["y2"]))
    converted = convert_version(tested, 11)
    assert_equal(run(converted, FEEDS), run(tested, FEEDS))


def test_converts_many_calls_that_differ_of_a_large_function() -> None:
    assert len(convert_version(layers(100, 300), 11).functions) == 1


def test_converts_many_calls_in_a_branch() -> None:
    """The limit on inferences counts the nodes of branches."""
    tested = layers(300, 2)
    branch = helper.make_graph(tested.graph.node, "b", [], tested.graph.output)
    del tested.graph.node[:]
    condition = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.array(True)))
    choice = node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    tested.graph.node.extend([condition, choice])
    tested.graph.output[0].name = "y"
    assert not plan_version(tested, 11).refusals


def test_remedy_names_the_limit_on_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, 50)
    refusals = plan_version(layers(10, 10), 11).refusals
    assert [each.place for each in refusals] == [
        f"graph, node Softmax -> s{number}" for number in range(6, 10)
    ]
    for each in refusals:
        assert each.remedy.startswith("inline the functions, which have too many")
        assert "declare" not in each.remedy


@pytest.mark.parametrize("axes", [(0, 1), (1, 1)], ids=["different", "equal"])
def test_remedy_names_the_limit_on_copies(axes: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, 0)
    softmax = with_references(node("Softmax", ["a"], ["b"]), axis=("axis", INTEGER))
    calls = [call("F", ["x"], [f"y{number}"], axis=axis) for number, axis in enumerate(axes)]
    tested = model(calls, [function("F", [softmax], 11, attributes=["axis"])], outputs=["y0", "y1"])
    remedies = [each.remedy for each in plan_version(tested, 13).refusals]
    is_equal = axes[0] == axes[1]
    assert not remedies if is_equal else remedies[0].startswith("inline the functions, which have too many")


def test_infers_many_calls_that_differ_of_a_large_function() -> None:
    assert infer(layers(60, 1000)).graphs["graph"]["s59"].shape == X.shape


def test_errors_name_the_limit_that_is_exceeded(monkeypatch: pytest.MonkeyPatch) -> None:
    functions = [function(f"F{number}", [call(f"F{number + 1}", ["a"], ["b"])]) for number in range(41)]
    functions.append(function("F41", [node("Relu", ["a"], ["b"])]))
    with pytest.raises(InvalidModel) as caught:
        infer(model([call("F0", ["x"], ["y"])], functions))
    assert caught.value.reason == "calls of functions are nested more than 40 deep"
    monkeypatch.setattr(called_functions, "MIN_CALLED_NODES", 0)
    monkeypatch.setattr(called_functions, "CALLED_NODES_PER_NODE", 1)
    with pytest.raises(InvalidModel) as caught:
        infer(layers(10, 10))
    assert caught.value.reason == "functions have more than 30 nodes, counted for each call that differs"
