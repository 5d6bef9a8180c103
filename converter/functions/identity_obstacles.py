"""Calls that cannot be inlined, because their outputs need an Identity that the result cannot have."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from opshift.converter.functions.inlined_call import repeated_outputs
from opshift.inference.call_facts import CallSite
from opshift.model.element_types import type_string
from opshift.model.messages import FunctionProto, ModelProto
from opshift.model.operator_ids import (
    DEFAULT_DOMAIN,
    LocalFunction,
    function_id,
    imported_default_opset,
)
from opshift.registry.registry import Registry

IDENTITY = LocalFunction(DEFAULT_DOMAIN, "Identity")


class IdentityObstacle(NamedTuple):
    """Function that cannot be inlined: it needs an Identity, and the result cannot have one.

    `code` is the code of the refusal.
    """

    function: FunctionProto
    reason: str
    remedy: str
    code: str


def identity_obstacles(
    model: ModelProto, functions: Sequence[FunctionProto], targets: Mapping[str, int], registry: Registry
) -> Iterator[IdentityObstacle]:
    """Yield each function that cannot be inlined: it needs an Identity, and the result cannot have one.

    `functions` are the functions to inline. `targets` are the opsets of the result. Values of unknown type
    are assumed to be tensors that Identity accepts.
    """
    repeating = {function_id(each) for each in functions if _repeats_values(each)}
    if not repeating:
        return
    # imported here: few models have functions that return an input
    from opshift.inference.root_scopes import add_call_facts, root_scopes

    kept = {function_id(each) for each in model.functions} - {function_id(each) for each in functions}
    opset = identity_opset(model, targets)
    calls = add_call_facts([scope for scope, _, _ in root_scopes(model, model, registry)])
    for index, function in enumerate(model.functions):
        for call in calls.get(index, ()) if function_id(function) in repeating else ():
            outputs = repeated_outputs(call.proto, function)
            unsupported = _unsupported_type(call, outputs, opset, registry)
            if outputs and IDENTITY in kept:
                reason = f"it needs the operator {IDENTITY.name}, but a function of the model has that name"
                remedy = f"rename the function {IDENTITY}"
                yield IdentityObstacle(function, reason, remedy, "function.shadows-operator")
                break
            if unsupported:
                reason = (
                    "it returns an input, or a value twice, and Identity of opset "
                    f"{opset} does not accept the type {unsupported}"
                )
                remedy = "return each value once, or convert to an opset whose Identity accepts the type"
                yield IdentityObstacle(function, reason, remedy, "type.unsupported")
                break


def identity_opset(model: ModelProto, targets: Mapping[str, int]) -> int:
    """Return the opset of an Identity in a graph or function that does not import the default domain."""
    return targets.get(DEFAULT_DOMAIN) or imported_default_opset(model) or 1


def _repeats_values(function: FunctionProto) -> bool:
    names = (*function.input, *function.output)
    return len({*names}) < len(names)


def _unsupported_type(call: CallSite, outputs: Sequence[str], opset: int, registry: Registry) -> str:
    """Return the type of an output that Identity does not accept at an opset, or `""`."""
    identity = registry.known_at(IDENTITY.name, opset, IDENTITY.domain)
    types = (call.scope.element_type(each) for each in outputs)
    found = (type_string(each) for each in types if each)
    accepted = identity.types_of(identity.outputs[0]) if identity else ()
    return next((each for each in found if each not in accepted), "")
