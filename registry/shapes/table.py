"""The table of shape rules, by the name that definitions use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import MappingProxyType

from opshift.registry.errors import OpshiftError
from opshift.registry.shapes.context import Rule, Shape, ShapeContext

_RULES: dict[str, Rule] = {}
RULES: Mapping[str, Rule] = MappingProxyType(_RULES)
KEEPS_RANK: set[str] = set()
"""The rules whose first output has as many dimensions as the first input, if it is known at all."""


def rule(name: str, *, keeps_rank: bool = False) -> Callable[[Rule], Rule]:
    """Register a function as the rule `name`.

    Of its answer stays what a node can have: an entry for each output it lists, no dimension below zero.

    Raises:
        OpshiftError: another function has the name.
    """

    def register(function: Rule) -> Rule:
        if name in _RULES:
            both = " and ".join(f"{each.__module__}.{each.__qualname__}" for each in (_RULES[name], function))
            raise OpshiftError(f"shape rule {name!r} is both {both}", remedy="rename one of them")

        @wraps(function)
        def listed(node: ShapeContext) -> Sequence[Shape | None]:
            return [_possible(shape) for shape in function(node)][: node.output_count]

        _RULES[name] = listed
        if keeps_rank:
            KEEPS_RANK.add(name)
        return listed

    return register


def _possible(shape: Shape | None) -> Shape | None:
    for dim in shape or ():
        if dim is not None and dim < 0:
            return tuple(dim if dim is not None and dim >= 0 else None for dim in shape or ())
    return shape
