"""Inferred facts agree with ONNX and with computed values, and are as complete as those of ONNX."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from onnx import ModelProto, TensorProto, numpy_helper, shape_inference
from onnx.backend.test.case.node import collect_testcases
from support.random_models import cases

from opshift.adapters.core.adapter_table import adapter_table
from opshift.inference.scope import Scope
from opshift.model.types import Shape, element_type_of, shape_of
from opshift.registry.registry import default_registry
from opshift.rewriting.version_graph import build_version_graph
from random_graphs.models import Case
from random_graphs.values import type_of

ScopeFactory = Callable[..., Scope]
INFERRED_ONLY_BY_ONNX = {
    **dict.fromkeys(["Adagrad", "Adam", "Momentum"], "outputs whose types are those of several inputs"),
    "LinearAttention": "the type of a state that starts at zero",
    "OptionalGetElement": "the type of a tensor that is not in an optional",
}
"""Operators with a step, and the ranks or types of their outputs that only ONNX infers."""


class Fact(NamedTuple):
    """Element type and shape of a value; None where unknown."""

    type: str | None
    shape: Shape | None


class NodeCase(NamedTuple):
    """Operator case of ONNX without declared output types, and its computed outputs."""

    name: str
    model: ModelProto
    computed: Mapping[str, Any]


def _without_declared_outputs(model: ModelProto) -> ModelProto:
    """Return a copy of the model without the declared types of node outputs."""
    copy = ModelProto()
    copy.CopyFrom(model)
    del copy.graph.value_info[:]
    for output in copy.graph.output:
        output.type.Clear()
    return copy


def _inferred_by_onnx(model: ModelProto) -> dict[str, Fact]:
    graph = shape_inference.infer_shapes(model, data_prop=True).graph
    values = (*graph.value_info, *graph.output)
    return {each.name: Fact(element_type_of(each.type), shape_of(each.type)) for each in values}


def _inferred(model: ModelProto, scope_of: ScopeFactory) -> dict[str, tuple[str, Fact]]:
    """Return the operator and the inferred facts of each node output, by value name."""
    copy = ModelProto()
    copy.CopyFrom(model)
    del copy.graph.output[:]
    scope = scope_of(copy.graph, copy.opset_import)
    names = ((node.op_type, name) for node in copy.graph.node for name in node.output if name)
    return {name: (op_type, Fact(scope.element_type(name), scope.shape(name))) for op_type, name in names}


def _contradicts(found: Fact, truth: Fact) -> bool:
    if None not in (found.type, truth.type) and found.type != truth.type:
        return True
    if found.shape is None or truth.shape is None:
        return False
    pairs = zip(found.shape, truth.shape, strict=False)
    return len(found.shape) != len(truth.shape) or any(None not in (a, b) and a != b for a, b in pairs)


def _is_less_specific(found: Fact, truth: Fact) -> bool:
    """Return whether only `truth` has a type or only `truth` has a shape."""
    return any(one is None and other is not None for one, other in zip(found, truth, strict=True))


@pytest.fixture(scope="module")
def node_cases() -> list[NodeCase]:
    with np.errstate(all="ignore"):
        return list(_node_cases())


def _node_cases() -> Iterator[NodeCase]:
    for test in collect_testcases():
        if test.model is not None:
            outputs = test.data_sets[0][1] if test.data_sets else []
            named = zip((each.name for each in test.model.graph.output), outputs, strict=False)
            computed = {name: _array(value) for name, value in named if _is_tensor(value)}
            yield NodeCase(test.name, _without_declared_outputs(test.model), computed)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, TensorProto | np.ndarray | np.generic)


def _array(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


def _operators_with_steps() -> frozenset[str]:
    """Return the operators with a step that rewrites nodes."""
    table = adapter_table()
    names = set()
    for operator in default_registry().operators():
        steps = nx.get_edge_attributes(build_version_graph([operator], table), "step").values()
        if any(step.function for step in steps):
            names.add(operator.name)
    return frozenset(names)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_agrees_with_onnx_on_node_cases(node_cases: list[NodeCase], scope_of: ScopeFactory) -> None:
    """For operators with a step, which may query facts, at least as much is inferred as by ONNX."""
    with_steps, contradictions, less_specific = _operators_with_steps(), [], set()
    count = 0
    for case in node_cases:
        theirs = _inferred_by_onnx(case.model)
        for name, (op_type, found) in _inferred(case.model, scope_of).items():
            truth = theirs.get(name, Fact(None, None))
            count += 1
            if _contradicts(found, truth):
                contradictions.append((case.name, name, found, truth))
            if op_type in with_steps and _is_less_specific(found, truth):
                less_specific.add(op_type)
    assert count > 10_000
    assert contradictions == []
    assert less_specific == set(INFERRED_ONLY_BY_ONNX)


@pytest.mark.full
def test_agrees_with_computed_outputs_of_node_cases(
    node_cases: list[NodeCase], scope_of: ScopeFactory
) -> None:
    contradictions = [
        (case.name, name, inferred[name][1], truth)
        for case in node_cases
        for inferred in [_inferred(case.model, scope_of)]
        for name, data in case.computed.items()
        if name in inferred and _contradicts(inferred[name][1], truth := Fact(type_of(data), data.shape))
    ]
    assert sum(len(case.computed) for case in node_cases) > 1_500
    assert contradictions == []


@pytest.mark.full
@given(cases())
@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[*HealthCheck],
)
def test_agrees_with_computed_values_of_random_models(scope_of: ScopeFactory, case: Case) -> None:
    for name, (_, found) in _inferred(_without_declared_outputs(case.model), scope_of).items():
        data = case.values.get(name)
        if isinstance(data, np.ndarray):
            assert not _contradicts(found, Fact(type_of(data), data.shape)), name
