"""Which IR version a converted model gets.

For a release or runtime it is no newer than what that takes. For opsets alone it is raised where a newer
opset came with a newer IR version; where opsets are lowered it goes down to that of the first ONNX release
with all opsets of the result, or as near to it as the model can go without loss. Otherwise it stays.
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
"""Below this IR version a model is of opset 1 and does not say so."""
INITIALIZERS_STAND_ALONE = 4
"""From this IR version on an initializer need not be a graph input."""


def change_ir_version(
    model: Any,
    imports: Mapping[str, int],
    target: Target,
    registry: Registry,
    concessions: Concessions,
    operators: Collection[tuple[str, str]],
) -> IrChange:
    """The IR version of a model after it is converted from `imports` to the target, and what that takes.

    `operators` are the domain and op_type of every node.
    """
    before = model.ir_version
    wanted, is_strict = _wanted(before, imports, target, registry.releases)
    if wanted >= before:
        return IrChange(before, wanted)
    from opshift.converter.ir.lowering import lower

    return lower(model, wanted, target.opsets, registry, concessions, operators, is_strict=is_strict)


def _wanted(before: int, imports: Mapping[str, int], target: Target, releases: Releases) -> tuple[int, bool]:
    """The IR version to go to, and whether none above it will do."""
    if target.wanted_ir_version == KEEP:
        return before, True
    if target.wanted_ir_version is not None:
        return target.wanted_ir_version, True
    finals = {domain: target.opsets.get(domain, opset) for domain, opset in imports.items()}
    raised = {domain: opset for domain, opset in finals.items() if opset > imports[domain]}
    wanted = max(before, needed_for(raised, releases))
    if target.ir_version is not None:
        return min(wanted, target.ir_version), True
    is_lowered = any(opset < imports[domain] for domain, opset in finals.items())
    least = needed_for(finals, releases)
    return (least, False) if is_lowered and least < before else (wanted, True)


def needed_for(opsets: Mapping[str, int], releases: Releases) -> int:
    """The IR version of the first ONNX release with all of these opsets (Versioning, "released versions")."""
    first = (releases.first_with(domain, opset) for domain, opset in opsets.items())
    return max((release.ir_version for release in first if release), default=0)
