"""Adapter table: contents, validation, and the contract of every adapter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import onnx
import pytest
from onnx import helper
from support.execution import Array, build

from opshift import ConversionRefused, convert_version, default_registry
from opshift.adapters import ops
from opshift.adapters.core import adapter_table as table_module
from opshift.adapters.core.adapter_table import Adapter, DuplicateAdapter, StepKey, adapter, adapter_table
from opshift.adapters.core.rewriter import Rewriter
from opshift.model.errors import CannotConvert
from opshift.model.node import Node
from opshift.registry.errors import DefinitionError
from opshift.registry.models import Operator
from opshift.rewriting import router_for as routers
from opshift.rewriting.version_graph import build_version_graph


def keep_node(node: Node, out: Rewriter) -> None:
    out.replace(node)


def keep_node_again(node: Node, out: Rewriter) -> None:
    out.replace(node)


@pytest.fixture
def empty_table(monkeypatch: pytest.MonkeyPatch) -> dict[StepKey, Adapter]:
    """Return an empty adapter table that replaces the registered one during a test."""
    registered: dict[StepKey, Adapter] = {}
    monkeypatch.setattr(table_module, "_registered", registered)
    return registered


def test_registers_an_adapter_for_its_step(empty_table: dict[StepKey, Adapter]) -> None:
    assert adapter("Conv", 1, 11)(keep_node) is keep_node
    assert empty_table == {StepKey("ai.onnx", "Conv", 1, 11): keep_node}


def test_registers_an_adapter_for_several_operators(empty_table: dict[StepKey, Adapter]) -> None:
    adapter(("Gather", "Scatter"), 3, 4, domain="com.acme")(keep_node)
    assert list(map(str, empty_table)) == ["com.acme.Gather 3 -> 4", "com.acme.Scatter 3 -> 4"]


def test_registers_each_direction_as_its_own_step(empty_table: dict[StepKey, Adapter]) -> None:
    adapter("Conv", 1, 11)(keep_node)
    adapter("Conv", 11, 1)(keep_node_again)
    assert list(empty_table.values()) == [keep_node, keep_node_again]


def test_refuses_a_second_adapter_for_a_step(empty_table: dict[StepKey, Adapter]) -> None:
    adapter("Conv", 1, 11)(keep_node)
    with pytest.raises(DuplicateAdapter) as caught:
        adapter("Conv", 1, 11)(keep_node_again)
    both = f"{keep_node.__module__}.keep_node and {keep_node_again.__module__}.keep_node_again"
    assert caught.value.reason == f"ai.onnx.Conv 1 -> 11 has two adapters: {both}"
    assert empty_table == {StepKey("ai.onnx", "Conv", 1, 11): keep_node}


def test_finds_all_adapter_modules() -> None:
    """The adapters of every file that registers one are in the table."""
    (folder,) = ops.__path__
    registers = re.compile(r"^@(adapter|expression|function_body)\(", re.MULTILINE)
    expected = {
        ".".join(("opshift.adapters.ops", *path.relative_to(folder).with_suffix("").parts))
        for path in Path(folder).rglob("*.py")
        if registers.search(path.read_text(encoding="utf-8"))
    }
    assert len(expected) > 10
    assert {function.__module__ for function in adapter_table().values()} == expected


def test_table_is_read_only() -> None:
    with pytest.raises(TypeError):
        adapter_table()[StepKey("ai.onnx", "Conv", 1, 11)] = keep_node  # type: ignore[index]  # the assignment must fail


def test_every_adapter_matches_a_step_of_its_operator() -> None:
    """A step of the operator connects the versions of an adapter, or it expresses nodes of one version."""
    for pair in adapter_table():
        found = default_registry().operator(pair.op_type, pair.domain)
        assert found is not None, pair
        if pair.source == pair.target:
            assert pair.source in [each.since_version for each in found.versions]
            continue
        graph = build_version_graph([found], adapter_table())
        steps = nx.get_edge_attributes(graph, "step").values()
        assert (pair.source, pair.target) in {(step.source.since_version, step.opset) for step in steps}, pair


def _operator(name: str) -> Operator:
    found = default_registry().operator(name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "pair", "reason"),
    [
        pytest.param(
            "Softmax",
            StepKey("ai.onnx", "Softmax", 1, 13),
            "an adapter is registered, but the versions are not consecutive",
            id="versions that are not adjacent",
        ),
        pytest.param(
            "Softmax",
            StepKey("ai.onnx", "Softmax", 12, 13),
            "an adapter is registered, but the versions are not consecutive",
            id="opset without a version",
        ),
        pytest.param(
            "Relu",
            StepKey("ai.onnx", "Relu", 6, 13),
            "an adapter is registered, but the definition does not declare it",
            id="derived step",
        ),
        pytest.param(
            "Squeeze",
            StepKey("ai.onnx", "Squeeze", 11, 13),
            "an adapter is registered, but the definition does not declare it",
            id="step declared without adapter",
        ),
    ],
)
def test_refuses_adapters_that_no_definition_declares(name: str, pair: StepKey, reason: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        build_version_graph([_operator(name)], {**adapter_table(), pair: keep_node})
    assert caught.value.reason == f"{pair}: {reason}"


def test_refuses_a_missing_adapter() -> None:
    incomplete_table = {pair: each for pair, each in adapter_table().items() if pair.op_type != "Cast"}
    with pytest.raises(
        DefinitionError,
        match=r"ai\.onnx\.Cast 1 -> 6: the definition declares an adapter, but no adapter is registered",
    ):
        build_version_graph([_operator("Cast")], incomplete_table)


def test_ignores_adapters_of_other_operators() -> None:
    build_version_graph([_operator("Relu")], adapter_table())


class Case(NamedTuple):
    """Model of one node with the given feeds and outputs, to convert from `opset` to `target`."""

    op: str
    opset: int
    target: int
    feeds: Mapping[str, Array]
    attributes: Mapping[str, Any] = {}
    outputs: tuple[str, ...] = ("y",)
    shapes: bool = True


IMAGE = np.ones((1, 2, 3, 4), np.float32)
BROADCAST_FEEDS = {"a": IMAGE, "b": np.ones(2, np.float32)}
RESIZE_FEEDS = {"x": IMAGE, "s": np.array([1, 1, 0.5, 2], np.float32)}
GROUP_NORMALIZATION_FEEDS = {"x": IMAGE, "scale": np.ones(1, np.float32), "bias": np.ones(1, np.float32)}
BATCH_NORMALIZATION_FEEDS = {"x": IMAGE, **dict.fromkeys("sbmv", np.ones(2, np.float32))}
ELEMENTWISE_STATISTICS_FEEDS = {"x": IMAGE, **dict.fromkeys("sbmv", IMAGE[0])}
CASES = {
    "broadcast along an axis": Case("Add", 6, 7, BROADCAST_FEEDS, {"broadcast": 1, "axis": 1}),
    "PRelu slope": Case("PRelu", 6, 7, BROADCAST_FEEDS),
    "flattened Softmax": Case("Softmax", 11, 13, {"x": IMAGE}),
    "Clip bounds": Case("Clip", 6, 11, {"x": IMAGE}, {"max": 1.0}),
    "Dropout mask": Case("Dropout", 7, 10, {"x": IMAGE}, {}, ("y", "m")),
    "type name of Cast": Case("Cast", 1, 6, {"x": IMAGE}, {"to": "FLOAT"}),
    "BatchNormalization in training": Case(
        "BatchNormalization", 9, 14, BATCH_NORMALIZATION_FEEDS, {}, ("y", "m2", "v2")
    ),
    "BatchNormalization per element": Case(
        "BatchNormalization", 7, 9, ELEMENTWISE_STATISTICS_FEEDS, {"spatial": 0}
    ),
    "GroupNormalization": Case("GroupNormalization", 18, 21, GROUP_NORMALIZATION_FEEDS, {"num_groups": 1}),
    "factors of Upsample": Case("Upsample", 1, 7, {"x": IMAGE}, {"height_scale": 2.0, "width_scale": 2.0}),
    "mixed scales of Resize": Case("Resize", 10, 11, RESIZE_FEEDS),
    "equal parts of Split": Case("Split", 13, 18, {"x": IMAGE}, {"axis": 1}, ("y", "z")),
    "DFT": Case("DFT", 17, 20, {"x": IMAGE[..., :2]}),
    "exponent of GlobalLpPool": Case("GlobalLpPool", 1, 2, {"x": IMAGE}, {"p": 2.0}),
}
REFUSED_CASES = {
    "broadcast of unknown ranks": Case(
        "Add", 6, 7, BROADCAST_FEEDS, {"broadcast": 1, "axis": 1}, shapes=False
    ),
    "PRelu slope of unknown rank": Case("PRelu", 6, 7, BROADCAST_FEEDS, shapes=False),
    "random Dropout": Case("Dropout", 6, 7, {"x": IMAGE}),
    "contradictory training mode": Case(
        "BatchNormalization", 6, 7, BATCH_NORMALIZATION_FEEDS, {"is_test": 0}
    ),
    "BatchNormalization per element in training": Case(
        "BatchNormalization", 7, 9, ELEMENTWISE_STATISTICS_FEEDS, {"spatial": 0}, ("y", "m2", "v2")
    ),
    "fractional exponent": Case("GlobalLpPool", 1, 2, {"x": IMAGE}, {"p": 1.5}),
    "unknown type name": Case("Cast", 1, 6, {"x": IMAGE}, {"to": "REAL"}),
}


def _model(case: Case) -> onnx.ModelProto:
    node = helper.make_node(case.op, list(case.feeds), case.outputs, **case.attributes)
    return build([node], case.feeds, case.outputs, case.opset, shapes=case.shapes)


def _snapshot(node: Node) -> Any:
    """Return everything that an adapter can read of its node."""
    attributes = {
        name: value.SerializeToString() if hasattr(value, "SerializeToString") else value
        for name, value in node.attributes.items()
    }
    return node.op_type, node.domain, node.inputs, node.outputs, attributes


def _with_checks(function: Adapter, calls: list[Node]) -> Adapter:
    """Wrap an adapter to check that it does not modify its node and refuses before it emits."""

    def checked(node: Node, out: Rewriter) -> None:
        before = _snapshot(node)
        calls.append(node)
        try:
            function(node, out)
        except CannotConvert:
            assert not out.emitted
            raise
        finally:
            assert _snapshot(node) == before

    return checked


Calls = list[Node]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[Calls]:
    """Yield the list of nodes passed to adapters; each call checks that the node is not modified."""
    nodes: Calls = []
    checked_table = {pair: _with_checks(function, nodes) for pair, function in adapter_table().items()}
    monkeypatch.setattr(routers, "LazyAdapterTable", lambda: checked_table)
    routers.router_for.cache_clear()
    yield nodes
    routers.router_for.cache_clear()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_adapters_do_not_modify_their_node(case: Case, calls: Calls) -> None:
    convert_version(_model(case), case.target)
    assert [node.op_type for node in calls] == [case.op]


@pytest.mark.parametrize("case", REFUSED_CASES.values(), ids=REFUSED_CASES)
def test_adapters_refuse_before_they_emit(case: Case, calls: Calls) -> None:
    with pytest.raises(ConversionRefused):
        convert_version(_model(case), case.target)
    assert [node.op_type for node in calls] == [case.op]
