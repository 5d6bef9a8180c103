"""RNN, GRU and LSTM: whether time or batch comes first (from 14 on), and how `Y` is asked for (before 7)."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

STATES = (5, 6)
"""The inputs that hold initial states, which have a batch dimension, too."""
TUNED = frozenset({b"affine", b"leakyrelu", b"thresholdedrelu", b"scaledtanh", b"hardsigmoid", b"elu"})
"""Activations that have numbers of their own, whose defaults came with GRU-3."""


@adapter(("RNN", "GRU", "LSTM"), 14, 7)
def time_comes_first(node: Node, out: Rewriter) -> None:
    """With `layout` 1 the batch came first: data and states are transposed on their way in and out."""
    attributes = node.without("layout")
    if not node.attribute("layout", 0):
        out.become(node, attributes=attributes)
        return
    inputs = list(node.inputs)
    for position in (0, *STATES):
        if node.input(position):
            inputs[position] = out.emit("Transpose", [node.input(position)], perm=[1, 0, 2])
    outputs = [out.fresh(node.op_type.lower()) if name else "" for name in node.outputs]
    out.become(node, inputs=inputs, outputs=outputs, attributes=attributes)
    for position, (turned, name) in enumerate(zip(outputs, node.outputs, strict=True)):
        if name:
            perm = [1, 0, 2] if position else [2, 0, 1, 3]
            out.emit("Transpose", [turned], [name], perm=perm)


@adapter(("RNN", "LSTM"), 7, 1)
@adapter("GRU", 7, 3)
def sequence_is_asked_for(node: Node, out: Rewriter) -> None:
    """`Y` came out only if `output_sequence` was 1."""
    if node.output(0):
        out.become(node, attributes={**node.attributes, "output_sequence": 1})
    else:
        out.become(node)


@adapter("GRU", 3, 1)
def reset_comes_before_the_product(node: Node, out: Rewriter) -> None:
    """Version 1 had no `linear_before_reset`, always gave `Y_h`, and misspelt the default direction."""
    if node.attribute("linear_before_reset", 0):
        raise CannotConvert("linear_before_reset is 1, which GRU-1 does not know")
    tuned = TUNED & {name.lower() for name in node.attribute("activations", ())}
    if tuned and "activation_alpha" not in node.attributes:
        name = min(tuned).decode()
        raise CannotConvert(
            f"activation {name!r} uses the defaults of its operator, which GRU-1 does not have",
            remedy="state activation_alpha and activation_beta",
        )
    attributes = {"direction": b"forward", **node.without("linear_before_reset")}
    outputs = (node.output(0), node.output(1) or out.fresh("last"))
    out.become(node, outputs=outputs, attributes=attributes)
