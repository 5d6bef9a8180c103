"""Second plan for a model that the first one refuses: without types that the target lacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from opshift.converter.internal_types.sequences import OPERATORS, replace_sequences
from opshift.converter.options import Options
from opshift.converter.plan.changes import Plan
from opshift.model.graphs import nested_nodes, root_graphs
from opshift.model.messages import ModelProto

SEQUENCE_OPERATORS = {name for name in OPERATORS if "Sequence" in name}

SEQUENCES_REPLACED = "model: the sequences were replaced by their tensors"


def replan(
    model: ModelProto, plan: Plan, options: Options, make_plan: Callable[[ModelProto, Options], Plan]
) -> tuple[ModelProto, Plan]:
    """Return a copy of a refused model without sequences, with its plan; the arguments if that is impossible.

    The refusals then contain the reasons.
    """
    nodes = nested_nodes(*root_graphs(model), *model.functions)
    if SEQUENCE_OPERATORS.isdisjoint(node.op_type for node in nodes):
        return model, plan
    copy, reasons = replace_sequences(model, options.registry)
    if copy is not None:
        found = make_plan(copy, options)
        if len(found.refusals) < len(plan.refusals):
            return copy, replace(found, repairs=(*plan.repairs, SEQUENCES_REPLACED))
    refusals = []
    for each in plan.refusals:
        error = reasons.get(each.place)
        refusals.append(replace(each, reason=error.reason, remedy=error.remedy) if error else each)
    # The first one becomes the message: a node that prevents the replacement of sequences.
    refusals.sort(key=lambda each: each.place not in reasons)
    return model, replace(plan, refusals=tuple(refusals))
