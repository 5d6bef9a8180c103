"""Shape rules that consist of one expression."""

from opshift.registry.shapes.dims import dim_at
from opshift.registry.shapes.rule_table import ShapeRule, rule

KEEPING_RANK: dict[str, ShapeRule] = {
    "same_as_first": lambda node: [node.shape(0)],
    "all_same_as_first": lambda node: [node.shape(0)] * node.output_count,
    "pairwise": lambda node: [node.shape(position) for position in range(node.output_count)],
}

OTHERS: dict[str, ShapeRule] = {
    "same_as_second": lambda node: [node.shape(1)],
    "scalar": lambda node: [()],
    "stated": lambda node: [node.integers("shape")],
    # Outputs: the quantized input, a scalar scale and a scalar zero point.
    "dynamic_quantize": lambda node: [node.shape(0), (), ()],
    "window": lambda node: [(node.constant_integer(0),)],
    "multinomial": lambda node: [(dim_at(node.shape(0), 0), node.integer("sample_size", 1))],
    # One row per dimension of the input, and one column per nonzero element.
    "non_zero": lambda node: [(len(node.shape(0) or ()) or None, None)],
    # One row per selected box, with the indices of batch, class and box.
    "non_max_suppression": lambda node: [(None, 3)],
    # With reduction "none", one loss per label; log-probabilities have the shape of the scores.
    "loss": lambda node: [node.shape(1) if node.string("reduction") == "none" else (), node.shape(0)],
}

_FIXED_RANKS = {"scalar": 0, "window": 1, "multinomial": 2, "non_zero": 2, "non_max_suppression": 2}

for _name, _infer in KEEPING_RANK.items():
    rule(_name, keeps_rank=True)(_infer)
for _name, _infer in OTHERS.items():
    rule(_name, rank=_FIXED_RANKS.get(_name))(_infer)
