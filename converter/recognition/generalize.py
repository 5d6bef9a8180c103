"""Generalize two expansions of an operator to the nodes of a pattern, with holes for its attributes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from opshift.converter.recognition.constant_comparison import elements_of
from opshift.converter.recognition.expansion import ExactGraph, InputFact, SubgraphDigest
from opshift.converter.recognition.patterns import (
    FUNCTIONS,
    Constant,
    Element,
    Hole,
    InputRef,
    NodeRef,
    PatternNode,
    Ref,
)

Sides = tuple[Mapping[str, Any], Mapping[str, Any]]
"""Attributes in the first and in the second expansion."""

SideInputs = tuple[tuple[InputFact | None, ...], tuple[InputFact | None, ...]]
"""Inputs in the first and in the second expansion."""


class Setting(NamedTuple):
    """Attributes and inputs of a node in both expansions; `fixed` has the attributes with equal values."""

    attributes: Sides
    fixed: Mapping[str, Any]
    inputs: SideInputs


AttributePair = tuple[str, Any, Any]
"""Name of an attribute that constants have to determine, and its value in each expansion."""


def generalized(
    graphs: list[ExactGraph], setting: Setting
) -> tuple[tuple[PatternNode, ...], Mapping[int, NodeRef], Mapping[str, str]] | None:
    """Return the shared nodes, outputs and `copies`; `None` if nodes differ or an attribute stays unknown."""
    first, second = graphs
    if len(first.nodes) != len(second.nodes) or first.outputs != second.outputs:
        return None
    holes = [
        (name, *(side[name] for side in setting.attributes))
        for name in setting.attributes[0]
        if name not in setting.fixed
    ]
    nodes = _nodes(first, second, holes)
    if nodes is None:
        return None
    unsolved = _unsolved(nodes, holes)
    solved = [each for each in holes if each[0] not in unsolved]
    pairs = {name: pair for name, *pair in holes if name in unsolved}
    copies = {name: other for name, pair in pairs.items() for other, *known in solved if known == pair}
    rest = [each for each in holes if each[0] in unsolved - copies.keys()]
    if rest:
        factors = [*_factors(rest, solved)]
        nodes = _nodes(first, second, [*holes, *factors]) if factors else None
        if nodes is None or _unsolved(nodes, factors) or len(factors) < len(rest):
            return None
    return tuple(nodes), first.outputs, copies


def _nodes(first: ExactGraph, second: ExactGraph, holes: Sequence[AttributePair]) -> list[PatternNode] | None:
    nodes = []
    for a, b in zip(first.nodes, second.nodes, strict=True):
        if a[:2] != b[:2] or a.slots.keys() != b.slots.keys():
            return None
        slots: dict[str, Ref] = {}
        for slot, one in a.slots.items():
            other = b.slots[slot]
            is_value = isinstance(one, InputRef | NodeRef)
            if is_value != isinstance(other, InputRef | NodeRef) or (is_value and one != other):
                return None
            slots[slot] = one if is_value else _constant(one, other, holes)
        nodes.append(PatternNode(*a[:2], slots))
    return nodes


def _factors(unsolved: Sequence[AttributePair], solved: Sequence[AttributePair]) -> Iterator[AttributePair]:
    """Yield the quotient of each unsolved attribute and the first solved one that divides it, see `Hole`."""
    for name, *pair in unsolved:
        for other, *known in solved:
            numbers = (*pair, *known)
            if all(isinstance(each, int) and each > 0 for each in numbers) and not (
                pair[0] % known[0] or pair[1] % known[1]
            ):
                yield f"{name} / {other}", pair[0] // known[0], pair[1] // known[1]
                break


def _unsolved(nodes: Sequence[PatternNode], holes: Sequence[AttributePair]) -> set[str]:
    """Return the attributes that no constant determines."""
    constants = [ref for node in nodes for ref in node.slots.values() if isinstance(ref, Constant)]
    found = {each.whole for each in constants}
    found.update(e.attribute for each in constants for e in each.elements or () if isinstance(e, Hole))
    return {name for name, _, _ in holes} - found


def _constant(one: Any, other: Any, holes: Sequence[AttributePair]) -> Constant:
    """Return a constant that matches both, with a `Hole` for each element that an attribute determines."""
    if isinstance(one, SubgraphDigest):  # not stored: digests do not compress, and `Candidate` checks them
        return Constant()
    first, second = tuple(elements_of(one)), tuple(elements_of(other))
    if len(first) > 64 or any(isinstance(each, bytes) for each in first):
        is_same = len(first) == 1 and first == second
        return Constant((first[0].decode(),)) if is_same and isinstance(first[0], bytes) else Constant()
    for name, a, b in holes:
        if isinstance(a, tuple) and first == a and second == b:
            return Constant(whole=name)
    if len(first) != len(second):
        return Constant()
    elements = tuple(_element(a, b, holes) for a, b in zip(first, second, strict=True))
    return Constant(elements)


def _element(a: Any, b: Any, holes: Sequence[AttributePair]) -> Element:
    if a == b or (a != a and b != b):
        element: Element = a
        return element
    for name, one, other in holes:
        if not isinstance(one, tuple):
            for function, (apply, _) in FUNCTIONS.items():
                if _is_close(a, one, apply) and _is_close(b, other, apply):
                    return Hole(name, function)
    return None


def _is_close(element: Any, attribute: Any, apply: Any) -> bool:
    try:
        return math.isclose(element, apply(attribute), rel_tol=1e-3 if isinstance(element, float) else 0)
    except (ArithmeticError, ValueError, TypeError):
        return False
