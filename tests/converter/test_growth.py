"""A conversion does not make a small model too large."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.calls import call, function, model, node
from support.execution import build

from opshift.converter.convert import convert_version
from opshift.converter.refusals import ConversionRefused

if TYPE_CHECKING:
    import onnx

X = np.ones((2, 3), np.float32)
COUNT = 1_400
ROUNDS = [node("Round", ["x"], [f"y{index}"]) for index in range(COUNT)]
"""Opset 10 has no Round; 14 nodes replace each."""


def reasons(before: onnx.ModelProto, target: int, **options: Any) -> set[tuple[str, str]]:
    with pytest.raises(ConversionRefused) as refused:
        convert_version(before, target, **options)
    return {(each.code, each.reason) for each in refused.value.refusals}


def test_limits_the_nodes_that_a_conversion_adds() -> None:
    before = build(ROUNDS, {"x": X}, ("y0",), 11)
    assert reasons(before, 10) == {
        ("limit.exceeded", "the conversion would add more than 16,384 nodes to the model")
    }


def test_a_large_model_may_grow() -> None:
    relus = [node("Relu", ["x"], [f"z{index}"]) for index in range(2 * COUNT)]
    before = build([*ROUNDS, *relus], {"x": X}, ("y0",), 11)
    after = convert_version(before, 10)
    assert len(after.graph.node) > (1 << 14) + len(before.graph.node)


@pytest.mark.parametrize("options", [{"ir_version": 7}, {"without": ["local"]}], ids=str)
def test_limits_the_nodes_of_inlined_functions_after_their_conversion(options: dict[str, Any]) -> None:
    """Each function calls the previous one twice, and its innermost node becomes several."""
    functions = [function("F0", [node("Round", ["a"], ["b"])])]
    for level in range(1, 14):
        twice = [call(f"F{level - 1}", ["a"], ["m"]), call(f"F{level - 1}", ["m"], ["b"])]
        functions.append(function(f"F{level}", twice))
    before = model([call("F13", ["x"], ["y"])], functions)
    (found,) = reasons(before, 10, **options)
    assert found[0] == "limit.exceeded"
    assert found[1].startswith("inlining would produce")


@pytest.mark.parametrize("options", [{"ir_version": 7}, {"without": ["local"]}], ids=str)
def test_limits_the_bytes_of_inlined_functions(options: dict[str, Any]) -> None:
    """Each of 1,000 calls copies 20,000 empty entries of metadata."""
    large = function("F", [node("Relu", ["a"], ["b"])])
    for _ in range(20_000):
        large.node[0].metadata_props.add()
    before = model([call("F", ["x"], [f"y{index}"]) for index in range(1_000)], [large])
    before.graph.output[0].name = "y0"
    found = reasons(before, 18, allow="drop-metadata", **options)
    assert any(
        re.search(r"inlining would produce [\d,]+ bytes, more than 8,388,608", each) for _, each in found
    )


def chain_of_calls(count: int) -> onnx.ModelProto:
    functions = [function(f"F{each}", [call(f"F{each + 1}", ["a"], ["b"])]) for each in range(count - 1)]
    functions.append(function(f"F{count - 1}", [node("Relu", ["a"], ["b"])]))
    return model([call("F0", ["x"], ["y"])], functions)


@pytest.mark.parametrize("field", ["device_configurations", "metadata_props"])
def test_limits_the_bytes_that_nested_calls_inherit(field: str) -> None:
    """Each of 400 functions calls the next one, and all calls inherit 7,000 entries."""
    before = chain_of_calls(400)
    before.ir_version = 11
    name = "configuration_id" if field == "device_configurations" else "key"
    for number in range(7_000):
        getattr(before.graph.node[0], field).add(**{name: f"c{number}"})
    found = reasons(before, 18, without="local")
    assert any(re.search(r"inlining would produce [\d,]+ bytes", each) for _, each in found)
    del getattr(before.graph.node[0], field)[1_000:]
    result = convert_version(before, 18, without="local")
    assert [len(getattr(each, field)) for each in result.graph.node] == [1_000]
