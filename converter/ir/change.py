"""A model's IR version before and after a conversion, and what that takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opshift.converter.errors import Refusal

if TYPE_CHECKING:
    from opshift.converter.ir.features import Lowering
    from opshift.registry.catalogue import Registry

STANDALONE = "standalone_initializers"


@dataclass(frozen=True)
class IrChange:
    """A model's IR version before and after, and what that takes.

    Attributes:
        before, after: the IR versions.
        lowerings: how what the model uses is rewritten, in the order in which it is done.
        dropped: the features that are dropped because the caller allows it.
        refusals: what the IR version cannot express.
    """

    before: int
    after: int
    lowerings: tuple[Lowering, ...] = ()
    dropped: frozenset[str] = frozenset()
    refusals: tuple[Refusal, ...] = ()

    @property
    def makes_inputs(self) -> bool:
        """Whether every initializer of the main graph becomes an input, also those that conversion adds."""
        return self.after < self.before and self.before >= since(STANDALONE) > self.after

    def steps(self) -> tuple[str, ...]:
        """What is rewritten, a sentence each."""
        return tuple(map(self._step, self.lowerings))

    def _step(self, lowering: Lowering) -> str:
        from opshift.registry.ir_versions import ir_versions

        meaning = ir_versions().meaning(lowering.feature)
        becomes = "" if lowering.feature in self.dropped else lowering.becomes
        return f"{meaning} become {becomes}" if becomes else f"{meaning} are dropped"

    def apply(self, model: Any, registry: Registry) -> None:
        """Rewrite a model, whose opsets are converted already."""
        wanted = {each.feature for each in self.lowerings} | ({STANDALONE} if self.makes_inputs else set())
        if not wanted:
            return
        from opshift.converter.ir.contents import contents_of
        from opshift.converter.ir.features import LOWERINGS

        contents = contents_of(model, registry, self.before)
        for lowering in (each for each in LOWERINGS if each.feature in wanted):
            change = lowering.drop if lowering.feature in self.dropped else lowering.apply
            assert change is not None
            change(contents)
            if lowering.moves_nodes:
                contents = contents_of(model, registry, self.before)


def since(feature: str) -> int:
    """The first IR version with a feature, or with an element type."""
    from opshift.registry.ir_versions import ir_versions

    known = ir_versions()
    return known.features.get(feature) or known.element_types[feature]
