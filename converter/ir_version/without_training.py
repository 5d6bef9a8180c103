"""Conversion to an IR version without training information, which the caller allows to drop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from opshift.checker.ir_features.contents import since
from opshift.converter.functions.inlining import called_functions
from opshift.converter.ir_version.choose_version import requested_version
from opshift.converter.ir_version.lower import LOWERINGS
from opshift.converter.options import Options
from opshift.converter.plan.changes import Plan, loss_of, removed_import, require_import
from opshift.model.graphs import (
    count_model_nodes,
    domains_only_in_training,
    remove_messages,
    training_graphs,
)
from opshift.model.messages import ModelProto, has_unknown_fields
from opshift.model.operator_ids import canonical_domain, function_id, opset_imports
from opshift.registry.steps import Allow

TRAINING = "training"
"""Feature of `ir_versions.yaml`: training information."""

DROP: Allow = "drop-training"


def plan_without_training(
    model: ModelProto, options: Options, plan: Callable[[ModelProto, Options], tuple[ModelProto, Plan]]
) -> tuple[ModelProto, Plan] | None:
    """Return a copy of a model without training information, and its plan, which reports the loss.

    Return `None` if the IR version after the conversion supports training information. Nothing in the dropped
    graphs is an obstacle to the conversion: neither an operator nor an element type.

    Args:
        model: the model.
        options: options of the conversion, which allow the loss.
        plan: function that plans the conversion of the copy.
    """
    domains = domains_only_in_training(model)
    imports = opset_imports(model.opset_import, model.ir_version)
    kept = {domain: opset for domain, opset in imports.items() if domain not in domains}
    lowest = min(since(TRAINING), model.ir_version)
    if requested_version(model.ir_version, kept, options.target, options.registry.releases)[0] >= lowest:
        return None
    copy = _without_training(model)
    remove_messages(
        copy.opset_import, [canonical_domain(each.domain) in domains for each in copy.opset_import]
    )
    require_import(copy, imports, options.target.opsets, options.registry.releases)
    result, found = plan(copy, options)
    # The IR version depends on the whole plan: content that the conversion removes needs no newer version.
    if found.ir.after >= lowest:
        return None
    applied = {TRAINING, *(each.feature for each in found.ir.lowerings)}
    lowerings = tuple(each for each in LOWERINGS if each.feature in applied)
    removals = [removed_import(domain, imports[domain]) for domain in sorted(domains & imports.keys())]
    return result, replace(
        found,
        ir=replace(found.ir, lowerings=lowerings, dropped=found.ir.dropped | {TRAINING}),
        allowances=((DROP, loss_of(TRAINING)), *found.allowances),
        repairs=(*removals, *found.repairs),
        removed_imports=found.removed_imports | domains & imports.keys(),
        nodes_before=count_model_nodes(model),
    )


def _without_training(model: ModelProto) -> ModelProto:
    """Return a copy of a model without training information, and without the functions that only it calls."""
    copy = type(model)()
    if has_unknown_fields(model):
        copy.CopyFrom(model)
        copy.ClearField("training_info")
    else:
        # Copied field by field, because training information can be as large as the weights.
        _copy_fields(model, copy, omitted="training_info")
    functions = {function_id(each): each for each in model.functions}
    graphs = [each.graph for each in training_graphs(model)] if functions else []
    removed = {function_id(called) for graph in graphs for called in called_functions(graph, functions)}
    removed -= {function_id(called) for called in called_functions(model.graph, functions)}
    remove_messages(copy.functions, [function_id(each) in removed for each in copy.functions])
    return copy


def _copy_fields(model: ModelProto, copy: ModelProto, *, omitted: str) -> None:
    for name, value in ((field.name, value) for field, value in model.ListFields()):
        if name == omitted:
            continue
        if hasattr(value, "extend"):
            getattr(copy, name).extend(value)
        elif hasattr(value, "CopyFrom"):
            getattr(copy, name).CopyFrom(value)
        else:
            setattr(copy, name, value)
