"""What takes the place of a node in a model with functions: right for every call, and no call by mistake."""

from __future__ import annotations

from typing import Any, overload

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.converter.call_scope import CallScope
from opshift.converter.callers import View
from opshift.converter.pattern import Result
from opshift.converter.rewrite import Rewritten, Written
from opshift.registry.catalogue import LocalFunction
from opshift.registry.models import OperatorVersion
from opshift.registry.names import DEFAULT_DOMAIN, canonical_domain


@overload
def settled(node: Node, proto: Any, result: Rewritten, scope: CallScope) -> tuple[Node, Rewritten]: ...
@overload
def settled(node: Node, proto: Any, result: Result, scope: CallScope) -> tuple[Node, Result]: ...
def settled(node: Node, proto: Any, result: Result, scope: CallScope) -> tuple[Node, Result]:
    """The node as it stands, and what takes its place, with its references to attributes of the call.

    Raises:
        CannotConvert: some calls give what others leave out, or a new node has the name of a function.
    """
    original = node.original if isinstance(node, View) else node
    if isinstance(node, View):
        assert isinstance(result, Rewritten), "only nodes of the model are renamed"
        result = _restored(node, result)
    if result.is_same_as(original):
        return original, result
    callers = scope.functions.callers_of(scope)
    missing = callers.unsettled(original, scope) if callers else ""
    if missing:
        raise CannotConvert(
            f"{missing} is given by some calls of the function and left out by others",
            remedy="give it in every call, or in none",
        )
    _require_no_function(proto, result, scope)
    return original, result


def _restored(view: View, result: Rewritten) -> Rewritten:
    """With references where steps passed on what the call gives, and the node itself if it may stay."""
    if result.is_same_as(view) and _fits(view.original, result.nodes[0].operator):
        return result._replace(nodes=(result.nodes[0]._replace(node=view.original),))
    references = view.references()
    return result._replace(nodes=tuple(_referring(each, references) for each in result.nodes))


def _fits(node: Node, operator: OperatorVersion) -> bool:
    """Whether an operator has all the inputs and attributes that a node states."""
    return len(node.inputs) <= operator.max_input and node.attributes.keys() <= operator.attributes.keys()


def _require_no_function(proto: Any, result: Result, scope: CallScope) -> None:
    overload = getattr(proto, "overload", "")
    written = [
        LocalFunction(
            canonical_domain(each.node.domain), each.node.op_type, overload if each.successor else ""
        )
        for each in result.nodes
    ]
    if scope.new_constants:
        written.append(LocalFunction(DEFAULT_DOMAIN, "Constant"))
    taken = next((each for each in written if scope.functions.has(each)), None)
    if taken is not None:
        raise CannotConvert(
            f"it needs the operator {taken.name}, and a function of the model has that name",
            remedy=f"rename the function {taken.domain}.{taken.name}",
        )


def _referring(written: Written, references: dict[int, Any]) -> Written:
    node = written.node
    if not any(id(value) in references for value in node.attributes.values()):
        return written
    kept = {name: references.get(id(value), value) for name, value in node.attributes.items()}
    return written._replace(node=node.with_(attributes=kept))
