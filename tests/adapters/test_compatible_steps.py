"""Steps that leave every node as it is: the same node computes the same before and after.

That two versions mean the same is a claim of the definitions. Here ONNX's own test cases check it: each
step takes a case of its operator, calls it by the opset below the step, and compares what runs there with
what runs above.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.backend.test.loader import load_model_tests
from support.forests import ML, Forest, classifier, data, regressor, votes
from support.running import Array, assert_equal, build, run, run_reference

from opshift import convert_version, default_registry
from opshift.adapters.table import adapter_table
from opshift.converter.lineage import Edge, lineage
from opshift.registry.models import OperatorVersion
from opshift.registry.names import DEFAULT_DOMAIN

RANDOM_RESULTS = frozenset(
    {
        "Bernoulli",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    }
)
"""Operators that compute something else in every run."""
NOT_RUN = frozenset({"Gemm:1 -> 6", "GlobalLpPool:2 -> 22", "MaxRoiPool:1 -> 22", "Optional:15 -> 28"})
"""Steps of which no runtime here runs both sides."""
NEWEST_IR_VERSION = 10
"""Runtimes that know an old opset need not know the newest files."""


class Case(NamedTuple):
    """A model of one node, and what it is fed."""

    model: onnx.ModelProto
    feeds: Mapping[str, Any]


def _name(edge: Edge) -> str:
    return f"{str(edge.source.id).removeprefix('ai.onnx.')} -> {edge.opset}"


def _edges() -> Iterator[Edge]:
    for operator in default_registry().operators():
        graph = lineage(operator, adapter_table())
        for pair in graph.edges:
            edge: Edge = graph.edges[pair]["step"]
            if edge.opset > edge.source.since_version and edge.how == "compatible":
                yield edge


@cache
def _published() -> Mapping[tuple[str, str], Sequence[Case]]:
    """ONNX's cases of one node, by domain and operator."""
    found: dict[tuple[str, str], list[Case]] = defaultdict(list)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        published = load_model_tests(kind="node")
    for each in published:
        if each.model is not None and len(each.model.graph.node) == 1:
            node = each.model.graph.node[0]
            names = [value.name for value in each.model.graph.input]
            feeds = dict(zip(names, map(_fed, each.data_sets[0][0]), strict=False))
            found[node.domain or DEFAULT_DOMAIN, node.op_type].append(Case(each.model, feeds))
    return found


def _fed(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return value if isinstance(value, list) or value is None else np.asarray(value)


def _fits(model: onnx.ModelProto, version: OperatorVersion) -> bool:
    """Whether the node has only what the version has."""
    node = model.graph.node[0]
    return (
        {each.name for each in node.attribute} <= set(version.attributes)
        and len(node.input) <= version.max_input
        and len(node.output) <= version.max_output
    )


X = np.array([[1.5, 0.25, 2], [0.5, 1, 3]], np.float32)
IMAGE = np.random.default_rng(0).standard_normal((1, 4, 4, 6)).astype(np.float32)
BOXES = np.array([[0, 0, 0, 2, 3], [0, 1, 1, 3, 3]], np.float32)
REDUCTIONS = {"axes": [1], "keepdims": 0}
OWN: dict[str, tuple[Mapping[str, Array], Mapping[str, Any]]] = {
    **dict.fromkeys(
        ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceSum"),
        ({"x": X}, REDUCTIONS),
    ),
    "ReduceSumSquare": ({"x": X}, REDUCTIONS),
    "AveragePool": ({"x": IMAGE}, {"kernel_shape": [2, 3], "strides": [2, 1]}),
    "DepthToSpace": ({"x": IMAGE}, {"blocksize": 2}),
    "GlobalLpPool": ({"x": IMAGE}, {"p": 3}),
    "MaxRoiPool": ({"x": IMAGE, "r": BOXES}, {"pooled_shape": [2, 2]}),
    "Squeeze": ({"x": IMAGE}, {"axes": [0]}),
    "Unsqueeze": ({"x": X}, {"axes": [0, 2]}),
}
"""Where ONNX's cases of today's versions do not fit, or are run wrongly (AveragePool-1 with padding)."""


def _own(version: OperatorVersion) -> Iterator[Case]:
    if version.name.startswith("TreeEnsemble"):
        opsets = {ML: version.since_version, "": 17}
        forest = Forest(votes([0, 1, 2]), trees=2, depth=2)
        is_classifier = version.name.endswith("Classifier")
        model = classifier(forest, data(), [3, 4, 5], opsets) if is_classifier else None
        yield Case(model or regressor(forest, data(), 3, opsets), {"x": data()})
    if version.name in OWN:
        feeds, attributes = OWN[version.name]
        node = helper.make_node(version.name, list(feeds), ["y"], **attributes)
        yield Case(build([node], feeds, ["y"], version.since_version), feeds)


def _below(edge: Edge) -> Iterator[Case]:
    """Cases of the operator, at the last opset before the step."""
    domain = edge.source.domain
    for case in (*_own(edge.source), *_published().get((domain, edge.source.name), ())):
        if _fits(case.model, edge.source):
            model = onnx.ModelProto()
            model.CopyFrom(case.model)
            model.ir_version = min(model.ir_version, NEWEST_IR_VERSION)
            for each in model.opset_import:
                if (each.domain or DEFAULT_DOMAIN) == domain:
                    each.version = edge.opset - 1
            yield Case(model, case.feeds)


def _outputs(model: onnx.ModelProto, feeds: Mapping[str, Any], *, reference: bool) -> list[Any] | None:
    """What a model returns, sequences flattened; nothing if it is not run."""
    try:
        found = (run_reference if reference else run)(model, feeds)
    except Exception:
        return None
    return list(_flat(found))


def _flat(values: Sequence[Any]) -> Iterator[Any]:
    for each in values:
        if isinstance(each, list):
            yield from _flat(each)
        elif each is not None:
            yield each


def _shell(model: onnx.ModelProto) -> onnx.NodeProto:
    """The node but for the graphs within, whose own nodes may have steps to take."""
    node = onnx.NodeProto()
    node.CopyFrom(model.graph.node[0])
    for attribute in node.attribute:
        attribute.ClearField("g")
    return node


def _is_proven(edge: Edge) -> bool:
    """Convert the first case that runs on both sides of the step, in one runtime, and compare."""
    domain = "" if edge.source.domain == DEFAULT_DOMAIN else edge.source.domain
    for reference in (False, True):
        for case in _below(edge):
            before = _outputs(case.model, case.feeds, reference=reference)
            if before is None:
                continue
            moved = convert_version(case.model, {domain: edge.opset})
            assert _shell(moved) == _shell(case.model)
            after = _outputs(moved, case.feeds, reference=reference)
            if after is not None:
                assert_equal(after, before)
                return True
    return False


@pytest.mark.parametrize(
    "edge", [edge for edge in _edges() if edge.source.name not in RANDOM_RESULTS], ids=_name
)
def test_the_same_node_computes_the_same(edge: Edge) -> None:
    assert _is_proven(edge) != (_name(edge) in NOT_RUN), "no case runs, or one does though it is not to"
