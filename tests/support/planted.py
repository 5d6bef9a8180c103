"""A deliberately wrong adapter."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from opshift.adapters.core.adapter_table import StepKey, adapter_table
from opshift.adapters.core.rewriter import Rewriter
from opshift.converter.rewrite.routes import Router
from opshift.model.node import Node
from opshift.registry.registry import Registry

if TYPE_CHECKING:
    import pytest


def install_wrong_clip(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every conversion use a table with a Clip 6 -> 11 adapter that doubles the upper limit."""
    table = {**adapter_table(), StepKey("ai.onnx", "Clip", 6, 11): _wrong_clip}

    def router(registry: Registry, targets: Iterable[tuple[str, int]]) -> Router:
        return Router(registry, table, dict(targets))

    monkeypatch.setattr("opshift.converter.survey.node_analysis.router_for", router)


def _wrong_clip(node: Node, out: Rewriter) -> None:
    limits = [out.constant(node.attribute("min"), "float"), out.constant(2 * node.attribute("max"), "float")]
    out.replace(node, inputs=[node.inputs[0], *limits], attributes={})
