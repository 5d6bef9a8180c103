"""Fixtures for tests of inferred types, shapes and constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from opshift.inference.facts import OperatorStatus
from opshift.inference.scope import Scope
from opshift.inference.survey import survey
from opshift.model.operator_ids import opset_imports
from opshift.registry.registry import default_registry


@pytest.fixture
def scope_of() -> Callable[..., Scope]:
    """Return a function that builds the scope of a graph or function and classifies its nodes."""

    def make(container: Any, imports: Any, parent: Scope | None = None) -> Scope:
        opsets = opset_imports(imports)
        scope = Scope(container, opsets, default_registry(), {}, parent)
        survey(scope, "graph", lambda node, inner: OperatorStatus(has_step=False, has_graphs=True))
        return scope

    return make
