"""Search for patterns, and removal of the nodes that become unread."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from support.execution import op_types, run

from opshift import convert_version
from opshift.converter.recognition.graph_view import GraphView
from opshift.converter.recognition.search import PatternSearch
from opshift.model.graphs import NodeRecord

FEEDS = {"x": np.array([[-3, -0.5, 0, 2], [1, 0.25, -1, 7]], np.float32)}
OPTIONS: dict[str, Any] = {"recognize": "RMSNormalization", "allow": "approximate"}


def model_of(body: str) -> onnx.ModelProto:
    """Return a model with the body, one node per double space."""
    nodes = "\n".join(body.split("  "))
    return onnx.parser.parse_model(
        f"""
        <ir_version: 10, opset_import: ["" : 24]>
        g (float[N, 4] x) => (float[N, 4] y)
            <int64[1] axes = {{-1}}, float[4] scale = {{1, 2, 3, 4}}, float small = {{1e-6}}>
        {{ {nodes} }}
        """
    )


def normalized(x: str, epsilon: str, y: str) -> str:
    """Return nodes that compute an RMSNormalization, with value names that start with `y`."""
    return (
        f"{y}q = Mul ({x}, {x})  {y}m = ReduceMean <keepdims = 1> ({y}q, axes)  {y}v = Add ({y}m, {epsilon})"
        f"  {y}d = Sqrt ({y}v)  {y}n = Div ({x}, {y}d)  {y} = Mul ({y}n, scale)"
    )


ONE = "RMSNormalization"
"""Operator of the new node."""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # "small" is the name of an initializer, which stays if it is unread before the conversion.
        (f"{normalized('x', 'small', 'z')}  {normalized('z', 'small', 'y')}", [ONE, ONE]),
        (f"{normalized('x', 'small', 'z')}  y = Add (z, small)", [ONE, "Add", "small"]),
        (f"c = Constant <value_float = 1e-6> ()  {normalized('x', 'c', 'y')}", [ONE, "small"]),
        (
            f"c = Constant <value_float = 1e-6> ()  {normalized('x', 'c', 'z')}  y = Sub (z, c)",
            ["Constant", ONE, "Sub", "small"],
        ),
        (f"c = Neg (small)  d = Neg (c)  {normalized('x', 'd', 'y')}", [ONE]),
        (
            f"c = Neg (small)  d = Neg (c)  {normalized('x', 'd', 'z')}  y = Add (z, c)",
            ["Neg", ONE, "Add", "small"],
        ),
        (f"{normalized('x', 'small', 'y')}  u = Neg (yd)  v = Exp (u)", [ONE]),
        (f"u = Exp (x)  {normalized('x', 'small', 'y')}", ["Exp", ONE]),
    ],
)
def test_removes_what_becomes_unread(body: str, expected: list[str]) -> None:
    model = model_of(body)
    converted = convert_version(model, **OPTIONS)
    remaining = [each.name for each in converted.graph.initializer if each.name == "small"]
    assert op_types(converted) + remaining == expected
    np.testing.assert_allclose(run(model, FEEDS)[0], run(converted, FEEDS)[0], rtol=1e-5, atol=1e-6)


def read_as_output(model: onnx.ModelProto) -> None:
    model.graph.output.append(onnx.helper.make_tensor_value_info("small", onnx.TensorProto.FLOAT, []))


def read_by_annotation(model: onnx.ModelProto) -> None:
    model.graph.quantization_annotation.add(tensor_name="small")


def read_in_training(model: onnx.ModelProto) -> None:
    output = onnx.helper.make_tensor_value_info("t", onnx.TensorProto.FLOAT, None)
    node = onnx.helper.make_node("Neg", ["small"], ["t"])
    model.training_info.add().algorithm.CopyFrom(onnx.helper.make_graph([node], "a", [], [output]))


def read_by_unread_node(model: onnx.ModelProto) -> None:
    """Add a node that multiplies a matched value by an initializer that callers can override."""
    model.graph.node.append(onnx.helper.make_node("Mul", ["yd", "factor"], ["u"]))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(2), "factor"))
    model.graph.input.append(onnx.helper.make_tensor_value_info("factor", onnx.TensorProto.FLOAT, []))


@pytest.mark.parametrize(
    ("add_reader", "kept"),
    [
        (read_as_output, "small"),
        (read_by_annotation, "small"),
        (read_in_training, "small"),
        (read_by_unread_node, "factor"),
    ],
)
def test_keeps_initializers(add_reader: Callable[[onnx.ModelProto], None], kept: str) -> None:
    model = model_of(normalized("x", "small", "y"))
    add_reader(model)
    converted = convert_version(model, **OPTIONS)
    assert op_types(converted) == [ONE]
    assert kept in [each.name for each in converted.graph.initializer]
    onnx.checker.check_model(converted)


def test_asks_only_unread_values_for_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(GraphView, "is_auxiliary", lambda view, name: asked.append(name))
    model = model_of(f"w = Mul (scale, scale)  z = Add (x, w)  {normalized('z', 'small', 'y')}")
    assert ONE in op_types(convert_version(model, **OPTIONS))
    assert asked == []


def test_searches_equal_layers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []
    search = PatternSearch._search  # pyright: ignore[reportPrivateUsage]

    def recorded_search(self: PatternSearch, record: NodeRecord, *arguments: Any) -> Any:
        searched.append(record[2])
        return search(self, record, *arguments)

    monkeypatch.setattr(PatternSearch, "_search", recorded_search)
    counts = []
    for layers in (2, 6, 6):
        names = ["x", *(f"v{number}" for number in range(1, layers)), "y"]
        # No pattern contains an Abs: the neighborhood of a node ends at the next Abs.
        body = "  ".join(f"r{y} = Abs ({x})  {normalized(f'r{y}', 'small', y)}" for x, y in pairwise(names))
        before = len(searched)
        assert op_types(convert_version(model_of(body), **OPTIONS)) == ["Abs", ONE] * layers
        counts.append(len(searched) - before)
    assert counts[1:] == [0, 0]
