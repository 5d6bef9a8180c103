"""Facts that plans of the same model share."""

from __future__ import annotations

from dataclasses import replace

import pytest
from onnx import parser

from opshift.converter.convert import plan_with
from opshift.converter.options import Options
from opshift.converter.plan.changes import Plan
from opshift.inference.scope import Scope
from opshift.inference.shared_facts import SharedFacts
from opshift.model.files import model_of
from opshift.model.messages import ModelProto
from opshift.model.node import Tensor
from opshift.registry.registry import default_registry

TEXT = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2, N, 3] x, bool c) => (float[M, K] y) <float[3] w = {1.0, 2.0, 3.0}> {
        s = Shape (x)
        n = Size (x)
        a = Add (x, w)
        y = If (c) <
            then_branch = t () => (float[P, Q] p) {
                l = Constant <value_ints = [-1, 3]> ()
                p = Reshape (a, l)
            },
            else_branch = e () => (float[R, S] q) { f = Flatten (a)  q = Mul (f, f) }
        >
    }
"""


def _model() -> ModelProto:
    return model_of(parser.parse_model(TEXT).SerializeToString())[0]


def _scope(model: ModelProto) -> Scope:
    scope = Scope(model.graph, {"ai.onnx": 17}, default_registry(), {})
    scope.defined_names.update(name for node in model.graph.node for name in node.output)
    return scope


def _operators(plan: Plan) -> list[object]:
    return [each.result.operators for each in plan.graph.changes]


@pytest.mark.parametrize("targets", [(16, 12, 9, 5, 3, 1), (1, 5, 13, 20), (20, 16, 12, 28)])
def test_plans_with_shared_facts_equal_plans_without(targets: tuple[int, ...]) -> None:
    model = _model()
    facts = SharedFacts(model.graph)
    for target in targets:
        options = Options.of(target)
        plan, shared = plan_with(model, options), plan_with(model, replace(options, shared_facts=facts))
        assert shared.refusals == plan.refusals
        assert _operators(shared) == _operators(plan)


def test_moves_facts_of_graphs_and_subgraphs_but_not_of_added_values() -> None:
    model = _model()
    branch = next(each.g for each in model.graph.node[3].attribute if each.name == "else_branch")
    first, second = _scope(model), _scope(model)
    first.added_constants["const"] = Tensor("int64", (2,), (3, 4))
    assert first.symbolic_shape("const") == (2,)
    assert first.constant("const") is not None
    first.symbolic_shape("a")
    first.child(branch).symbolic_shape("f")
    prefix = first.child(branch).value_prefix
    second.child(branch)
    facts = SharedFacts(model.graph)
    facts.move_to(first, {"const"})
    facts.move_to(second, set())
    assert second._shapes.is_known("a")
    assert second.child(branch)._shapes.is_known("f")
    assert not second._shapes.is_known("const")
    assert second.constant("const") is None
    assert second.child(branch).value_prefix == prefix


def test_moves_no_facts_to_other_graphs_or_with_other_constants() -> None:
    model = _model()
    first, other, freed = _scope(model), _scope(_model()), _scope(model)
    first.symbolic_shape("a")
    freed.constant_inputs = frozenset({"x"})
    facts = SharedFacts(model.graph)
    for each in (first, other, freed):
        facts.move_to(each, set())
    assert not other._shapes.is_known("a")
    assert not freed._shapes.is_known("a")
