"""Names for adapters outside the project, and the deprecated modules that held them."""

from __future__ import annotations

import importlib
import sys

import pytest

import opshift.adapters
from opshift.adapters.core.adapter_table import adapter, load_adapters
from opshift.adapters.core.rewriter import Rewriter
from opshift.adapters.core.type_guard import require_supported_types
from opshift.model.errors import CannotConvert
from opshift.model.node import Emitted, Graph, Node, Tensor, Value

EXPORTS = {
    "adapter": adapter,
    "load_adapters": load_adapters,
    "Rewriter": Rewriter,
    "CannotConvert": CannotConvert,
    "Node": Node,
    "Tensor": Tensor,
    "Graph": Graph,
    "Value": Value,
    "Emitted": Emitted,
    "require_supported_types": require_supported_types,
}

ALIASES = {
    "node": ("Node", "Tensor"),
    "refusal": ("CannotConvert",),
    "rewriter": ("Rewriter",),
    "table": ("adapter",),
}


@pytest.mark.parametrize("name", EXPORTS)
def test_exports_the_names_that_adapters_need(name: str) -> None:
    assert getattr(opshift.adapters, name) is EXPORTS[name]


@pytest.mark.parametrize("module", ALIASES)
def test_deprecated_modules_warn_and_hold_the_same_objects(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"opshift.adapters.{module}"
    monkeypatch.delitem(sys.modules, path, raising=False)
    with pytest.warns(DeprecationWarning, match=f"{path} is deprecated"):
        alias = importlib.import_module(path)
    for name in ALIASES[module]:
        assert getattr(alias, name) is EXPORTS[name]
