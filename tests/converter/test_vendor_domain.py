"""A vendor domain: definitions in addition to those of ONNX, custom adapters, and converted nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.acme.kernels import run_acme
from support.execution import assert_equal, build, op_types

from opshift.adapters.core.adapter_table import adapter_table, load_adapters, temporary_adapters
from opshift.converter.convert import convert_version, plan_version
from opshift.converter.refusals import ConversionRefused
from opshift.registry.documents.document import operator_set
from opshift.registry.documents.files import DocumentFormat, write_document
from opshift.registry.errors import DefinitionError
from opshift.registry.registry import Registry, default_registry
from opshift.rewriting.version_graph import build_version_graph

ACME = Path(__file__).parents[1] / "support" / "acme"
X = np.linspace(-3, 12, 6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(autouse=True)
def _adapters() -> Iterator[None]:
    with temporary_adapters():
        load_adapters(ACME / "adapters")
        yield


@pytest.fixture(params=["folder", "onnxopset", "yaml", "json"])
def registry(request: pytest.FixtureRequest, tmp_path: Path) -> Registry:
    """Load the definitions from a folder and from each document format."""
    result = default_registry().with_folder(ACME)
    if request.param == "folder":
        return result
    path = tmp_path / f"acme.{request.param}"
    path.write_bytes(write_document(operator_set(result, "com.acme"), DocumentFormat(request.param), result))
    return default_registry().with_document(path)


def _node(op_type: str, inputs: list[str], outputs: list[str], **attributes: Any) -> onnx.NodeProto:
    domain = "com.acme" if op_type in ("Scale", "Limit") else ""
    result: onnx.NodeProto = helper.make_node(
        op_type, inputs, outputs, op_type.lower(), domain=domain, **attributes
    )
    return result


def _model(*nodes: onnx.NodeProto, acme: int, opset: int = 13, **options: Any) -> onnx.ModelProto:
    return build(list(nodes), {"x": X}, ["y"], {"": opset, "com.acme": acme}, **options)


OLD_NODES = (
    _node("Scale", ["x"], ["a"], factor=1.5, offset=0.75),
    _node("Relu", ["a"], ["b"]),
    _node("Scale", ["b"], ["y"]),
)
THREE = {"k": np.array(1.5, np.float32)}


def test_every_operator_has_steps(registry: Registry) -> None:
    for operator in registry.operators("com.acme"):
        assert build_version_graph([operator], adapter_table()).number_of_edges()


def test_converts_up_and_back_down(registry: Registry) -> None:
    model = _model(*OLD_NODES, acme=1)
    newer = convert_version(model, {"com.acme": 3}, registry=registry)
    assert [len(node.input) for node in newer.graph.node if node.op_type == "Scale"] == [2, 2]
    assert_equal(run_acme(newer, {"x": X}), run_acme(model, {"x": X}))
    older = convert_version(newer, {"com.acme": 1}, registry=registry)
    assert [len(node.input) for node in older.graph.node if node.op_type == "Scale"] == [1, 1]
    assert_equal(run_acme(older, {"x": X}), run_acme(model, {"x": X}))


def test_converts_both_domains_together(registry: Registry) -> None:
    clip = helper.make_node("Clip", ["c"], ["y"], "clip", min=0.5, max=5.0)
    model = _model(*OLD_NODES[:2], _node("Scale", ["b"], ["c"]), clip, acme=1, opset=10)
    newer = convert_version(model, {"": 17, "com.acme": 3}, registry=registry)
    assert {each.domain: each.version for each in newer.opset_import} == {"": 17, "com.acme": 3}
    assert_equal(run_acme(newer, {"x": X}), run_acme(model, {"x": X}))


@pytest.mark.parametrize("attributes", [{}, {"maximum": 4.5}], ids=["default", "explicit"])
def test_replaces_missing_operators_with_those_of_onnx(
    registry: Registry, attributes: dict[str, float]
) -> None:
    model = _model(_node("Limit", ["x"], ["y"], **attributes), acme=3)
    older = convert_version(model, {"com.acme": 2}, registry=registry)
    assert [each.name for each in older.graph.node[0].attribute] == (["top"] if attributes else [])
    oldest = convert_version(model, {"com.acme": 1}, registry=registry)
    assert "Clip" in op_types(oldest)
    for converted in (older, oldest):
        assert_equal(run_acme(converted, {"x": X}), run_acme(model, {"x": X}))


def test_converts_nodes_in_subgraphs(registry: Registry) -> None:
    branch = helper.make_graph(
        [_node("Scale", ["x"], ["z"], factor=3.0)],
        "branch",
        [],
        [helper.make_tensor_value_info("z", 1, None)],
    )
    nodes = [_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)]
    feeds = {"x": X, "c": np.array(True)}
    model = build(nodes, feeds, {"y": TensorProto.FLOAT}, {"": 13, "com.acme": 1})
    newer = convert_version(model, {"com.acme": 3}, registry=registry)
    assert_equal(run_acme(newer, feeds), run_acme(model, feeds))


@pytest.mark.parametrize(
    ("nodes", "acme", "target", "reason"),
    [
        pytest.param(
            [_node("Scale", ["x"], ["y"], factor=0.0, offset=1.0)], 1, 3, "no shift", id="adapter refuses"
        ),
        pytest.param(
            [_node("Relu", ["x"], ["k"]), _node("Scale", ["x", "k"], ["y"])],
            3,
            1,
            r"the factor .* is not a constant",
            id="computed factor",
        ),
        pytest.param([_node("Scale", ["x"], ["y"])], 9, 3, "there is no opset 9", id="unknown opset"),
    ],
)
def test_refuses_unsupported_nodes(
    registry: Registry, nodes: list[onnx.NodeProto], acme: int, target: int, reason: str
) -> None:
    with pytest.raises(ConversionRefused, match=reason):
        convert_version(_model(*nodes, acme=acme), {"com.acme": target}, registry=registry)


def test_plans_without_refusals(registry: Registry) -> None:
    plan = plan_version(_model(*OLD_NODES, acme=1), {"com.acme": 3}, registry=registry)
    assert not plan.refusals


def test_reports_missing_adapters(tmp_path: Path) -> None:
    """A step without its adapter is an error, not an unchanged node."""
    with temporary_adapters():
        from opshift.adapters.core import adapter_table as table

        for pair in [pair for pair in table.registered_adapters() if pair.domain == "com.acme"]:
            del table._registered[pair]
        registry = default_registry().with_folder(ACME)
        with pytest.raises(DefinitionError, match="no adapter is registered"):
            convert_version(_model(*OLD_NODES, acme=1), {"com.acme": 3}, registry=registry)
