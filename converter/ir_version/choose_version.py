"""Choice of the IR version of a converted model.

The IR version is raised if the first ONNX release with a raised opset has a newer one. A release or runtime
as the target limits the IR version to the newest that it supports. Without this limit, if the default domain
is lowered, the IR version is lowered to that of the first ONNX release with all opsets of the result, or to
the nearest version that expresses the model without loss. Otherwise, the IR version does not change: nodes of
an unchanged default domain may need it, and no ONNX release has private domains.
"""

from collections.abc import Collection, Mapping
from functools import partial

from opshift.checker.ir_features.contents import FIRST_IR_WITH_STANDALONE_INITIALIZERS
from opshift.converter.options import KEEP, Options, Target
from opshift.converter.plan.changes import ContainerPlan, IrChange
from opshift.converter.unread_constants import removed_initializers
from opshift.model.graphs import Container
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.registry.releases import Releases
from opshift.rewriting.workspace import Allowances


def plan_ir_change(
    model: ModelProto,
    imports: Mapping[str, int],
    options: Options,
    allowances: Allowances,
    operators: Collection[tuple[str, str]],
    graph: ContainerPlan | None,
    freed: frozenset[str],
) -> IrChange:
    """Return the IR version of a model after its conversion, with the rewrites that it requires.

    `imports` are the opsets before the conversion, and `operators` the domain and op_type of every node.
    `graph` is the plan of the main graph, or `None` if unread initializers remain. `freed` is the result of
    `freed_initializers`. Each use of an allowance is recorded in `allowances`.
    """
    before = _valid_version(model, imports, options)
    requested, is_strict = requested_version(before, imports, options.target, options.registry.releases)
    if requested >= before:
        if requested < FIRST_IR_WITH_STANDALONE_INITIALIZERS:
            freed = frozenset()  # `freed` assumes a newer IR version, for an import that the plan removes
        return IrChange(model.ir_version, requested, freed_initializers=freed)
    # imported here: most conversions do not lower the IR version
    from opshift.converter.ir_version.lower import plan_lowering

    find_removed = partial(removed_initializers, model, graph) if graph else None
    return plan_lowering(model, requested, options, allowances, operators, find_removed, is_strict=is_strict)


def _valid_version(model: ModelProto, imports: Mapping[str, int], options: Options) -> int:
    """Return a model's IR version; if it is below 1 and not to be kept, return the version that it needs."""
    if model.ir_version > 0 or options.target.requested_ir_version == KEEP:
        return model.ir_version
    from opshift.converter.ir_version.lower import required_ir_version  # imported here, see `plan_ir_change`

    registry = options.registry
    return max(required_ir_version(model, registry), registry.releases.ir_version_for(imports))


def freed_initializers(
    model: ModelProto, graph: Container, imports: Mapping[str, int], options: Options
) -> frozenset[str]:
    """Return the initializers that stop being inputs of the main graph.

    Below IR version 4, every initializer has to be an input, and runtimes treat all of them as constants.
    Since IR version 4, callers may override such an input: without this rewrite, runtimes could
    not fold or fuse any node that depends on a weight.
    """
    if model.ir_version >= FIRST_IR_WITH_STANDALONE_INITIALIZERS or options.keep_initializer_inputs:
        return frozenset()
    before = _valid_version(model, imports, options)
    after, _ = requested_version(before, imports, options.target, options.registry.releases)
    return graph.initializer_inputs() if after >= FIRST_IR_WITH_STANDALONE_INITIALIZERS else frozenset()


def requested_version(
    before: int, imports: Mapping[str, int], target: Target, releases: Releases
) -> tuple[int, bool]:
    """Return the IR version to convert to, and whether it is strict: newer versions are unacceptable."""
    if target.requested_ir_version == KEEP:
        return before, True
    if target.requested_ir_version is not None:
        return target.requested_ir_version, True
    final_opsets = {domain: target.opsets.get(domain, opset) for domain, opset in imports.items()}
    raised = {domain: opset for domain, opset in final_opsets.items() if opset > imports[domain]}
    requested = max(before, releases.ir_version_for(raised))
    if target.ir_version is not None:
        return min(requested, target.ir_version), True
    if _lowers_default_domain(imports, final_opsets, releases):
        required = releases.ir_version_for(final_opsets)
        if required < before:
            return required, False
    return requested, True


def _lowers_default_domain(
    imports: Mapping[str, int], final_opsets: Mapping[str, int], releases: Releases
) -> bool:
    """Return whether a release has the opset to which the default domain (or, without it, any) is lowered."""
    domains = [DEFAULT_DOMAIN] if DEFAULT_DOMAIN in imports else imports
    lowered = [domain for domain in domains if final_opsets[domain] < imports[domain]]
    return any(releases.first_release_with(domain, final_opsets[domain]) for domain in lowered)
