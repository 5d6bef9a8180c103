"""Table of shape rules, by the names that definitions use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import MappingProxyType

from opshift.registry.errors import OpshiftError
from opshift.registry.shapes.context import Rule, Shape, ShapeContext

_RULES: dict[str, Rule] = {}
RULES: Mapping[str, Rule] = MappingProxyType(_RULES)
KEEPS_RANK: set[str] = set()
"""Rules with the same rank for the first output and the first input, if the output rank is known."""


def rule(name: str, *, keeps_rank: bool = False) -> Callable[[Rule], Rule]:
    """Register a function as the shape rule `name`.

    The result is limited to the outputs of the node, and negative dimensions become unknown.

    Args:
        name: the value of `shape` in definitions.
        keeps_rank: whether the first output has the rank of the first input, if its rank is known.

    Raises:
        OpshiftError: the name is already registered.
    """

    def register(function: Rule) -> Rule:
        if name in _RULES:
            both = " and ".join(f"{each.__module__}.{each.__qualname__}" for each in (_RULES[name], function))
            raise OpshiftError(f"shape rule {name!r} is defined by both {both}", remedy="rename one of them")

        @wraps(function)
        def checked_rule(node: ShapeContext) -> Sequence[Shape | None]:
            return [_without_negative_dims(shape) for shape in function(node)][: node.output_count]

        _RULES[name] = checked_rule
        if keeps_rank:
            KEEPS_RANK.add(name)
        return checked_rule

    return register


def _without_negative_dims(shape: Shape | None) -> Shape | None:
    for dim in shape or ():
        if dim is not None and dim < 0:
            return tuple(dim if dim is not None and dim >= 0 else None for dim in shape or ())
    return shape
