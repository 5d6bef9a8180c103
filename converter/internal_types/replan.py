"""Second plan for a model that the first plan refuses, without types that the target lacks."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from opshift.converter.internal_types.narrow_results import EXACT_SOURCES, Widening
from opshift.converter.internal_types.sequences import has_sequences, replace_sequences
from opshift.converter.internal_types.widen_types import types_in_model, widen_types
from opshift.converter.options import Options
from opshift.converter.plan.changes import Plan
from opshift.inference.shared_facts import SharedFacts
from opshift.model.element_types import element_names
from opshift.model.errors import CannotConvert
from opshift.model.graphs import count_model_nodes, root_graphs
from opshift.model.messages import ModelProto, TypeProto
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.model.tensors import PACKED_BITS
from opshift.model.types import type_to_string
from opshift.registry.registry import Registry
from opshift.rewriting.workspace import Allowances

INTEGERS_REPLACED = "model: the integers of 4 and 2 bits were replaced by integers of 8 bits"
SEQUENCES_REPLACED = "model: the sequences were replaced by their tensors"

SEQUENCES_SINCE = 11
"""First opset with sequences."""


WIDER = {name: "int8" if name.startswith("int") else "uint8" for name in PACKED_BITS}

REMEDY = "convert to opset 21 or later (25 for 2 bits), or use integers of 8 bits"


def replan(
    model: ModelProto, plan: Plan, options: Options, make_plan: Callable[[ModelProto, Options], Plan]
) -> tuple[ModelProto, Plan]:
    """Replace narrow integers, then sequences, in a copy of a refused model, and plan each copy.

    Return the model and plan with the fewest refusals. Remaining refusals state why a replacement failed.
    """
    reasons: dict[str, CannotConvert] = {}
    allowances = Allowances(options.allow)
    original = model
    facts = options.shared_facts or SharedFacts(model.graph)
    replace_all_sequences = partial(replace_sequences, allowances=allowances)
    for has_types, replace_types, sentence in (
        (has_narrow_integers, replace_narrow_integers, INTEGERS_REPLACED),
        (has_sequences, replace_all_sequences, SEQUENCES_REPLACED),
    ):
        if not facts.is_true(has_types, model, options.registry):
            continue
        copy, found = replace_types(model, options.registry)
        # If the target has sequences, the reasons in the plan are more specific.
        if has_types is has_narrow_integers or _lacks_sequences(options):
            reasons |= found
        new = plan if copy is None else make_plan(copy, options)
        if copy is not None and len(new.refusals) < len(plan.refusals):
            used = (*allowances.used, *new.allowances)
            repairs = tuple(dict.fromkeys((*plan.repairs, sentence, *new.repairs)))
            count = count_model_nodes(original)
            plan = replace(new, repairs=repairs, allowances=used, nodes_before=count)
            model = copy
        if not plan.refusals:
            return model, plan
    refusals = []
    for each in plan.refusals:
        if error := reasons.get(each.place):
            subject = error.subject or error.reason
            each = replace(each, reason=error.reason, remedy=error.remedy, code=error.code, subject=subject)
        refusals.append(each)
    # The first refusal becomes the message, so nodes that prevent a replacement come first.
    refusals.sort(key=lambda each: each.place not in reasons)
    return model, replace(plan, refusals=tuple(refusals))


def _lacks_sequences(options: Options) -> bool:
    return options.target.opsets.get(DEFAULT_DOMAIN, SEQUENCES_SINCE) < SEQUENCES_SINCE


def has_narrow_integers(model: ModelProto, registry: Registry) -> bool:
    """Return whether a model has 4-bit or 2-bit integers, but not in inputs and outputs."""
    values = (value for graph in root_graphs(model) for value in (*graph.input, *graph.output))
    found = types_in_model(model, registry).among(WIDER.keys(), 1)
    return bool(found) and not any(_is_narrow(value.type) for value in values)


def replace_narrow_integers(
    model: ModelProto, registry: Registry
) -> tuple[ModelProto | None, dict[str, CannotConvert]]:
    """Return a model's copy without 4-bit and 2-bit integers, or `None`; and reasons against it, by place."""
    return widen_types(model, registry, Widening(WIDER, EXACT_SOURCES, REMEDY))


def _is_narrow(value_type: TypeProto) -> bool:
    return not WIDER.keys().isdisjoint(element_names(type_to_string(value_type) or ""))
