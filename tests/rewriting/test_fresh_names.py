"""New names are unused in every graph of the model and found in few steps."""

from __future__ import annotations

import sys
from typing import Any

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from opshift import convert_version
from opshift.rewriting.workspace import FreshNames


def names_with(*used: set[str]) -> FreshNames:
    names = FreshNames()
    names.sources.append(lambda: used)
    return names


def test_returns_an_unused_hint_unchanged() -> None:
    assert names_with().fresh("const") == "const"


def test_numbers_repeated_hints() -> None:
    names = names_with()
    assert [names.fresh("const") for _ in range(3)] == ["const", "const_1", "const_2"]
    assert names.fresh("shape") == "shape"


def test_skips_used_names() -> None:
    names = names_with({"const", "const_2"}, {"const_1", "x"})
    assert [names.fresh("const") for _ in range(3)] == ["const_3", "const_4", "const_5"]


def test_distinguishes_numbered_hints() -> None:
    names = names_with({"const"})
    results = [names.fresh(hint) for hint in ("const_1", "const", "const_1", "const")]
    assert len(set(results)) == 4


def test_skips_mentioned_names() -> None:
    names = names_with({"const"})
    names.sources.append(lambda: [["const_1"]])
    assert names.fresh("const") == "const_2"


@pytest.mark.parametrize("target", [17, 20])
def test_new_values_have_no_stale_value_info(target: int) -> None:
    """Optimizers keep the value_info of values that they remove by fusion."""
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
    new = {name for node in result.graph.node for name in node.output}
    new |= {each.name for each in result.graph.initializer}
    assert not new & {value.name for value in stale}


def test_used_names_may_grow_before_the_first_request() -> None:
    """The survey of a model fills the sets before the first name is requested."""
    growing: set[str] = set()
    names = names_with(growing)
    growing.add("const")
    assert names.fresh("const") == "const_1"


NAME = st.sampled_from(["a", "a_1", "a_2", "a_1_1", "b", "a_"])


@pytest.mark.full
@given(st.lists(st.sets(NAME), max_size=3), st.lists(NAME, max_size=12))
@settings(max_examples=200, derandomize=True)
def test_returns_no_name_twice(used: list[set[str]], hints: list[str]) -> None:
    names = names_with(*used)
    results = [names.fresh(hint) for hint in hints]
    assert len(set(results)) == len(results)
    assert not set(results) & set().union(*used)
    assert all(name.startswith(hint) for name, hint in zip(results, hints, strict=True))


def test_cost_per_name_is_constant() -> None:
    """Counted in executed lines: 4,000 names take four times as many as 1,000."""
    assert count_lines(4_000) < 4.2 * count_lines(1_000)


def count_lines(count: int) -> int:
    names = names_with({f"const_{i}" for i in range(count)})
    lines = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    previous = sys.gettrace()  # that of coverage
    sys.settrace(trace)
    try:
        for _ in range(count):
            names.fresh("const")
    finally:
        sys.settrace(previous)
    return lines
