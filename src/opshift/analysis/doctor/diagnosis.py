"""Result of a diagnosis."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import pairwise

from opshift.model.plain_data import Json

OpsetRanges = tuple[tuple[int, int], ...]
"""Sets of opsets as the first and last opset of each consecutive range."""


def opset_ranges(opsets: Iterable[int]) -> OpsetRanges:
    """Return opsets as consecutive ranges."""
    ordered = sorted(opsets)
    starts = [each for before, each in pairwise([-1, *ordered]) if each != before + 1 or before == -1]
    ends = [each for each, after in pairwise([*ordered, 0]) if after != each + 1]
    return tuple(zip(starts, ends, strict=True))


@dataclass(frozen=True)
class NodeValidity:
    """Opsets at which a node is valid."""

    place: str
    operator: str
    opsets: OpsetRanges
    reason: str = ""
    """Reason why it is invalid at the declared opset; empty if it is valid."""


@dataclass(frozen=True)
class Stamp:
    """Opset import, and the opsets at which all nodes that use it are valid."""

    place: str
    """The model or function that declares the import."""
    domain: str
    opset: int | None
    """The declared opset; `None` if the domain is not imported."""
    opsets: OpsetRanges
    fitting: int | None
    """The valid opset that is nearest to `opset`; `None` without one."""
    replaced: tuple[str, ...] = ()
    """Operators that `fitting` lacks, and whose nodes must be replaced because no opset is valid for all."""

    @property
    def fits(self) -> bool:
        """Whether all nodes are valid at the declared opset."""
        return self.opset is not None and self.opset == self.fitting and not self.replaced


@dataclass(frozen=True)
class IrStamp:
    """IR version of a model."""

    stated: int
    needed: int
    """Oldest IR version that has all features of the model."""
    fitting: int
    """`stated` if it is valid, else the IR version that the model should declare."""

    @property
    def fits(self) -> bool:
        """Whether the declared IR version is valid for the model."""
        return self.stated == self.fitting


@dataclass(frozen=True)
class Diagnosis:
    """Diagnosis of a model.

    Attributes:
        stamps: opset imports of the model and of its functions.
        ir_version: the IR version.
        nodes: the nodes of domains in the registry.
        unknown: the number of nodes of other domains, and of calls of the model's functions.
        repairs: what a conversion repairs first, such as the order of nodes, a sentence each.
        overridable: the initializers that are graph inputs, too. At the fitting IR version, callers can
            override them, and runtimes optimize nothing that depends on them.
    """

    stamps: tuple[Stamp, ...]
    ir_version: IrStamp
    nodes: tuple[NodeValidity, ...]
    unknown: int = 0
    repairs: tuple[str, ...] = ()
    overridable: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether all declared versions are valid."""
        return self.ir_version.fits and all(each.fits for each in self.stamps)

    @property
    def unfixable(self) -> tuple[Stamp, ...]:
        """Stamps without any opset at which all nodes are valid."""
        return tuple(each for each in self.stamps if each.fitting is None)

    def mismatches(self) -> tuple[NodeValidity, ...]:
        """Return the nodes that are invalid at the declared opset."""
        return tuple(each for each in self.nodes if each.reason)

    def as_dict(self) -> dict[str, Json]:
        """Return plain data for JSON."""
        return {"fits": self.fits, **asdict(self)}
