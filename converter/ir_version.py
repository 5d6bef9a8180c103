"""Choice of the IR version of a converted model.

For a release or runtime, it is at most the version that it supports. For opsets alone, it is raised if the
first ONNX release with a raised opset has a newer IR version. If opsets are lowered, it is lowered to the IR
version of the first ONNX release with all opsets of the result, or to the nearest version that expresses the
model without loss. Otherwise it does not change.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from opshift.converter.concessions import Concessions
from opshift.converter.ir.change import IrChange
from opshift.converter.target import KEEP, Target
from opshift.registry.catalogue import Registry
from opshift.registry.releases import Releases

IMPORTS_ARE_STATED = 3
"""First IR version with opset imports; older models have opset 1 implicitly."""
INITIALIZERS_STAND_ALONE = 4
"""First IR version in which an initializer does not have to be a graph input."""


def change_ir_version(
    model: Any,
    imports: Mapping[str, int],
    target: Target,
    registry: Registry,
    concessions: Concessions,
    operators: Collection[tuple[str, str]],
) -> IrChange:
    """Return the IR version of a model after its conversion, with the rewrites that it requires.

    Args:
        model: the model before the conversion.
        imports: its opset imports, by domain.
        target: opsets and IR version to convert to.
        registry: operator definitions.
        concessions: content that may be dropped.
        operators: domain and op_type of every node.
    """
    before = model.ir_version
    requested, is_strict = _requested_version(before, imports, target, registry.releases)
    if requested >= before:
        return IrChange(before, requested)
    from opshift.converter.ir.lowering import lower  # most conversions do not need it

    return lower(model, requested, target.opsets, registry, concessions, operators, is_strict=is_strict)


def _requested_version(
    before: int, imports: Mapping[str, int], target: Target, releases: Releases
) -> tuple[int, bool]:
    """Return the IR version to convert to, and whether it is strict: a newer one is not acceptable."""
    if target.wanted_ir_version == KEEP:
        return before, True
    if target.wanted_ir_version is not None:
        return target.wanted_ir_version, True
    final_opsets = {domain: target.opsets.get(domain, opset) for domain, opset in imports.items()}
    raised = {domain: opset for domain, opset in final_opsets.items() if opset > imports[domain]}
    requested = max(before, needed_for(raised, releases))
    if target.ir_version is not None:
        return min(requested, target.ir_version), True
    is_lowered = any(opset < imports[domain] for domain, opset in final_opsets.items())
    required = needed_for(final_opsets, releases)
    return (required, False) if is_lowered and required < before else (requested, True)


def needed_for(opsets: Mapping[str, int], releases: Releases) -> int:
    """Return the IR version of the first ONNX release with all of these opsets.

    Source: ONNX Versioning, "Released Versions".
    """
    first = (releases.first_with(domain, opset) for domain, opset in opsets.items())
    return max((release.ir_version for release in first if release), default=0)
