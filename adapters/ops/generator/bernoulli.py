"""Bernoulli (introduced in opset 15), as a comparison with uniform random numbers."""

from opshift.adapters import Node, Rewriter, adapter
from opshift.model.element_types import BY_NAME


@adapter("Bernoulli", 15, 14)
def replace_bernoulli_by_comparison(node: Node, out: Rewriter) -> None:
    """Replace Bernoulli by RandomUniformLike and Less: same distribution, different random values."""
    probability = node.inputs[0]
    number = BY_NAME[out.element_type(probability)].number
    seed = {name: value for name, value in node.attributes.items() if name == "seed"}
    uniform = out.emit("RandomUniformLike", [probability], dtype=number, low=0.0, high=1.0, **seed)
    is_one = out.emit("Less", [uniform, probability])
    out.emit("Cast", [is_one], node.outputs, to=node.attribute("dtype", number))
