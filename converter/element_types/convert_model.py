"""Conversion of the element types of a whole model, before the conversion of its opsets."""

from __future__ import annotations

from copy import deepcopy
from graphlib import CycleError
from typing import NamedTuple

from opshift.checker.ir_features.contents import FIRST_IR_WITH_STANDALONE_INITIALIZERS
from opshift.converter.element_types.change_types import TypeChange
from opshift.converter.element_types.choose_types import TypeChoice, kept_sentence
from opshift.converter.element_types.requested_types import EXACT_CHANGES, INTEGERS
from opshift.converter.functions.inlining import inline_functions, inlining_obstacles, recursion_error
from opshift.converter.options import Options
from opshift.converter.refusals import Refusal
from opshift.inference.root_scopes import root_scopes
from opshift.model.errors import NOT_ALLOWED, CannotConvert
from opshift.model.graphs import root_graphs
from opshift.model.indirect_reads import values_named_in_attributes
from opshift.model.message_text import count_text
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import function_label, opset_imports
from opshift.registry.explanations import refusal_cause
from opshift.registry.steps import Allow
from opshift.rewriting.workspace import FreshNames


class TypedModel(NamedTuple):
    """Model with other element types, or the reasons why it cannot have them.

    Attributes:
        model: the model; the original one if there are refusals.
        changes: sentences about the changes.
        refusals: all reasons against the conversion.
        allowances: inexact changes that the caller allows, with their reasons.
    """

    model: ModelProto
    changes: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    allowances: tuple[tuple[Allow, str], ...] = ()


def convert_element_types(model: ModelProto, options: Options) -> TypedModel:
    """Return a copy of a model with the element types in `options.types`, or the original with refusals.

    If nothing changes, the result has no sentences and no allowances. Inlined functions are a change, too.
    """
    changes = dict(options.types)
    result = deepcopy(model)
    try:
        _inline_or_refuse(result, options)
    except CannotConvert as error:
        return TypedModel(model, refusals=(_refusal_of_types("model", error, changes),))
    source = deepcopy(result) if result.functions or model.functions else model
    inexact = any(pair not in EXACT_CHANGES for pair in changes.items())
    choice = TypeChoice(
        changes,
        keeps_interface=options.keep_interface,
        is_old_ir=model.ir_version < FIRST_IR_WITH_STANDALONE_INITIALIZERS
        and not options.keep_initializer_inputs,
    )
    names = FreshNames()
    names.avoid(*root_graphs(source))
    scope, _, _ = next(root_scopes(source, result, options.registry))
    types = choice.choose(scope)
    reasons = choice.reasons
    change = TypeChange(choice.result_type, inexact and "clamp" in options.allow, names, reasons)
    allowances: tuple[tuple[Allow, str], ...] = ()
    if not reasons:  # Otherwise, an allowance would not help.
        try:
            allowances = _allowances(changes, options)
        except CannotConvert as error:
            return TypedModel(model, refusals=(_refusal_of_types("model", error, changes),))
        change.change(types, result.graph)
    if reasons:
        found = tuple(_refusal_of_types(place, error, changes) for place, error in reasons.items())
        return TypedModel(model, refusals=found)
    if not (change.changed or change.casts or model.functions):  # `_inline_or_refuse` inlines the functions
        return TypedModel(result)
    pairs = ", ".join(f"{old} to {new}" for old, new in changes.items())
    counts = f"in {count_text(change.changed, 'value')}, with {count_text(change.casts, 'cast')}"
    sentences = [f"element types: {pairs} {counts}", kept_sentence(choice.kept)]
    return TypedModel(result, tuple(filter(None, sentences)), (), allowances)


def _allowances(changes: dict[str, str], options: Options) -> tuple[tuple[Allow, str], ...]:
    """Return the inexact changes as allowances with reasons; raise CannotConvert if one is not allowed."""
    inexact = [pair for pair in changes.items() if pair not in EXACT_CHANGES and pair != INTEGERS]
    found: list[tuple[Allow, str]] = []
    for old, new in inexact:
        if "approximate" not in options.allow:
            reason = f"{new} cannot represent all numbers of {old}"
            remedy = "allow approximate if the model tolerates other rounding"
            raise CannotConvert(reason, NOT_ALLOWED, subject="approximate", remedy=remedy)
        found.append(("approximate", f"the model computes in {new} instead of {old}"))
        if "clamp" in options.allow:
            found.append(("clamp", f"constants out of the range of {new} become the nearest number"))
    return tuple(found)


def _inline_or_refuse(result: ModelProto, options: Options) -> None:
    """Inline the functions of a model; raise CannotConvert if this or a change of types is impossible."""
    if result.training_info:
        reason = "the model has training information, whose bindings depend on the types"
        raise CannotConvert(reason, "training.unsupported", remedy="remove its training information")
    if values_named_in_attributes(result).names:
        reason = "attributes of Gradient name values, and casts would give some of these values other names"
        raise CannotConvert(reason, "training.unsupported", remedy="remove the Gradient nodes")
    if result.functions:
        opsets = opset_imports(result.opset_import, result.ir_version)
        try:
            obstacles = list(inlining_obstacles(result, opsets, {}, options.registry))
        except CycleError as error:
            raise recursion_error(list(map(str, error.args[1]))) from error
        for function, obstacle in obstacles:
            reason = f"function {function_label(function)} cannot be inlined: {obstacle}"
            raise CannotConvert(reason, "function.reference", remedy="inline the functions first")
        inline_functions(result)


def _refusal_of_types(place: str, error: CannotConvert, changes: dict[str, str]) -> Refusal:
    operator = ", ".join(f"{old}={new}" for old, new in changes.items())
    remedy = error.remedy or refusal_cause(error.code).remedy
    return Refusal(place, operator, error.reason, remedy, error.code, error.subject or error.reason)
