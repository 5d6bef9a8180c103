"""Shapes of inputs that some versions of an operator do not allow, although their definitions are equal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

from opshift.model.node import Node
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.model.types import Shape
from opshift.registry.models import OperatorVersion

Shapes = Sequence[Shape | None]
"""Known shapes of the inputs of a node."""


def shape_violation(node: Node, shapes: Shapes, version: OperatorVersion) -> str:
    """Return the reason why an operator version does not allow the shapes of the inputs, or an empty text."""
    rule = SHAPE_VIOLATIONS.get((canonical_domain(node.domain), node.op_type))
    return rule(node, shapes, version) if rule and shapes else ""


def _group_normalization(node: Node, shapes: Shapes, version: OperatorVersion) -> str:
    data, *others = shapes
    groups = node.attribute("num_groups", 0)
    channels = data[1] if data is not None and len(data) > 1 else None
    is_per_group = version.since_version < 21
    wanted = groups if is_per_group else channels
    for name, shape in zip(node.inputs[1:3], others, strict=False):
        size = shape[0] if shape is not None and len(shape) == 1 else None
        if size is not None and wanted is not None and size != wanted:
            unit = "group" if is_per_group else "channel"
            return f"{name!r} has {size} elements, where {version.id} requires one per {unit} ({wanted})"
    return ""


def _broadcast(node: Node, shapes: Shapes, version: OperatorVersion) -> str:
    is_limited = version.since_version < (8 if node.op_type in VARIADIC else 7)
    if not is_limited or node.attribute("broadcast", 0):
        return ""
    for one, other in pairwise(shapes):
        if one is None or other is None:
            continue
        sizes = zip(one, other, strict=False)
        if len(one) != len(other) or any(None not in pair and pair[0] != pair[1] for pair in sizes):
            return f"the shapes of its inputs differ, which {version.id} does not allow"
    return ""


def _scale_rank(node: Node, shapes: Shapes, version: OperatorVersion) -> str:
    scale = shapes[1] if len(shapes) > 1 else None
    if scale is None or version.since_version >= 13 or all(size == 1 for size in scale):
        return ""
    return f"{node.inputs[1]!r} is not a scalar, which {version.id} requires"


VARIADIC: Final = ("Max", "Mean", "Min", "Sum")

_BINARY: Final = ("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor")

SHAPE_VIOLATIONS: Final[dict[tuple[str, str], Callable[[Node, Shapes, OperatorVersion], str]]] = {
    (DEFAULT_DOMAIN, name): rule
    for rule, names in (
        (_group_normalization, ("GroupNormalization",)),
        (_broadcast, (*VARIADIC, *_BINARY)),
        (_scale_rank, ("DequantizeLinear", "QuantizeLinear")),
    )
    for name in names
}
"""Rules by domain and operator."""
