"""Refuse a node whose values have types that the other version of its operator lacks."""

from __future__ import annotations

from collections.abc import Callable

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.registry.models import OperatorVersion, Parameter

Lost = dict[int, frozenset[str]]


def lost_types(source: OperatorVersion, target: OperatorVersion) -> tuple[Lost, Lost]:
    """By position of input and of output: the types that the source takes and the target does not."""
    return (
        _lost(source, source.inputs, target, target.inputs),
        _lost(source, source.outputs, target, target.outputs),
    )


def type_guard(source: OperatorVersion, target: OperatorVersion) -> Callable[[Node, Rewriter], None] | None:
    """The guard between two versions; `None` if the target takes every type that the source takes."""
    inputs, outputs = lost_types(source, target)
    if not inputs and not outputs:
        return None

    def guard(node: Node, out: Rewriter) -> None:
        for lost, names in ((inputs, node.inputs), (outputs, node.outputs)):
            for position, types in lost.items():
                if position < len(names):
                    _check(names[position], types, target, out)

    return guard


def _check(name: str, types: frozenset[str], target: OperatorVersion, out: Rewriter) -> None:
    known = out.known_element_type(name)
    spelled = known if known is None or "(" in known else f"tensor({known})"
    if spelled in types:
        raise CannotConvert(
            f"{name!r} is {spelled}, which {target.id} does not take",
            remedy="cast the value around the node to a type it takes, if that keeps its range and precision",
        )


def _lost(
    source: OperatorVersion,
    old: tuple[Parameter, ...],
    target: OperatorVersion,
    new: tuple[Parameter, ...],
) -> Lost:
    found = {}
    for position, (before, after) in enumerate(zip(old, new, strict=False)):
        types = frozenset(source.types_of(before)) - frozenset(target.types_of(after))
        if types:
            found[position] = types
    return found
