"""What is inferred of a value is what ONNX infers and what runtimes compute, and no less than ONNX knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from onnx import ModelProto, TensorProto, numpy_helper, shape_inference
from onnx.backend.test.case.node import collect_testcases
from support.graphs.models import Case, cases
from support.graphs.values import type_of

from opshift.adapters.core.adapter_table import adapter_table
from opshift.converter.rewrite.version_graph import build_version_graph
from opshift.inference.scope import Scope
from opshift.model.types import Shape, element_type_of, shape_of
from opshift.registry.registry import default_registry

Scoping = Callable[..., Scope]
KNOWN_TO_ONNX_ALONE = {
    "LabelEncoder": "the type of the values, which one of several attributes holds",
    "LinearAttention": "the type of a state that starts at zero",
    "OptionalGetElement": "the type of a tensor, which need not be in an optional",
    "Reshape": "sizes computed from other sizes, in the function body of LayerNormalization",
}
"""Operators that have a step, and of whose outputs ONNX infers more ranks or types."""


class Fact(NamedTuple):
    """The element type and the shape of a value, as far as they are known."""

    type: str | None
    shape: Shape | None


class NodeCase(NamedTuple):
    """One of ONNX's operator cases, without what it says of its outputs, and what those were."""

    name: str
    model: ModelProto
    computed: Mapping[str, Any]


def _bare(model: ModelProto) -> ModelProto:
    """The model without what it says of the values that nodes make."""
    bare = ModelProto()
    bare.CopyFrom(model)
    del bare.graph.value_info[:]
    for output in bare.graph.output:
        output.type.Clear()
    return bare


def _inferred_by_onnx(model: ModelProto) -> dict[str, Fact]:
    graph = shape_inference.infer_shapes(model, data_prop=True).graph
    values = (*graph.value_info, *graph.output)
    return {each.name: Fact(element_type_of(each.type), shape_of(each.type)) for each in values}


def _inferred(model: ModelProto, scoping: Scoping) -> dict[str, tuple[str, Fact]]:
    """Of every value that a node makes, the operator's name and what is inferred."""
    bare = ModelProto()
    bare.CopyFrom(model)
    del bare.graph.output[:]
    scope = scoping(bare.graph, bare.opset_import)
    names = ((node.op_type, name) for node in bare.graph.node for name in node.output if name)
    return {name: (op_type, Fact(scope.element_type(name), scope.shape(name))) for op_type, name in names}


def _contradicts(found: Fact, truth: Fact) -> bool:
    if None not in (found.type, truth.type) and found.type != truth.type:
        return True
    if found.shape is None or truth.shape is None:
        return False
    pairs = zip(found.shape, truth.shape, strict=False)
    return len(found.shape) != len(truth.shape) or any(None not in (a, b) and a != b for a, b in pairs)


def _is_less(found: Fact, truth: Fact) -> bool:
    """Whether the type or the rank is known to the other alone."""
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
            yield NodeCase(test.name, _bare(test.model), computed)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, TensorProto | np.ndarray | np.generic)


def _array(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


def _with_a_step() -> frozenset[str]:
    """The operators of which some step does something."""
    table = adapter_table()
    found = set()
    for operator in default_registry().operators():
        steps = nx.get_edge_attributes(build_version_graph(operator, table), "step").values()
        if any(step.function for step in steps):
            found.add(operator.name)
    return frozenset(found)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_node_cases_are_as_onnx_infers_them(node_cases: list[NodeCase], scope_of: Scoping) -> None:
    """And where an operator has a step that might ask, no less is known."""
    asked, wrong, less = _with_a_step(), [], set()
    count = 0
    for case in node_cases:
        theirs = _inferred_by_onnx(case.model)
        for name, (op_type, found) in _inferred(case.model, scope_of).items():
            truth = theirs.get(name, Fact(None, None))
            count += 1
            if _contradicts(found, truth):
                wrong.append((case.name, name, found, truth))
            if op_type in asked and _is_less(found, truth):
                less.add(op_type)
    assert count > 10_000
    assert wrong == []
    assert less == set(KNOWN_TO_ONNX_ALONE)


def test_node_cases_are_as_computed(node_cases: list[NodeCase], scope_of: Scoping) -> None:
    wrong = [
        (case.name, name, inferred[name][1], truth)
        for case in node_cases
        for inferred in [_inferred(case.model, scope_of)]
        for name, data in case.computed.items()
        if name in inferred and _contradicts(inferred[name][1], truth := Fact(type_of(data), data.shape))
    ]
    assert sum(len(case.computed) for case in node_cases) > 1_500
    assert wrong == []


@given(cases())
@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[*HealthCheck],
)
def test_random_models_are_as_computed(scope_of: Scoping, case: Case) -> None:
    for name, (_, found) in _inferred(_bare(case.model), scope_of).items():
        data = case.values.get(name)
        if isinstance(data, np.ndarray):
            assert not _contradicts(found, Fact(type_of(data), data.shape)), name
