"""What the tests of a model's facts share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from opshift.converter.concessions import Concessions
from opshift.converter.names import Names
from opshift.converter.opsets import opset_imports
from opshift.converter.scope import Scope, Standing
from opshift.converter.survey import survey
from opshift.registry.catalogue import default_registry


@pytest.fixture
def scope_of() -> Callable[..., Scope]:
    """The facts about a graph or function, as the planner knows them after its look at every node."""

    def make(container: Any, imports: Any, parent: Scope | None = None) -> Scope:
        opsets = opset_imports(imports)
        scope = Scope(container, opsets, default_registry(), Names(), Concessions(), {}, parent)
        survey(scope, "graph", lambda node, here: Standing(has_step=False, has_graphs=True))
        return scope

    return make
