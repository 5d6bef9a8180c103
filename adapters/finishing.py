"""The end of a chain of emitted nodes: its value takes the name that the node gave."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter


def finish(value: str, node: Node, out: Rewriter) -> None:
    """Let the node emitted last, if it makes `value`, make the original's first output instead."""
    last = out.emitted[-1] if out.emitted else None
    if last is None or last.node.outputs != (value,):
        out.emit("Identity", [value], node.outputs[:1], opset=1)
        return
    out.emitted[-1] = last._replace(node=last.node.with_(outputs=node.outputs[:1]))
