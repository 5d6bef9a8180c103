"""Bernoulli came at 15: a number drawn evenly from 0 to 1 lies below the probability as often as it says."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME


@adapter("Bernoulli", 15, 14)
def draws_below_the_probability_are_ones(node: Node, out: Rewriter) -> None:
    """What is drawn differs from one runtime to another, as ever; its distribution is the same."""
    probability = node.inputs[0]
    number = BY_NAME[out.element_type(probability)].number
    seed = {name: value for name, value in node.attributes.items() if name == "seed"}
    drawn = out.emit("RandomUniformLike", [probability], dtype=number, low=0.0, high=1.0, **seed)
    is_one = out.emit("Less", [drawn, probability])
    out.emit("Cast", [is_one], node.outputs, to=node.attribute("dtype", number))
