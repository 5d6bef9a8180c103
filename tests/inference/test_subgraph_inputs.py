"""Types and shapes of subgraph inputs that the node determines and the subgraph does not declare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.execution import build

from opshift.inference.scope import Scope
from opshift.model.node import Tensor

ScopeFactory = Callable[..., Scope]
FEEDS: dict[str, Any] = {"s": np.zeros((2, 1), np.float16), "x": np.zeros((5, 3), np.float64)}


def _body_scope(node: onnx.NodeProto, scope_of: ScopeFactory, opset: int = 13) -> Scope:
    """Return the scope of the body of the only node."""
    model = build([node], FEEDS, [], opset)
    model.graph.input.append(helper.make_tensor_sequence_value_info("q", TensorProto.INT32, None))
    scope = scope_of(model.graph, model.opset_import)
    body = next(each.g for each in model.graph.node[0].attribute if each.name == "body")
    return scope.child(body)


def _node_with_body(op_type: str, inputs: list[str], names: str, **attributes: Any) -> onnx.NodeProto:
    """Return a node with a body that forwards all its inputs, named by single letters."""
    values = [onnx.ValueInfoProto(name=name) for name in names]
    nodes = [helper.make_node("Identity", [name], [f"{name}2"]) for name in names]
    body = helper.make_graph(nodes, "body", values, [onnx.ValueInfoProto(name=f"{n}2") for n in names])
    result: onnx.NodeProto = helper.make_node(op_type, inputs, ["y"], body=body, **attributes)
    return result


@pytest.mark.parametrize(
    ("node", "opset", "types", "shapes"),
    [
        pytest.param(
            _node_with_body("Loop", ["", "", "s", "x"], "abcd"),
            13,
            ["int64", "bool", "float16", "double"],
            [(), (), None, None],
            id="Loop, where states may change shape",
        ),
        pytest.param(
            _node_with_body("Scan", ["s", "x"], "ab", num_scan_inputs=1),
            13,
            ["float16", "double"],
            [(2, 1), (3,)],
            id="Scan over rows",
        ),
        pytest.param(
            _node_with_body("Scan", ["s", "x"], "ab", num_scan_inputs=1, scan_input_axes=[-1]),
            13,
            ["float16", "double"],
            [(2, 1), (5,)],
            id="Scan over columns",
        ),
        pytest.param(
            _node_with_body("Scan", ["", "s", "x"], "ab", num_scan_inputs=1),
            8,
            ["float16", "double"],
            [(1,), ()],
            id="Scan with batches",
        ),
        pytest.param(
            _node_with_body("SequenceMap", ["q", "x"], "ab"),
            17,
            ["int32", "double"],
            [None, (5, 3)],
            id="SequenceMap over a sequence and a tensor",
        ),
        pytest.param(
            _node_with_body("If", ["x"], "a"),
            13,
            [None],
            [None],
            id="If, which passes nothing",
        ),
    ],
)
def test_infers_subgraph_inputs(
    node: onnx.NodeProto,
    opset: int,
    types: list[str],
    shapes: list[tuple[int, ...] | None],
    scope_of: ScopeFactory,
) -> None:
    body = _body_scope(node, scope_of, opset)
    graph = next(each.g for each in node.attribute if each.name == "body")
    names = [value.name for value in graph.input]
    assert [body.element_type(f"{name}2") for name in names] == types
    assert [body.shape(f"{name}2") for name in names] == shapes


def test_declared_types_take_precedence(scope_of: ScopeFactory) -> None:
    node = _node_with_body("Loop", ["", "", "s"], "abc")
    body = node.attribute[0].g
    body.input[2].CopyFrom(helper.make_tensor_value_info("c", TensorProto.FLOAT16, [None, 1]))
    scope = _body_scope(node, scope_of)
    assert (scope.element_type("c"), scope.shape("c")) == ("float16", (None, 1))


def test_nodes_pass_no_values_to_initializers(scope_of: ScopeFactory) -> None:
    node = _node_with_body("Scan", ["s", "x"], "wab", num_scan_inputs=1)
    node.attribute[0].g.initializer.add(name="w", data_type=TensorProto.INT32, dims=[2], int32_data=[1, 2])
    scope = _body_scope(node, scope_of)
    assert [scope.element_type(name) for name in "wab"] == ["int32", "float16", "double"]
    assert [scope.shape(name) for name in "wab"] == [(2,), (2, 1), (3,)]
    assert scope.constant("w") == Tensor("int32", (2,), (1, 2))


def test_input_without_a_source_is_unknown(scope_of: ScopeFactory) -> None:
    scope = _body_scope(_node_with_body("Loop", ["", ""], "abc"), scope_of)
    assert (scope.element_type("c"), scope.shape("c")) == (None, None)
