"""New names: none is there already, in any graph of the model, and each is found in a few steps."""

from __future__ import annotations

import sys
from typing import Any

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from opshift import convert_version
from opshift.model.fresh_names import FreshNames


def names(*taken: set[str]) -> FreshNames:
    made = FreshNames()
    made.name_sets.extend(taken)
    return made


def test_a_free_name_is_taken_as_it_is() -> None:
    assert names().fresh("const") == "const"


def test_names_are_numbered() -> None:
    made = names()
    assert [made.fresh("const") for _ in range(3)] == ["const", "const_1", "const_2"]
    assert made.fresh("shape") == "shape"


def test_names_that_are_there_are_left_out() -> None:
    made = names({"const", "const_2"}, {"const_1", "x"})
    assert [made.fresh("const") for _ in range(3)] == ["const_3", "const_4", "const_5"]


def test_a_hint_with_a_number_is_a_hint_of_its_own() -> None:
    made = names({"const"})
    found = [made.fresh(hint) for hint in ("const_1", "const", "const_1", "const")]
    assert len(set(found)) == 4


def test_names_that_are_only_mentioned_are_left_out() -> None:
    made = names({"const"})
    made.mention_sources.append(lambda: ["const_1"])
    assert made.fresh("const") == "const_2"


@pytest.mark.parametrize("target", [17, 20])
def test_what_is_said_of_values_that_are_gone_is_said_of_no_new_one(target: int) -> None:
    """Optimisers leave the value information of what they fuse away."""
    nodes = [helper.make_node("Gelu", ["x"], ["h"], domain=""), helper.make_node("Relu", ["h"], ["y"])]
    stale = [
        helper.make_tensor_value_info(name, onnx.TensorProto.INT64, [7, 7, 7])
        for name in ("mul", "mul_1", "erf", "add", "const", "const_1", "const_2")
    ]
    values = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], value_info=stale)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    result = convert_version(model, target)
    onnx.checker.check_model(result, full_check=True)
    made = {name for node in result.graph.node for name in node.output}
    made |= {each.name for each in result.graph.initializer}
    assert not made & {value.name for value in stale}


def test_a_name_may_be_known_before_the_model_is_looked_at() -> None:
    """The sets fill while the model is surveyed; the first question comes after that."""
    growing: set[str] = set()
    made = names(growing)
    growing.add("const")
    assert made.fresh("const") == "const_1"


NAME = st.sampled_from(["a", "a_1", "a_2", "a_1_1", "b", "a_"])


@given(st.lists(st.sets(NAME), max_size=3), st.lists(NAME, max_size=12))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_no_name_is_given_twice(taken: list[set[str]], hints: list[str]) -> None:
    made = names(*taken)
    found = [made.fresh(hint) for hint in hints]
    assert len(set(found)) == len(found)
    assert not set(found) & set().union(*taken)
    assert all(name.startswith(hint) for name, hint in zip(found, hints, strict=True))


def test_many_names_of_one_hint_cost_no_more_each() -> None:
    """Counted in lines that run: 4,000 names take four times what 1,000 take."""
    assert lines_for(4_000) < 4.2 * lines_for(1_000)


def lines_for(count: int) -> int:
    made = names({f"const_{i}" for i in range(count)})
    lines = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    sys.settrace(trace)
    try:
        for _ in range(count):
            made.fresh("const")
    finally:
        sys.settrace(None)
    return lines
