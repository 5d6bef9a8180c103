"""Rename the result of a chain of emitted nodes to the output of the original node."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter


def finish(value: str, node: Node, out: Rewriter) -> None:
    """Rename `value` to the first output of the original node.

    If the last emitted node has `value` as its only output, that output is renamed; otherwise an Identity is
    emitted.
    """
    last = out.emitted[-1] if out.emitted else None
    if last is None or last.node.outputs != (value,):
        out.emit("Identity", [value], node.outputs[:1], opset=1)
        return
    # Renaming saves an Identity node, and is safe: no emitted node can read the output of the last one.
    out.emitted[-1] = last._replace(node=last.node.with_(outputs=node.outputs[:1]))
