"""Models whose outputs differ from run to run cannot be compared by running them."""

from __future__ import annotations

from typing import Any

from opshift.adapters.node import Node
from opshift.converter.survey import label
from opshift.converter.verification.parts import Part, parts_of
from opshift.converter.verification.result import CannotVerify
from opshift.registry.names import DEFAULT_DOMAIN, canonical_domain

RANDOM = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
"""They draw numbers; even a seed fixes these for one runtime only."""
WITHOUT_TRAINING = 7
"""From this version on Dropout cannot drop anything,"""
TRAINING_AS_INPUT = 12
"""until from this one on an input tells."""


def require_repeatable(model: Any) -> None:
    """Check that nothing in a model is drawn at random.

    Raises:
        CannotVerify: something is.
    """
    for part in parts_of(model):
        for proto in part.container.node:
            if canonical_domain(proto.domain) != DEFAULT_DOMAIN:
                continue
            if proto.op_type in RANDOM or (proto.op_type == "Dropout" and _may_drop(Node.of(proto), part)):
                raise CannotVerify(
                    f"{proto.op_type} draws at random, so two runs differ",
                    place=f"node {label(proto.name, proto.op_type, proto.output)}",
                    remedy="compare the distributions of both models' outputs yourself",
                )


def _may_drop(node: Node, part: Part) -> bool:
    opset = part.opsets.get(DEFAULT_DOMAIN, 1)
    if opset < WITHOUT_TRAINING:
        return not node.attribute("is_test", 0)
    if opset < TRAINING_AS_INPUT or not node.input(2):
        return False
    training = part.constant(node.input(2))
    return training is None or any(training.values)
