"""Table of shape rules, and the decorators that register functions as rules."""

from collections.abc import Callable, Sequence
from functools import wraps

from opshift.model.rule_table import RuleTable
from opshift.model.types import MAX_RANK, Shape
from opshift.registry.shape_context import InvalidFlag, ShapeContext

Shapes = Sequence[Shape | None]
"""The output shapes by position; missing trailing entries are unknown."""

ShapeRule = Callable[[ShapeContext], Shapes]

TABLE: RuleTable[ShapeRule] = RuleTable("opshift.registry.shapes")

SHAPE_RULES = TABLE.registered

KEEPS_RANK: set[str] = set()
"""Rules with the same rank for the first output and the first input, if the output rank is known."""


def rule(name: str, *, keeps_rank: bool = False) -> Callable[[ShapeRule], ShapeRule]:
    """Register a function as the rule that definitions call `name`; raise `DuplicateRule` if there is one.

    The result is limited to the outputs of the node, and negative dimensions become unknown, like shapes of
    more than `MAX_RANK` dimensions and those of rules that raise OverflowError. A rule keeps the rank if the
    first output has the rank of the first input, if its rank is known.
    """

    def register(function: ShapeRule) -> ShapeRule:
        @wraps(function)
        def checked_rule(node: ShapeContext) -> Shapes:
            try:
                return [_plausible(shape) for shape in function(node)][: node.output_count]
            except (InvalidFlag, OverflowError):
                return []

        TABLE.add(name, checked_rule, function)
        if keeps_rank:
            KEEPS_RANK.add(name)
        return checked_rule

    return register


def data_rule(
    name: str, *, keeps_rank: bool = False
) -> Callable[[Callable[[ShapeContext, Shape], Shapes]], ShapeRule]:
    """Register a function of the node and the shape of its first input, which has to be known."""

    def register(function: Callable[[ShapeContext, Shape], Shapes]) -> ShapeRule:
        @wraps(function)
        def infer(node: ShapeContext) -> Shapes:
            data = node.shape(0)
            return [] if data is None else function(node, data)

        return rule(name, keeps_rank=keeps_rank)(infer)

    return register


def _plausible(shape: Shape | None) -> Shape | None:
    if shape is not None and len(shape) > MAX_RANK:
        return None
    for dim in shape or ():
        if dim is not None and dim < 0:
            return tuple(dim if dim is not None and dim >= 0 else None for dim in shape or ())
    return shape
