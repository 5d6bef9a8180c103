"""If: before opset 11 the branches must return equal shapes, not only equal types."""

from __future__ import annotations

from opshift.adapters import CannotConvert, Node, Rewriter, adapter, require_supported_types
from opshift.model.messages import GraphProto
from opshift.model.node import Dims, Graph


@adapter("If", 11, 1)
def refuse_different_branch_shapes(node: Node, out: Rewriter) -> None:
    """Refuse branches with known, different output shapes; runtimes do not check unknown shapes."""
    require_supported_types(node, out)
    branches = (_shapes(node.attribute(name), out) for name in ("then_branch", "else_branch"))
    for name, then_dims, else_dims in zip(node.outputs, *branches, strict=False):
        if _differ(then_dims, else_dims):
            raise CannotConvert(
                f"the shapes of {name!r} differ between the branches: "
                f"{_format(then_dims)} and {_format(else_dims)}",
                remedy="reshape or pad the output of one branch to the shape of the other",
            )
    out.replace(node)


def _shapes(graph: Graph | GraphProto, out: Rewriter) -> list[Dims]:
    """Return the shapes of a branch's outputs, inferred unless an adapter emitted the branch."""
    if isinstance(graph, Graph):
        return [each.dims for each in graph.outputs]
    return [out.facts.nested_shape(graph, value.name) for value in graph.output]


def _differ(first: Dims, second: Dims) -> bool:
    if first is None or second is None:
        return False
    pairs = zip(first, second, strict=False)
    return len(first) != len(second) or any(a != b and None not in (a, b) for a, b in pairs)


def _format(dims: Dims) -> str:
    return f"({', '.join('?' if dim is None else str(dim) for dim in dims or ())})"
