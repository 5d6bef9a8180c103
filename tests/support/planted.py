"""An adapter that is wrong on purpose."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import Pair, adapter_table
from opshift.converter.route import Router
from opshift.registry.catalogue import Registry

if TYPE_CHECKING:
    import pytest


def plant_wrong_clip(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every conversion go by a table in which Clip 6 -> 11 doubles the upper limit."""
    table = {**adapter_table(), Pair("ai.onnx", "Clip", 6, 11): _wrong_clip}

    def router(registry: Registry, targets: Iterable[tuple[str, int]]) -> Router:
        return Router(registry, table, dict(targets))

    monkeypatch.setattr("opshift.converter.standings.router_for", router)


def _wrong_clip(node: Node, out: Rewriter) -> None:
    limits = [out.constant(node.attribute("min"), "float"), out.constant(2 * node.attribute("max"), "float")]
    out.become(node, inputs=[node.inputs[0], *limits], attributes={})
