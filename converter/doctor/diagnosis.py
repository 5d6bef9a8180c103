"""What the doctor finds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

Ranges = tuple[tuple[int, int], ...]
"""Opsets: the first and the last of each row without a gap."""


def ranges(opsets: Iterable[int]) -> Ranges:
    """Opsets as ranges."""
    listed = sorted(opsets)
    starts = [each for before, each in pairwise([-1, *listed]) if each != before + 1 or before == -1]
    ends = [each for each, after in pairwise([*listed, 0]) if after != each + 1]
    return tuple(zip(starts, ends, strict=True))


@dataclass(frozen=True)
class NodeLegality:
    """For which opsets a node is legal as it stands.

    Attributes:
        place: the graph or function, and the node.
        operator: its domain and name.
        opsets: of its domain; empty if it is legal nowhere.
        reason: why it is not legal at the opset that the model states; empty if it is.
    """

    place: str
    operator: str
    opsets: Ranges
    reason: str = ""


@dataclass(frozen=True)
class Stamp:
    """One opset import, and what the nodes that it holds for ask of it.

    Attributes:
        place: the model, or the function that states it.
        domain: the domain.
        opset: what is stated; `None` if the domain is not imported.
        opsets: those at which all nodes are legal.
        fitting: `opset` if that is one of them, else the nearest that is; `None` if there is none.
    """

    place: str
    domain: str
    opset: int | None
    opsets: Ranges
    fitting: int | None

    @property
    def fits(self) -> bool:
        """Whether the opset that is stated is legal for all nodes."""
        return self.opset is not None and self.opset == self.fitting


@dataclass(frozen=True)
class IrStamp:
    """The IR version that is stated, the oldest that has all that the model holds, and the one that fits."""

    stated: int
    needed: int
    fitting: int

    @property
    def fits(self) -> bool:
        """Whether the IR version that is stated has all that the model holds."""
        return self.stated == self.fitting


@dataclass(frozen=True)
class Diagnosis:
    """All of a model.

    Attributes:
        stamps: the opset imports of the model and of its functions.
        ir_version: the IR version.
        nodes: every node of a domain that the registry knows.
        unknown: how many nodes are of other domains, or call functions of the model's own.
    """

    stamps: tuple[Stamp, ...]
    ir_version: IrStamp
    nodes: tuple[NodeLegality, ...]
    unknown: int = 0

    @property
    def fits(self) -> bool:
        """Whether the model is what it says."""
        return self.ir_version.fits and all(each.fits for each in self.stamps)

    @property
    def hopeless(self) -> tuple[Stamp, ...]:
        """The stamps that no opset would make fit."""
        return tuple(each for each in self.stamps if each.fitting is None)

    def misfits(self) -> tuple[NodeLegality, ...]:
        """The nodes that are not legal at the opset that the model states."""
        return tuple(each for each in self.nodes if each.reason)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {"fits": self.fits, **asdict(self)}
