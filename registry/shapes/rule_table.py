"""Table of shape rules, and the decorators that register functions as rules."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from itertools import chain

from opshift.model.errors import OpshiftError
from opshift.model.extensions import FAILURES, extension_failed, is_external
from opshift.model.rule_table import RuleTable
from opshift.model.types import MAX_RANK, Shape
from opshift.registry.shapes.shape_context import InvalidFlag, ShapeContext

Shapes = Sequence[Shape | None]
"""The output shapes by position; missing trailing entries are unknown."""

ShapeRule = Callable[[ShapeContext], Shapes]

TABLE: RuleTable[ShapeRule] = RuleTable("opshift.registry.shapes")

SHAPE_RULES = TABLE.registered

KEEPS_RANK: set[str] = set()
"""Names of rules whose first output has the rank of the first input, if the output rank is inferred."""

FIXED_RANKS: dict[str, int] = {}
"""Rank of the first output, by rule, for rules that always infer the same rank."""

RANKING_LISTS: dict[str, str] = {}
"""Name of the attribute or input with one element per dimension of the first output, by rule."""

RANK_INPUTS: dict[str, tuple[int, ...]] = {}
"""By rule: positions of the inputs whose ranks and, for lists, lengths determine all output ranks."""


def rule(
    name: str,
    *,
    keeps_rank: bool = False,
    rank: int | None = None,
    ranking_list: str = "",
    rank_inputs: tuple[int, ...] | None = None,
) -> Callable[[ShapeRule], ShapeRule]:
    """Register a function as the rule that definitions call `name`; raise `DuplicateRule` if there is one.

    Shapes beyond the node's outputs are dropped. Negative dimensions, and shapes of more than `MAX_RANK`
    dimensions, become unknown, and so do all shapes if the rule raises InvalidFlag or OverflowError. Other
    exceptions of private rules, except OpshiftError, become `ExtensionFailed`.

    Args:
        name: name of the rule.
        keeps_rank: whether the first output has the rank of the first input, if the output rank is inferred.
        rank: rank of the first output, if it is always the same.
        ranking_list: name of the attribute or input with one element per dimension of the first output.
        rank_inputs: positions of the inputs whose ranks, together with the number of elements of the inputs
            that are lists, determine the ranks of the outputs; `None` if other facts are needed.
    """

    def register(function: ShapeRule) -> ShapeRule:
        infer = _private_rule(name, function) if is_external(function) else function

        @wraps(function)
        def checked_rule(node: ShapeContext) -> Shapes:
            try:
                return [_without_invalid_dims(shape) for shape in infer(node)][: node.output_count]
            except (InvalidFlag, OverflowError):
                return []

        TABLE.add(name, checked_rule, function)
        if keeps_rank:
            KEEPS_RANK.add(name)
        if rank is not None:
            FIXED_RANKS[name] = rank
        if ranking_list:
            RANKING_LISTS[name] = ranking_list
        if rank_inputs is not None:
            RANK_INPUTS[name] = rank_inputs
        return checked_rule

    return register


@contextmanager
def temporary_rules() -> Iterator[None]:
    """Context manager that, at its end, removes the rules that were registered inside."""
    before = set(SHAPE_RULES)
    try:
        yield
    finally:
        for name in SHAPE_RULES.keys() - before:
            TABLE.remove(name)
            KEEPS_RANK.discard(name)
            for facts in (FIXED_RANKS, RANKING_LISTS, RANK_INPUTS):
                facts.pop(name, None)


def data_rule(
    name: str, *, keeps_rank: bool = False, rank_inputs: tuple[int, ...] | None = None
) -> Callable[[Callable[[ShapeContext, Shape], Shapes]], ShapeRule]:
    """Register a rule that also gets the shape of input 0; if this is unknown, so are all output shapes."""

    def register(function: Callable[[ShapeContext, Shape], Shapes]) -> ShapeRule:
        @wraps(function)
        def infer(node: ShapeContext) -> Shapes:
            data = node.shape(0)
            return [] if data is None else function(node, data)

        return rule(name, keeps_rank=keeps_rank, rank_inputs=rank_inputs)(infer)

    return register


def _private_rule(name: str, function: ShapeRule) -> ShapeRule:
    """Return a rule that raises `ExtensionFailed` if a private rule fails or returns an invalid dimension."""

    def infer(node: ShapeContext) -> Shapes:
        label = f"node {node.version.id}"
        try:
            shapes = list(function(node))
            lists = [None if shape is None else tuple(shape) for shape in shapes]
        except (InvalidFlag, OverflowError, OpshiftError):
            raise
        except FAILURES as error:
            raise extension_failed(f"shape rule {name}", function, error, label) from error
        for dim in chain.from_iterable(filter(None, lists)):
            if dim is not None and type(dim) is not int:
                problem = f"returns the dimension {dim!r}, which is not an integer"
                raise extension_failed(f"shape rule {name}", function, problem, label)
        return lists

    return infer


def _without_invalid_dims(shape: Shape | None) -> Shape | None:
    if shape is not None and len(shape) > MAX_RANK:
        return None
    for dim in shape or ():
        if dim is not None and dim < 0:
            return tuple(dim if dim is not None and dim >= 0 else None for dim in shape or ())
    return shape
