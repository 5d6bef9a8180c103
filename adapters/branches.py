"""If: before 11 the outputs of both branches had to have the same shape, not only the same type."""

from __future__ import annotations

from typing import Any

from opshift.adapters.bodies import Graph
from opshift.adapters.legal_types import require_types
from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

Dims = tuple[int | None, ...] | None


@adapter("If", 11, 1)
def branches_agree_in_shape(node: Node, out: Rewriter) -> None:
    """Refused where shapes are known and differ; runtimes take what is not known on trust."""
    require_types(node, out)
    branches = (_shapes(node.attribute(name), out) for name in ("then_branch", "else_branch"))
    for name, one, other in zip(node.outputs, *branches, strict=False):
        if _differ(one, other):
            raise CannotConvert(
                f"the branches give {name!r} different shapes, {_text(one)} and {_text(other)}",
                remedy="reshape or pad one of them, so that both are alike",
            )
    out.become(node)


def _shapes(graph: Any, out: Rewriter) -> list[Dims]:
    """What a graph says of its outputs, and else what follows from its nodes."""
    if isinstance(graph, Graph):
        return [each.dims for each in graph.outputs]
    return [out.facts.shape_within(graph, value.name) for value in graph.output]


def _differ(one: Dims, other: Dims) -> bool:
    if one is None or other is None:
        return False
    pairs = zip(one, other, strict=False)
    return len(one) != len(other) or any(a != b and None not in (a, b) for a, b in pairs)


def _text(dims: Dims) -> str:
    return f"({', '.join('?' if dim is None else str(dim) for dim in dims or ())})"
