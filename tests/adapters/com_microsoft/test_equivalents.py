"""Nodes of ONNX's operators become single nodes of com.microsoft, with equal outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.com_microsoft import DOMAIN, NodeCase, case
from support.execution import Feeds, assert_equal, build, op_types, run
from support.forms import RANKED_FORMS, in_form

from opshift import default_registry
from opshift.adapters.core.equivalents import Equivalent, equivalents
from opshift.converter.convert import convert_with
from opshift.converter.options import Options
from opshift.model.operator_ids import OperatorId
from opshift.registry.steps import Allow

f, i64 = np.float32, np.int64
X = np.random.default_rng(0).normal(size=(2, 3, 4, 6)).astype(f)
GRID = np.random.default_rng(1).uniform(-1.3, 1.3, (2, 5, 7, 2)).astype(f)
COSINES, SINES = np.cos(X[:, :, :, :4].reshape(-1, 4)[:7]), np.sin(X[:, :, :, :4].reshape(-1, 4)[:7])
HEADS = np.random.default_rng(2).normal(size=(2, 3, 5, 8)).astype(f)
POSITIONS = np.array([[0, 1, 2, 3, 1], [3, 2, 1, 0, 0]])
ZERO, SCALES = np.uint8(128), np.array([0.1, 0.2, 0.3], f)
CACHES_OF_TOKENS = np.tile(COSINES[None, :5], (2, 1, 1)), np.tile(SINES[None, :5], (2, 1, 1))

CASES: dict[str, tuple[str, int, NodeCase]] = {
    "Gelu": ("Gelu:20", 20, case("Gelu", X)),
    "FastGelu": ("Gelu:20", 22, case("Gelu", X, approximate="tanh")),
    "QuickGelu": ("Swish:24", 24, case("Swish", X)),
    "QuickGelu alpha": ("Swish:24", 24, case("Swish", X, alpha=1.7)),
    "ExpandDims": ("Unsqueeze:13", 17, case("Unsqueeze", X, np.array([1]))),
    "ExpandDims negative": ("Unsqueeze:21", 22, case("Unsqueeze", X, np.array([-2]))),
    "Unique": ("Unique:11", 17, case("Unique", X[0, 0, 0].round(), outputs=[f, None, i64, i64], sorted=0)),
    "Unique values": ("Unique:11", 17, case("Unique", X[0, 0, 0].round(), sorted=0)),
    "Pad": ("Pad:13", 13, case("Pad", X, np.array([0, 0, 1, 2, 0, 0, 0, 1]), f(2))),
    "Pad edge": ("Pad:19", 20, case("Pad", X, np.array([0, 0, 1, 2, 0, 0, 0, 1]), mode="edge")),
    "Trilu": ("Trilu:14", 17, case("Trilu", X, i64(1), upper=0)),
    "Range": ("Range:11", 17, case("Range", i64(2), i64(30), i64(7))),
    "RotaryEmbedding": ("RotaryEmbedding:23", 23, case("RotaryEmbedding", HEADS, COSINES, SINES, POSITIONS)),
    "RotaryEmbedding interleaved": (
        "RotaryEmbedding:23", 24, case("RotaryEmbedding", HEADS, COSINES, SINES, POSITIONS, interleaved=1)
    ),
    "RotaryEmbedding partial": (
        "RotaryEmbedding:23", 23,
        case("RotaryEmbedding", HEADS, COSINES[:, :2], SINES[:, :2], POSITIONS, rotary_embedding_dim=4),
    ),
    "QuantizeLinear": ("QuantizeLinear:13", 13, case("QuantizeLinear", X, f(0.1), ZERO, outputs=[np.uint8])),
    "QuantizeLinear axis": (
        "QuantizeLinear:19", 19,
        case("QuantizeLinear", X, SCALES, np.array([1, 2, 3], np.int8), outputs=[np.int8]),
    ),
    "DequantizeLinear": (
        "DequantizeLinear:13", 17,
        case("DequantizeLinear", X.astype(np.int8), f(0.1), np.int8(3), outputs=[f]),
    ),
    "FusedMatMul": ("MatMul:13", 17, case("MatMul", X, X.swapaxes(2, 3).copy())),
    "FusedConv": ("Conv:11", 17, case("Conv", X, X[:, :, :2, :3].copy(), pads=[1, 1, 1, 1], strides=[2, 1])),
}  # fmt: skip
for _opset, _names in ((16, ("bilinear", "nearest", "bicubic")), (20, ("linear", "nearest", "cubic"))):
    for _mode in _names:
        for _padding in ("zeros", "border", "reflection"):
            _sample = case("GridSample", X, GRID, mode=_mode, padding_mode=_padding, align_corners=1)
            CASES[f"GridSample {_opset} {_mode} {_padding}"] = (f"GridSample:{_opset}", _opset, _sample)


def _model(given: NodeCase, form: str, opset: int) -> tuple[onnx.ModelProto, Feeds]:
    feeds = {f"x{index}": each for index, each in enumerate(given.inputs) if each is not None}
    outputs = {
        f"y{index}": helper.np_dtype_to_tensor_dtype(np.dtype(each))
        for index, each in enumerate(given.outputs)
        if each is not None
    }
    names = [f"y{index}" if each is not None else "" for index, each in enumerate(given.outputs)]
    node = helper.make_node(given.op_type, list(feeds), names, name="node", **given.attributes)
    return in_form(form, [node], feeds, outputs, opset)


def _replaced(
    model: onnx.ModelProto, operator: str, replacement: str, allow: Sequence[Allow] = ()
) -> onnx.ModelProto:
    pair = Equivalent(OperatorId.parse(operator), OperatorId(DOMAIN, replacement, 1))
    assert pair in equivalents(default_registry(), DOMAIN)[pair.operator]
    options = replace(Options.of(None, ir_version="keep", allow=allow), without=frozenset({pair}))
    result, _ = convert_with(model, options)
    return result


@pytest.mark.parametrize("form", RANKED_FORMS)
@pytest.mark.parametrize("name", CASES)
def test_one_node_with_the_same_outputs(name: str, form: str) -> None:
    operator, opset, given = CASES[name]
    replacement = name.partition(" ")[0]
    if replacement == "ExpandDims" and form in ("fed", "symbolic", "computed", "function", "branch"):
        pytest.skip("axes have to be constant")
    if (name, form) == ("RotaryEmbedding partial", "symbolic"):
        pytest.skip("the number of heads has to be known")
    model, feeds = _model(given, form, opset)
    result = _replaced(model, operator, replacement, ["approximate"] if replacement == "Unique" else [])
    imports = [each for proto in (result, *result.functions) for each in proto.opset_import]
    assert {each.version for each in imports if each.domain == DOMAIN} == {1}
    found = [node for node in _nodes(result) if node.domain == DOMAIN]
    assert {node.op_type for node in found} == {replacement}
    assert all(node.name.startswith("node") for node in found)
    assert operator.partition(":")[0] not in {node.op_type for node in _nodes(result) if not node.domain}
    assert_equal(run(result, feeds), run(model, feeds))


def _nodes(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    graphs: list[Any] = [model.graph, *model.functions]
    nodes = [node for graph in graphs for node in graph.node]
    return [*nodes, *(inner for node in nodes for each in node.attribute for inner in each.g.node)]


OTHERS: list[tuple[str, int, NodeCase, str]] = [
    ("Unsqueeze:13", 17, case("Unsqueeze", X, np.array([0, 1])), "ExpandDims"),
    ("Unique:11", 17, case("Unique", X[0, 0, 0]), "Unique"),
    ("Unique:11", 17, case("Unique", X, sorted=0), "Unique"),
    ("Unique:11", 17, case("Unique", X[0, 0, 0], sorted=0), "Unique"),
    ("Unique:11", 17, case("Unique", X[0, 0, 0], outputs=[f, i64], sorted=0), "Unique"),
    ("Gelu:20", 20, case("Gelu", X, approximate="tanh"), "Gelu"),
    ("Gelu:20", 20, case("Gelu", X), "FastGelu"),
    ("Pad:19", 20, case("Pad", X, np.array([1] * 8), mode="wrap"), "Pad"),
    ("RotaryEmbedding:23", 23, case("RotaryEmbedding", HEADS, *CACHES_OF_TOKENS), "RotaryEmbedding"),
    (
        "RotaryEmbedding:23",
        23,
        case("RotaryEmbedding", HEADS, COSINES[:4], SINES[:4], POSITIONS),
        "RotaryEmbedding",
    ),
]


@pytest.mark.parametrize(("operator", "opset", "given", "replacement"), OTHERS)
def test_keeps_nodes_that_the_replacement_does_not_compute(
    operator: str, opset: int, given: NodeCase, replacement: str
) -> None:
    model, _ = _model(given, "initializer", opset)
    assert _replaced(model, operator, replacement).graph == model.graph


def test_uses_the_first_equivalent_that_computes_a_node() -> None:
    nodes = [
        helper.make_node("Gelu", ["x"], ["exact"]),
        helper.make_node("Gelu", ["exact"], ["y"], approximate="tanh"),
    ]
    model = build(nodes, {"x": X}, ["y"], 20)
    without = frozenset(equivalents(default_registry(), DOMAIN)[OperatorId.parse("Gelu:20")])
    result, _ = convert_with(model, replace(Options.of(None, ir_version="keep"), without=without))
    assert op_types(result) == ["Gelu", "FastGelu"]
    assert_equal(run(result, {"x": X}), run(model, {"x": X}))


def test_replaces_nodes_that_the_target_lacks() -> None:
    model, feeds = _model(CASES["RotaryEmbedding"][2], "fed", 23)
    pair = Equivalent(OperatorId.parse("RotaryEmbedding:23"), OperatorId(DOMAIN, "RotaryEmbedding", 1))
    for opset in (17, 22):
        result, _ = convert_with(model, replace(Options.of(opset), without=frozenset({pair})))
        assert [(each.domain, each.op_type) for each in result.graph.node] == [(DOMAIN, "RotaryEmbedding")]
        assert_equal(run(result, feeds), run(model, feeds))
    # Other nodes are expressed as usual.
    model, feeds = _model(OTHERS[-1][2]._replace(inputs=[HEADS, *CACHES_OF_TOKENS]), "fed", 23)
    result, _ = convert_with(model, replace(Options.of(17), without=frozenset({pair})))
    assert "RotaryEmbedding" not in op_types(result)
    assert_equal(run(result, feeds), run(model, feeds))


def test_declared_equivalents_exist() -> None:
    registry = default_registry()
    found = equivalents(registry, DOMAIN)
    assert len({each.op_type for each in found}) >= 12
    for operator in found:
        version = registry.at(operator.op_type, operator.since_version, operator.domain)
        assert version is not None
        assert version.id == operator
