"""Change of a model's IR version, as planned, and its application."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from opshift.checker.ir_features.use import STANDALONE, since
from opshift.converter.errors import Refusal
from opshift.registry.registry import Registry

if TYPE_CHECKING:
    from opshift.converter.ir_version.lowerings import Lowering
    from opshift.model.messages import ModelProto


@dataclass(frozen=True)
class IrChange:
    """A model's IR version before and after a conversion, and the rewrites that the change requires.

    The lowerings have the order of their application. The caller allows to drop the features in `dropped`.
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

    def apply(self, model: ModelProto, registry: Registry) -> None:
        """Rewrite a model in place, after the conversion of its opsets."""
        features = {each.feature for each in self.lowerings} | (
            {STANDALONE} if self.turns_initializers_into_inputs else set()
        )
        if not features:
            return
        from opshift.checker.ir_features.contents import Contents
        from opshift.converter.ir_version.lowerings import LOWERINGS

        contents = Contents(model, registry, self.before)
        for lowering in (each for each in LOWERINGS if each.feature in features):
            rewrite = lowering.drop if lowering.feature in self.dropped else lowering.apply
            assert rewrite is not None
            rewrite(contents)
            if lowering.moves_nodes:
                # The contents refer to nodes that no longer exist.
                contents = Contents(model, registry, self.before)
