"""Attribute references of rewritten nodes in functions, and checks that a rewrite is valid for every call."""

from collections.abc import Mapping

from opshift.inference.call_facts import ResolvedNode
from opshift.inference.function_scope import CallScope
from opshift.inference.scope import Scope
from opshift.model.errors import CannotConvert
from opshift.model.messages import NodeProto
from opshift.model.node import Node
from opshift.model.operator_ids import DEFAULT_DOMAIN, LocalFunction, canonical_domain, overload_of
from opshift.rewriting.cached_rewrite import NodeRewrite
from opshift.rewriting.result import ComputedRewrite, ConvertedNode


def restore_references(result: NodeRewrite, proto: NodeProto, scope: Scope) -> NodeRewrite:
    """Restore the attribute references (`ref_attr_name`) in the rewrite of a node of a function.

    Raise CannotConvert if only some calls provide an input or attribute of the node, or if a new node would
    call a function of the model by mistake.
    """
    if isinstance(result, ComputedRewrite) and isinstance(result.original, ResolvedNode):
        result = _restore(result, result.original)
    if result.is_unchanged or not isinstance(scope, CallScope):
        return result
    original = Node.from_proto(proto)
    callers = scope.functions.call_facts_of(scope)
    missing = callers.describe_disagreement(original, scope) if callers else ""
    if missing:
        reason = f"{missing} is provided by some calls of the function, but not by all"
        remedy = "provide it in every call, or omit it in every call"
        raise CannotConvert(reason, "function.calls-differ", remedy=remedy)
    _require_no_function(proto, result, scope)
    return result


def _restore(result: ComputedRewrite, view: ResolvedNode) -> ComputedRewrite:
    """Restore references in attributes that the rewrite kept; an unchanged node becomes the original node."""
    original, operator = view.original, result.nodes[0].operator
    is_supported = original.attributes.keys() <= operator.attributes.keys()
    if result.is_unchanged and is_supported and len(original.inputs) <= operator.max_input:
        nodes: tuple[ConvertedNode, ...] = (result.nodes[0]._replace(node=original),)
    else:
        references = view.references()
        nodes = tuple(_with_references(each, references) for each in result.nodes)
    return result._replace(original=original, nodes=nodes)


def _require_no_function(proto: NodeProto, result: NodeRewrite, scope: CallScope) -> None:
    overload = overload_of(proto)
    emitted = [
        LocalFunction(
            canonical_domain(each.node.domain), each.node.op_type, overload if each.is_replacement else ""
        )
        for each in result.nodes
    ]
    if scope.added_constants:
        emitted.append(LocalFunction(DEFAULT_DOMAIN, "Constant"))
    shadowed = next((each for each in emitted if scope.functions.has_function(each)), None)
    if shadowed is not None:
        name = shadowed.name
        reason = f"the converted nodes use the operator {name}, but a function of the model has that name"
        remedy = f"rename the function {shadowed.domain}.{name}"
        raise CannotConvert(reason, "function.shadows-operator", remedy=remedy)


def _with_references(emitted: ConvertedNode, references: Mapping[int, object]) -> ConvertedNode:
    node = emitted.node
    if not any(id(value) in references for value in node.attributes.values()):
        return emitted
    kept = {name: references.get(id(value), value) for name, value in node.attributes.items()}
    return emitted._replace(node=node.with_(attributes=kept))
