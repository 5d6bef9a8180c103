"""What bodies are handed by the nodes that hold them, where they do not state it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.running import build

from opshift.inference.scope import Scope

Scoping = Callable[..., Scope]
FEEDS: dict[str, Any] = {"s": np.zeros((2, 1), np.float16), "x": np.zeros((5, 3), np.float64)}


def _held(node: onnx.NodeProto, scope_of: Scoping, opset: int = 13) -> Scope:
    """The scope of the body of the only node."""
    model = build([node], FEEDS, [], opset)
    model.graph.input.append(helper.make_tensor_sequence_value_info("q", TensorProto.INT32, None))
    scope = scope_of(model.graph, model.opset_import)
    body = next(each.g for each in model.graph.node[0].attribute if each.name == "body")
    return scope.child(body)


def _node(op_type: str, inputs: list[str], names: str, **attributes: Any) -> onnx.NodeProto:
    """A node whose body passes on all that it is handed, under names of one letter."""
    values = [onnx.ValueInfoProto(name=name) for name in names]
    nodes = [helper.make_node("Identity", [name], [f"{name}2"]) for name in names]
    body = helper.make_graph(nodes, "body", values, [onnx.ValueInfoProto(name=f"{n}2") for n in names])
    made: onnx.NodeProto = helper.make_node(op_type, inputs, ["y"], body=body, **attributes)
    return made


@pytest.mark.parametrize(
    ("node", "opset", "types", "shapes"),
    [
        pytest.param(
            _node("Loop", ["", "", "s", "x"], "abcd"),
            13,
            ["int64", "bool", "float16", "double"],
            [(), (), None, None],
            id="a loop, whose states may change their shapes",
        ),
        pytest.param(
            _node("Scan", ["s", "x"], "ab", num_scan_inputs=1),
            13,
            ["float16", "double"],
            [(2, 1), (3,)],
            id="a scan by rows",
        ),
        pytest.param(
            _node("Scan", ["s", "x"], "ab", num_scan_inputs=1, scan_input_axes=[-1]),
            13,
            ["float16", "double"],
            [(2, 1), (5,)],
            id="a scan by columns",
        ),
        pytest.param(
            _node("Scan", ["", "s", "x"], "ab", num_scan_inputs=1),
            8,
            ["float16", "double"],
            [(1,), ()],
            id="a scan of batches",
        ),
        pytest.param(
            _node("SequenceMap", ["q", "x"], "ab"),
            17,
            ["int32", "double"],
            [None, (5, 3)],
            id="an element of a sequence, and a tensor",
        ),
    ],
)
def test_inputs_of_bodies(
    node: onnx.NodeProto,
    opset: int,
    types: list[str],
    shapes: list[tuple[int, ...] | None],
    scope_of: Scoping,
) -> None:
    body = _held(node, scope_of, opset)
    names = [value.name for value in body.container.input]
    assert [body.element_type(f"{name}2") for name in names] == types
    assert [body.shape(f"{name}2") for name in names] == shapes


def test_what_is_stated_comes_first(scope_of: Scoping) -> None:
    node = _node("Loop", ["", "", "s"], "abc")
    body = node.attribute[0].g
    body.input[2].CopyFrom(helper.make_tensor_value_info("c", TensorProto.FLOAT16, [None, 1]))
    found = _held(node, scope_of)
    assert (found.element_type("c"), found.shape("c")) == ("float16", (None, 1))


def test_what_no_input_stands_for_is_not_known(scope_of: Scoping) -> None:
    found = _held(_node("Loop", ["", ""], "abc"), scope_of)
    assert (found.element_type("c"), found.shape("c")) == (None, None)
