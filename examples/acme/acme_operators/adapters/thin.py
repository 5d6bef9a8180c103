"""Adapter of com.acme.Thin, which older opsets of com.acme express by an operator of ONNX."""

from __future__ import annotations

from opshift.adapters import Node, Rewriter, adapter

LAST = 2**63 - 1
"""The end of a Slice to the last row."""


@adapter("Thin", 2, 1, domain="com.acme")
def express_by_slice(node: Node, out: Rewriter) -> None:
    """Replace the node by a Slice of ONNX; it is written for opset 13, and converted further from there."""
    stride = node.attribute("stride", 2)
    settings = [out.int64([value]) for value in (0, LAST, 0, stride)]
    out.emit("Slice", [node.inputs[0], *settings], node.outputs, domain="", opset=13)
