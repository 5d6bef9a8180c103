"""Deliberately wrong adapters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from opshift.adapters.core.adapter_table import Adapter, StepKey, adapter_table
from opshift.adapters.core.rewriter import Rewriter
from opshift.model.node import Node
from opshift.registry.registry import Registry
from opshift.rewriting.routes import Router

if TYPE_CHECKING:
    import pytest


def install_wrong_clip(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every conversion use a table with a Clip 6 -> 11 adapter that doubles the upper limit."""
    _install(monkeypatch, StepKey("ai.onnx", "Clip", 6, 11), _wrong_clip)


def install_wrong_adapter(
    monkeypatch: pytest.MonkeyPatch, op_type: str, source: int, target: int, error: float = 1
) -> None:
    """Make every conversion use a table whose adapter of a step adds an error to the last output."""
    key = StepKey("ai.onnx", op_type, source, target)
    correct = adapter_table()[key]

    def wrong(node: Node, out: Rewriter) -> None:
        computed = out.fresh("computed")
        correct(node.with_(outputs=[*node.outputs[:-1], computed]), out)
        one = out.constant(error, out.known_element_type(node.outputs[-1]) or "float", rank=0)
        out.emit("Add", [computed, one], [node.outputs[-1]])

    _install(monkeypatch, key, wrong)


def _install(monkeypatch: pytest.MonkeyPatch, key: StepKey, adapter: Adapter) -> None:
    table = {**adapter_table(), key: adapter}

    def router(registry: Registry, targets: Iterable[tuple[str, int]], without: object = ()) -> Router:
        return Router(registry, table, dict(targets))

    monkeypatch.setattr("opshift.converter.plan.node_analysis.router_for", router)


def _wrong_clip(node: Node, out: Rewriter) -> None:
    limits = [out.constant(node.attribute("min"), "float"), out.constant(2 * node.attribute("max"), "float")]
    out.replace(node, inputs=[node.inputs[0], *limits], attributes={})
