"""Values that steps create: constants share names, and inference knows all of them."""

from __future__ import annotations

import numpy as np
import pytest
from support.execution import build

from opshift.inference.scope import Scope
from opshift.model.node import Node, Tensor
from opshift.model.operator_ids import opset_imports
from opshift.registry.registry import default_registry
from opshift.rewriting.fact_recorder import FactRecorder
from opshift.rewriting.workspace import Allowances, FreshNames, Workspace

FLOAT = 1


@pytest.fixture
def workspace() -> Workspace:
    """Return the workspace of a graph with the input `x`."""
    model = build([], {"x": np.ones((2, 3), np.float32)}, [], {"": 13})
    scope = Scope(model.graph, opset_imports(model.opset_import), default_registry(), {})
    names = FreshNames()
    names.sources.append(scope.used_names)
    return Workspace(scope, names, Allowances())


def test_infers_emitted_values(workspace: Workspace) -> None:
    scope = workspace.scope
    name, constant = workspace.fresh("shape"), workspace.fresh("cast")
    workspace.add_emitted(Node("Shape", ["x"], [name], {}), 13)
    workspace.add_emitted(Node("Cast", [name], [constant], {"to": FLOAT}), 13)
    assert (scope.element_type(name), scope.shape(name)) == ("int64", (2,))
    assert (scope.element_type(constant), scope.shape(constant)) == ("float", (2,))


def test_only_equal_constants_share_a_name(workspace: Workspace) -> None:
    name = workspace.add_constant(Tensor("float", (1,), (0.0,)))
    assert workspace.add_constant(Tensor("float", (1,), (0.0,))) == name
    others = [
        Tensor("float", (1,), (-0.0,)),
        Tensor("float", (), (0.0,)),
        Tensor("double", (1,), (0.0,)),
        Tensor("float", (1,), (float("nan"),)),
    ]
    assert len({name, *map(workspace.add_constant, others)}) == 5
    again = workspace.add_constant(Tensor("float", (1,), (float("nan"),)))
    assert workspace.add_constant(others[3]) == again


def test_infers_added_constants(workspace: Workspace) -> None:
    tensor = Tensor("int64", (2,), (1, 2))
    name, scope = workspace.add_constant(tensor), workspace.scope
    assert (scope.constant(name), scope.element_type(name), scope.shape(name)) == (tensor, "int64", (2,))


def test_fresh_names_are_unused(workspace: Workspace) -> None:
    assert workspace.fresh("x") == "x_1"


@pytest.mark.parametrize("ranks", [(0, None), (None, 0), (None, 2, None)])
def test_keeps_known_ranks(workspace: Workspace, ranks: tuple[int | None, ...]) -> None:
    recorder = FactRecorder(workspace, ("x",), 1)
    for rank in ranks:
        recorder.declare_shape("x", rank)
    expected = next(rank for rank in ranks if rank is not None)
    assert recorder.shaped == workspace.shaped == {"x": expected}
