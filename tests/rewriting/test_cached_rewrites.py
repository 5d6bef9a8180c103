"""Converted models and refusals do not depend on the rewrite cache."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, TypeProto, numpy_helper
from onnx.compose import add_prefix_graph, merge_graphs
from support.published import Case, published

from opshift import ConversionRefused, convert_version
from opshift.converter.plan import planner
from opshift.model.graphs import NodeRecord
from opshift.model.messages import NodeProto
from opshift.registry.steps import Allow
from opshift.rewriting.cached_rewrite import NodeRewrite
from opshift.rewriting.rewrite_cache import RewriteCache
from opshift.rewriting.rewrite_node import rewrite_node

COPIES, SAMPLE = 4, 200

PART_OF_CONSTANTS = 0.3

OLDEST = 6

ALLOWANCES: Sequence[Sequence[Allow]] = ((), ("approximate", "large"))


class UncachedRewrites(RewriteCache):
    """Rewrites of which each is computed for its node."""

    def rewrite(self, line: NodeRecord, proto: NodeProto, source: int) -> NodeRewrite:
        node = self._scope.node_of(line)
        result = rewrite_node(node, source, self._scope, self._workspace, self._router)
        return self._with_values_kept(result)


def forget_sizes(type_: TypeProto, random: Random) -> None:
    """Replace some declared sizes by names, or remove them."""
    for dim in type_.tensor_type.shape.dim:
        kind = random.choice(("kept", "kept", "named", "unknown"))
        if kind != "kept":
            dim.Clear()
        if kind == "named":
            dim.dim_param = random.choice("NM")


def repeated(case: Case, random: Random) -> GraphProto:
    """Return a graph with copies of a node, whose inputs are constants, or have fewer known sizes."""
    found = case.model.graph
    for number in range(COPIES):
        copy = add_prefix_graph(case.model.graph, f"copy_{number}/")
        for value, feed in [*zip(copy.input, case.feeds.values(), strict=False)]:
            forget_sizes(value.type, random)
            if isinstance(feed, np.ndarray) and random.random() < PART_OF_CONSTANTS:
                copy.initializer.append(numpy_helper.from_array(feed, value.name))
                copy.input.remove(value)
        found = merge_graphs(found, copy, [])
    return found


def result_of(model: ModelProto, target: int, allow: Sequence[Allow]) -> bytes | str:
    try:
        return bytes(convert_version(model, target, allow=allow).SerializeToString(deterministic=True))
    except ConversionRefused as error:
        return str(error)


@pytest.mark.parametrize("seed", range(3))
def test_results_do_not_depend_on_the_cache(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    cases = [case for of_operator in published().values() for case in of_operator]
    for case in random.sample(cases, SAMPLE):
        model = ModelProto()
        model.CopyFrom(case.model)
        model.graph.CopyFrom(repeated(case, random))
        opset = max(each.version for each in model.opset_import)
        allow = random.choice(ALLOWANCES)
        target = random.randrange(OLDEST, max(opset, OLDEST + 1))
        cached = result_of(model, target, allow)
        conversion = f"{model.graph.node[0].op_type}, opset {opset} to {target}"
        with monkeypatch.context() as context:
            context.setattr(planner, "RewriteCache", UncachedRewrites)
            assert result_of(model, target, allow) == cached, conversion
