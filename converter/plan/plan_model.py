"""Plan of a whole model: declared and inferred shapes, repairs and replaced types, around the planner."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace

from opshift.converter.options import Options
from opshift.converter.plan.changes import METADATA_KEY, Plan
from opshift.converter.plan.planner import Planner
from opshift.converter.shape_arguments import Dims
from opshift.model.errors import InvalidModel
from opshift.model.messages import ModelProto
from opshift.registry.registry import Registry


def plan_model(model: ModelProto, options: Options, *, owned: bool = False) -> tuple[ModelProto, Plan]:
    """Plan the conversion of a model, or of a copy with declared shapes or without types the target lacks."""
    model, declared = with_declared_shapes(model, dict(options.shapes), options.registry, owned=owned)
    ordered, plan = _plan_in_order(model, options)
    plan = replace(plan, repairs=(*declared, *plan.repairs)) if declared else plan
    if not plan.refusals:
        return ordered, plan
    from opshift.converter.internal_types.replan import replan  # few models need it

    return replan(ordered, plan, options, _plan)


def with_declared_shapes(
    model: ModelProto, shapes: Mapping[str, Dims], registry: Registry, *, owned: bool = False
) -> tuple[ModelProto, tuple[str, ...]]:
    """Return a model that declares shapes, and the changes; a copy if it changes and is not owned."""
    if not shapes or not model.HasField("graph"):
        return model, ()
    from opshift.converter.declared_shapes import declare_shapes  # few conversions need it

    declared = model if owned else deepcopy(model)
    changes = declare_shapes(declared, shapes, registry)
    return declared if changes else model, changes


def _plan_in_order(model: ModelProto, options: Options) -> tuple[ModelProto, Plan]:
    """Plan the conversion of a model, or of a copy with sorted nodes if they are not in order."""
    try:
        return model, _plan(model, options)
    except InvalidModel as error:
        from opshift.converter.survey.repair import repaired_copy  # few models need it

        ordered, repairs = repaired_copy(model, error, options.registry)
    plan = _plan(ordered, options)
    return ordered, replace(plan, repairs=(*repairs, *plan.repairs))


def _plan(model: ModelProto, options: Options) -> Plan:
    plan = _plan_as_declared(model, options)
    if plan.refusals and options.infer_shapes:
        from opshift.converter.onnx_shapes import USED, with_onnx_shapes  # few conversions need it

        copy = with_onnx_shapes(model, options.registry)
        new = plan if copy is None else _plan_as_declared(copy, options)
        # only positions of nodes connect a plan to its model, so it applies to the model without the claims
        if len(new.refusals) < len(plan.refusals):
            return replace(new, repairs=(USED,))
    return plan


def _plan_as_declared(model: ModelProto, options: Options) -> Plan:
    """Plan a conversion with the declared shapes and those that inference finds."""
    history = None
    try:
        if options.reversible or any(each.key == METADATA_KEY for each in model.metadata_props):
            from opshift.converter.reversible.history import History  # most conversions do not need pydantic

            history = History(model, options.reversible)
        plan = Planner(model, options, history=history).plan()
    except UnicodeDecodeError as error:
        raise InvalidModel("a name in the model is not UTF-8 text") from error
    if options.without:
        from opshift.converter.functions.removal import plan_removal  # few conversions need it

        return plan_removal(plan, model, options)
    return plan
