"""Detection of models with random outputs, which differ between runs and cannot be compared."""

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
"""Operators that generate random numbers; even a seed determines them for one runtime only."""
WITHOUT_TRAINING = 7
"""Since this version, Dropout has no training mode."""
TRAINING_AS_INPUT = 12
"""Since this version, an input of Dropout selects the training mode."""


def require_repeatable(model: Any) -> None:
    """Check that a model does not generate random numbers.

    Raises:
        CannotVerify: a node generates random numbers.
    """
    for part in parts_of(model):
        for proto in part.container.node:
            if canonical_domain(proto.domain) != DEFAULT_DOMAIN:
                continue
            if proto.op_type in RANDOM or (
                proto.op_type == "Dropout" and _may_be_random(Node.of(proto), part)
            ):
                raise CannotVerify(
                    f"{proto.op_type} generates random numbers, so the outputs of two runs differ",
                    place=f"node {label(proto.name, proto.op_type, proto.output)}",
                    remedy="compare the distributions of both models' outputs yourself",
                )


def _may_be_random(node: Node, part: Part) -> bool:
    opset = part.opsets.get(DEFAULT_DOMAIN, 1)
    if opset < WITHOUT_TRAINING:
        return not node.attribute("is_test", 0)
    if opset < TRAINING_AS_INPUT or not node.input(2):
        return False
    training = part.constant(node.input(2))
    return training is None or any(training.values)
