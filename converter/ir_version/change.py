"""Choice of the IR version of a converted model.

For a release or runtime, it is at most the version that it supports. For opsets alone, it is raised if the
first ONNX release with a raised opset has a newer IR version. If opsets are lowered, it is lowered to the IR
version of the first ONNX release with all opsets of the result, or to the nearest version that expresses the
model without loss. Otherwise it does not change.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opshift.checker.ir_features.use import STANDALONE, since
from opshift.converter.errors import Refusal
from opshift.converter.options import Allowances
from opshift.converter.target import KEEP, Target
from opshift.registry.registry import Registry
from opshift.registry.releases import Releases

if TYPE_CHECKING:
    from opshift.converter.ir_version.lowerings import Lowering


def plan_ir_change(
    model: Any,
    imports: Mapping[str, int],
    target: Target,
    registry: Registry,
    concessions: Allowances,
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
    from opshift.converter.ir_version.lower import plan_lowering  # most conversions do not need it

    return plan_lowering(
        model, requested, target.opsets, registry, concessions, operators, is_strict=is_strict
    )


def _requested_version(
    before: int, imports: Mapping[str, int], target: Target, releases: Releases
) -> tuple[int, bool]:
    """Return the IR version to convert to, and whether it is strict: a newer one is not acceptable."""
    if target.requested_ir_version == KEEP:
        return before, True
    if target.requested_ir_version is not None:
        return target.requested_ir_version, True
    final_opsets = {domain: target.opsets.get(domain, opset) for domain, opset in imports.items()}
    raised = {domain: opset for domain, opset in final_opsets.items() if opset > imports[domain]}
    requested = max(before, release_ir_version(raised, releases))
    if target.ir_version is not None:
        return min(requested, target.ir_version), True
    is_lowered = any(opset < imports[domain] for domain, opset in final_opsets.items())
    required = release_ir_version(final_opsets, releases)
    return (required, False) if is_lowered and required < before else (requested, True)


def release_ir_version(opsets: Mapping[str, int], releases: Releases) -> int:
    """Return the IR version of the first ONNX release with all of these opsets.

    Source: ONNX Versioning, "Released Versions".
    """
    first = (releases.first_release_with(domain, opset) for domain, opset in opsets.items())
    return max((release.ir_version for release in first if release), default=0)


@dataclass(frozen=True)
class IrChange:
    """A model's IR version before and after a conversion, and the rewrites that the change requires.

    Attributes:
        before, after: the IR versions.
        lowerings: the rewrites of the features that the model uses, in the order of their application.
        dropped: the features that are dropped because the caller allows it.
        refusals: the uses of features that the IR version cannot express.
    """

    before: int
    after: int
    lowerings: tuple[Lowering, ...] = ()
    dropped: frozenset[str] = frozenset()
    refusals: tuple[Refusal, ...] = ()

    @property
    def turns_initializers_into_inputs(self) -> bool:
        """Whether initializers of the main graph become inputs, including those that the conversion adds."""
        return self.after < self.before and self.before >= since(STANDALONE) > self.after

    def steps(self) -> tuple[str, ...]:
        """Return a description of each rewrite, in one sentence."""
        return tuple(map(self._describe, self.lowerings))

    def _describe(self, lowering: Lowering) -> str:
        from opshift.registry.ir_versions import ir_versions

        meaning = ir_versions().meaning(lowering.feature)
        replacement = "" if lowering.feature in self.dropped else lowering.replacement
        return f"{meaning} become {replacement}" if replacement else f"{meaning} are dropped"

    def apply(self, model: Any, registry: Registry) -> None:
        """Rewrite a model in place, after the conversion of its opsets."""
        features = {each.feature for each in self.lowerings} | (
            {STANDALONE} if self.turns_initializers_into_inputs else set()
        )
        if not features:
            return
        from opshift.checker.ir_features.contents import contents_of
        from opshift.converter.ir_version.lowerings import LOWERINGS

        contents = contents_of(model, registry, self.before)
        for lowering in (each for each in LOWERINGS if each.feature in features):
            rewrite = lowering.drop if lowering.feature in self.dropped else lowering.apply
            assert rewrite is not None
            rewrite(contents)
            if lowering.moves_nodes:
                # The contents refer to nodes that no longer exist.
                contents = contents_of(model, registry, self.before)
