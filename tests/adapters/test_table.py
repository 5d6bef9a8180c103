"""The table of adapters: what it holds, what it refuses, and what every adapter keeps to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import helper
from support.running import Array, build

from opshift import ConversionRefused, convert_version, default_registry
from opshift.adapters import table as table_module
from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import Adapter, DuplicateAdapter, Pair, adapter, adapter_table
from opshift.converter import route
from opshift.converter.lineage import lineage
from opshift.registry.errors import DefinitionError
from opshift.registry.models import Operator


def leave(node: Node, out: Rewriter) -> None:
    out.become(node)


def leave_too(node: Node, out: Rewriter) -> None:
    out.become(node)


@pytest.fixture
def empty(monkeypatch: pytest.MonkeyPatch) -> dict[Pair, Adapter]:
    """A table that nobody else sees."""
    registered: dict[Pair, Adapter] = {}
    monkeypatch.setattr(table_module, "_registered", registered)
    return registered


def test_an_adapter_is_registered_for_its_step(empty: dict[Pair, Adapter]) -> None:
    assert adapter("Conv", 1, 11)(leave) is leave
    assert empty == {Pair("ai.onnx", "Conv", 1, 11): leave}


def test_an_adapter_may_serve_several_operators(empty: dict[Pair, Adapter]) -> None:
    adapter(("Gather", "Scatter"), 3, 4, domain="com.acme")(leave)
    assert list(map(str, empty)) == ["com.acme.Gather 3 -> 4", "com.acme.Scatter 3 -> 4"]


def test_two_directions_are_two_steps(empty: dict[Pair, Adapter]) -> None:
    adapter("Conv", 1, 11)(leave)
    adapter("Conv", 11, 1)(leave_too)
    assert list(empty.values()) == [leave, leave_too]


def test_a_second_adapter_for_a_step_is_refused(empty: dict[Pair, Adapter]) -> None:
    adapter("Conv", 1, 11)(leave)
    with pytest.raises(DuplicateAdapter) as caught:
        adapter("Conv", 1, 11)(leave_too)
    both = f"{leave.__module__}.leave and {leave_too.__module__}.leave_too"
    assert caught.value.reason == f"ai.onnx.Conv 1 -> 11 has two adapters: {both}"
    assert empty == {Pair("ai.onnx", "Conv", 1, 11): leave}


def test_modules_are_found() -> None:
    """Every file that registers an adapter has its adapters in the table."""
    folder = files("opshift.adapters")
    expected = {
        f"opshift.adapters.{each.name.removesuffix('.py')}"
        for each in folder.iterdir()
        if each.name.endswith(".py") and "\n@adapter(" in each.read_text(encoding="utf-8")
    }
    assert len(expected) > 10
    assert {function.__module__ for function in adapter_table().values()} == expected


def test_the_table_is_not_written_to() -> None:
    with pytest.raises(TypeError):
        adapter_table()[Pair("ai.onnx", "Conv", 1, 11)] = leave  # type: ignore[index]  # that is the point


def test_every_adapter_is_the_step_of_an_operator() -> None:
    """An operator that an adapter names is there, and one of its steps is the adapter's."""
    for pair in adapter_table():
        found = default_registry().operator(pair.op_type, pair.domain)
        assert found is not None, pair
        graph = lineage(found, adapter_table())
        steps = [graph.edges[edge]["step"] for edge in graph.edges]
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
            Pair("ai.onnx", "Softmax", 1, 13),
            "an adapter is registered, but these are not neighbouring versions",
            id="versions that are no neighbours",
        ),
        pytest.param(
            "Softmax",
            Pair("ai.onnx", "Softmax", 12, 13),
            "an adapter is registered, but these are not neighbouring versions",
            id="an opset that brought no version",
        ),
        pytest.param(
            "Relu",
            Pair("ai.onnx", "Relu", 6, 13),
            "an adapter is registered, but the definition does not declare it",
            id="a step that is derived",
        ),
        pytest.param(
            "Squeeze",
            Pair("ai.onnx", "Squeeze", 11, 13),
            "an adapter is registered, but the definition does not declare it",
            id="a step that is declared otherwise",
        ),
    ],
)
def test_an_adapter_that_no_definition_asks_for_is_refused(name: str, pair: Pair, reason: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        lineage(_operator(name), {**adapter_table(), pair: leave})
    assert caught.value.reason == f"{pair}: {reason}"


def test_an_adapter_that_is_missing_is_refused() -> None:
    without = {pair: each for pair, each in adapter_table().items() if pair.op_type != "Cast"}
    with pytest.raises(DefinitionError, match=r"ai\.onnx\.Cast 1 -> 6: the definition declares an adapter, but no adapter is registered"):
        lineage(_operator("Cast"), without)


def test_adapters_of_other_operators_are_no_business_of_an_operator() -> None:
    lineage(_operator("Relu"), adapter_table())


class Case(NamedTuple):
    """A node, what it is fed, and what it returns."""

    op: str
    opset: int
    target: int
    feeds: Mapping[str, Array]
    attributes: Mapping[str, Any] = {}
    outputs: tuple[str, ...] = ("y",)
    shapes: bool = True


IMAGE = np.ones((1, 2, 3, 4), np.float32)
PAIR = {"a": IMAGE, "b": np.ones(2, np.float32)}
SCALED = {"x": IMAGE, "s": np.array([1, 1, 0.5, 2], np.float32)}
GROUPED = {"x": IMAGE, "scale": np.ones(1, np.float32), "bias": np.ones(1, np.float32)}
STATISTICS = {"x": IMAGE, **dict.fromkeys("sbmv", np.ones(2, np.float32))}
OF_ELEMENTS = {"x": IMAGE, **dict.fromkeys("sbmv", IMAGE[0])}
CASES = {
    "broadcast along an axis": Case("Add", 6, 7, PAIR, {"broadcast": 1, "axis": 1}),
    "slopes": Case("PRelu", 6, 7, PAIR),
    "a flattened softmax": Case("Softmax", 11, 13, {"x": IMAGE}),
    "bounds": Case("Clip", 6, 11, {"x": IMAGE}, {"max": 1.0}),
    "a mask": Case("Dropout", 7, 10, {"x": IMAGE}, {}, ("y", "m")),
    "a named type": Case("Cast", 1, 6, {"x": IMAGE}, {"to": "FLOAT"}),
    "training": Case("BatchNormalization", 9, 14, STATISTICS, {}, ("y", "m2", "v2")),
    "statistics of elements": Case("BatchNormalization", 7, 9, OF_ELEMENTS, {"spatial": 0}),
    "groups": Case("GroupNormalization", 18, 21, GROUPED, {"num_groups": 1}),
    "factors": Case("Upsample", 1, 7, {"x": IMAGE}, {"height_scale": 2.0, "width_scale": 2.0}),
    "mixed scales": Case("Resize", 10, 11, SCALED),
    "parts": Case("Split", 13, 18, {"x": IMAGE}, {"axis": 1}, ("y", "z")),
    "a transform": Case("DFT", 17, 20, {"x": IMAGE[..., :2]}),
    "an exponent": Case("GlobalLpPool", 1, 2, {"x": IMAGE}, {"p": 2.0}),
}
REFUSED = {
    "an axis of unknown ranks": Case("Add", 6, 7, PAIR, {"broadcast": 1, "axis": 1}, shapes=False),
    "slopes of unknown rank": Case("PRelu", 6, 7, PAIR, shapes=False),
    "dropping at random": Case("Dropout", 6, 7, {"x": IMAGE}),
    "training that is told twice": Case("BatchNormalization", 6, 7, STATISTICS, {"is_test": 0}),
    "training of elements": Case("BatchNormalization", 7, 9, OF_ELEMENTS, {"spatial": 0}, ("y", "m2", "v2")),
    "a fraction": Case("GlobalLpPool", 1, 2, {"x": IMAGE}, {"p": 1.5}),
    "no type": Case("Cast", 1, 6, {"x": IMAGE}, {"to": "REAL"}),
}


def _model(case: Case) -> onnx.ModelProto:
    node = helper.make_node(case.op, list(case.feeds), case.outputs, **case.attributes)
    return build([node], case.feeds, case.outputs, case.opset, shapes=case.shapes)


def _seen(node: Node) -> Any:
    """All that an adapter can read of its node."""
    attributes = {
        name: value.SerializeToString() if hasattr(value, "SerializeToString") else value
        for name, value in node.attributes.items()
    }
    return node.op_type, node.domain, node.inputs, node.outputs, attributes


def _watched(function: Adapter, calls: list[Node]) -> Adapter:
    """The adapter, and that it leaves its node alone and decides before it emits."""

    def watch(node: Node, out: Rewriter) -> None:
        before = _seen(node)
        calls.append(node)
        try:
            function(node, out)
        except CannotConvert:
            assert not out.emitted
            raise
        finally:
            assert _seen(node) == before

    return watch


Calls = list[Node]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[Calls]:
    """The nodes that adapters were given, each of which they left alone."""
    found: Calls = []
    watched = {pair: _watched(function, found) for pair, function in adapter_table().items()}
    monkeypatch.setattr(route, "CompiledTable", lambda: watched)
    route.router_for.cache_clear()
    yield found
    route.router_for.cache_clear()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_adapters_leave_their_node_alone(case: Case, calls: Calls) -> None:
    convert_version(_model(case), case.target)
    assert [node.op_type for node in calls] == [case.op]


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_adapters_decide_before_they_emit(case: Case, calls: Calls) -> None:
    with pytest.raises(ConversionRefused):
        convert_version(_model(case), case.target)
    assert [node.op_type for node in calls] == [case.op]
