"""`model_version` of a converted model."""

from opshift.checker.ir_features.contents import FIRST_IR_WITH_STANDALONE_INITIALIZERS
from opshift.converter.plan.changes import Plan
from opshift.model.errors import UsageError
from opshift.model.messages import ModelProto
from opshift.model.model_version import VersionBump, next_version, pack_version, unpack_version
from opshift.model.operator_ids import canonical_domain


def bumped_version(model: ModelProto, plan: Plan) -> str | None:
    """Return the version of a model after a conversion, such as `1.3.0`; `None` if it does not change.

    Raises:
        UsageError: the version of the model cannot be raised any further.
    """
    rise = _required_bump(model, plan)
    if rise is VersionBump.NONE:
        return None
    text = next_version(model.model_version, rise)
    try:
        pack_version(text)
    except UsageError as error:
        reason = f"model_version {unpack_version(model.model_version)} has no higher {rise.name} version"
        raise UsageError(reason, remedy="convert without bump, and set model_version") from error
    return text


def _required_bump(model: ModelProto, plan: Plan) -> VersionBump:
    """Return how much to raise `model_version`, by the rules of `compare`: MINOR, PATCH or NONE.

    MINOR if an opset or the IR version rises or an import is added, because the model may need a newer
    runtime. Also MINOR if an initializer becomes a graph input (below IR version 4). PATCH for other changes.
    """
    imports = (*model.opset_import, *(each for function in model.functions for each in function.opset_import))
    domains = ((canonical_domain(each.domain), each.version) for each in imports)
    steps = [(version, plan.targets.get(domain, version)) for domain, version in domains]
    steps.append((plan.ir.before, plan.ir.after))
    containers = list(plan.containers())
    new_initializers = any(each.constants for each in containers) or (
        plan.ir.turns_initializers_into_inputs and len(model.graph.initializer) > 0
    )
    adds_inputs = new_initializers and plan.ir.after < FIRST_IR_WITH_STANDALONE_INITIALIZERS
    rises = any(before < after for before, after in steps) or any(each.new_imports for each in containers)
    if rises or adds_inputs:
        return VersionBump.MINOR
    stays = all(before == after for before, after in steps) and not plan.repairs and not plan.ir.lowerings
    is_same = stays and all(each.is_empty for each in containers)
    return VersionBump.NONE if is_same else VersionBump.PATCH
