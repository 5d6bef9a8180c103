"""Result of `diagnose`: opsets at which nodes are valid, and versions that a model should declare."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

from opshift.model.plain_data import Json

OpsetRanges = tuple[tuple[int, int], ...]
"""Ranges of consecutive opsets, each as its first and last opset."""


def opset_ranges(opsets: Iterable[int]) -> OpsetRanges:
    """Return opsets as ranges of consecutive numbers: 1, 2 and 4 are `((1, 2), (4, 4))`."""
    ordered = sorted(opsets)
    starts = [each for before, each in pairwise([-1, *ordered]) if each != before + 1 or before == -1]
    ends = [each for each, after in pairwise([*ordered, 0]) if after != each + 1]
    return tuple(zip(starts, ends, strict=True))


def ranges_text(opsets: OpsetRanges) -> str:
    """Format ranges of opsets: `1 to 12, 15`."""
    parts = (str(low) if low == high else f"{low} to {high}" for low, high in opsets)
    return ", ".join(parts) or "none"


def missing_import(domain: str) -> str:
    """Return the reason why nodes of a domain without an import are invalid."""
    return f"domain {domain} has no opset import"


@dataclass(frozen=True)
class NodeValidity:
    """Opsets at which a node is valid."""

    place: str
    operator: str
    opsets: OpsetRanges
    reason: str = ""
    """Reason why the node is invalid at the declared opset; empty if it is valid."""

    @property
    def is_undefined(self) -> bool:
        """Whether the node's domain lacks an import, and no opset is known at which the node is valid."""
        return not self.opsets and self.reason == missing_import(self.operator.rpartition(".")[0])

    def is_valid_at(self, opset: int) -> bool:
        """Return whether the node is valid at an opset."""
        return any(low <= opset <= high for low, high in self.opsets)


@dataclass(frozen=True)
class Stamp:
    """Opset import, and the opsets at which all nodes of its domain are valid."""

    place: str
    """The model or function that declares the import."""
    domain: str
    opset: int | None
    """The declared opset, or the last of several declared opsets; `None` if the domain is not imported."""
    opsets: OpsetRanges
    fitting: int | None
    """The opset to declare: the last possible import, else the nearest possible opset, else `None`."""
    replaced: tuple[str, ...] = ()
    """Operators with nodes that are invalid at `fitting` and must be replaced: no opset is valid for all."""
    repeated: tuple[int, ...] = ()
    """Other opsets that earlier imports of the domain declare; only one import is allowed."""
    converted: bool = False
    """Whether to convert the nodes to `fitting`, because onnxruntime executes all of them at `opset`."""

    @property
    def fits(self) -> bool:
        """Whether the import can stay: a single opset, at which no node is known to be invalid."""
        return (
            self.opset is not None and self.opset == self.fitting and not self.replaced and not self.repeated
        )


@dataclass(frozen=True)
class IrStamp:
    """IR version that a model declares (`stated`), and the IR version that it should declare."""

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
    """Valid opsets of the nodes of a model, and the versions that it declares and should declare.

    Attributes:
        stamps: opset imports of the model and of its functions.
        ir_version: the IR version.
        nodes: the nodes of domains in the registry, and all nodes of domains without an import.
        unknown: the number of nodes without a definition, such as calls of the model's functions.
        repairs: repairs that a conversion makes first, such as sorting nodes, a sentence each.
        overridable: the initializers that are graph inputs, too. At the fitting IR version, callers can
            override them, so runtimes do not optimize nodes that depend on them.
        guesses: fitting opsets among several that may give different results, a sentence each.
    """

    stamps: tuple[Stamp, ...]
    ir_version: IrStamp
    nodes: tuple[NodeValidity, ...]
    unknown: int = 0
    repairs: tuple[str, ...] = ()
    overridable: tuple[str, ...] = ()
    guesses: tuple[str, ...] = ()

    def __str__(self) -> str:
        stamps = [
            f"{each.place}: {each.domain} {each.opset or 'not imported'}, valid {ranges_text(each.opsets)}"
            for each in self.stamps
        ]
        ir = f"IR version {self.ir_version.stated}, fitting {self.ir_version.fitting}"
        invalid = [f"{each.place}: {each.reason}" for each in self.mismatches()]
        more = [f"and {len(invalid) - MAX_LISTED:,} more invalid nodes"] if len(invalid) > MAX_LISTED else []
        return "\n".join([*stamps, ir, *invalid[:MAX_LISTED], *more])

    @property
    def fits(self) -> bool:
        """Whether all declared versions are valid."""
        return self.ir_version.fits and all(each.fits for each in self.stamps)

    @property
    def unfixable(self) -> tuple[Stamp, ...]:
        """Stamps (opset imports) for which no opset is possible."""
        return tuple(each for each in self.stamps if each.fitting is None)

    def mismatches(self) -> tuple[NodeValidity, ...]:
        """Return the nodes that are invalid at the declared opset."""
        return tuple(each for each in self.nodes if each.reason)

    def is_unknown(self, stamp: Stamp) -> bool:
        """Return whether a stamp is for a domain without an import, and no opset of its nodes is known."""
        return stamp.fitting is None and all(
            each.is_undefined for each in self.nodes if _uses_stamp(each, stamp)
        )

    def unfixable_reason(self, stamp: Stamp) -> tuple[str, str]:
        """Return the reason why no opset fits a stamp in `unfixable`, and the remedy."""
        domain = stamp.domain
        nodes = [each for each in self.nodes if _uses_stamp(each, stamp)]
        if self.is_unknown(stamp):
            reason = f"domain {domain} has no opset import, and its opsets are unknown"
            return reason, f"add the import of {domain} with the version for which its nodes are written"
        reason = f"no opset of {domain} is valid for all nodes"
        never = [each for each in nodes if not each.opsets]
        candidates = {opset for each in nodes for pair in each.opsets for opset in pair}
        if never or not candidates:
            return reason, f"correct the nodes that are valid at no opset: {_nodes_text(never)}"
        declared = stamp.opset or 0
        best = max(
            candidates,
            key=lambda each: (sum(node.is_valid_at(each) for node in nodes), -abs(each - declared), each),
        )
        others = [each for each in nodes if not each.is_valid_at(best)]
        remedy = (
            f"rewrite {len(others)} of {len(nodes)} nodes for opset {best}, "
            f"for example with opshift.convert_node: {_nodes_text(others)}"
        )
        return reason, remedy

    def as_dict(self) -> dict[str, Json]:
        """Return plain data for JSON."""
        return {"fits": self.fits, **asdict(self)}


MAX_LISTED = 3
"""Maximum number of nodes that a remedy names."""


def _uses_stamp(node: NodeValidity, stamp: Stamp) -> bool:
    if node.operator.rpartition(".")[0] != stamp.domain:
        return False
    if stamp.place == "model":
        return not node.place.startswith("function ")
    # With the separator: the label of one function may be the start of the label of another.
    return node.place.startswith((f"{stamp.place}, ", f"{stamp.place} / "))


def _nodes_text(nodes: Sequence[NodeValidity]) -> str:
    texts = [
        f"{each.operator.rpartition('.')[2]} ({each.place}; valid at {ranges_text(each.opsets)})"
        for each in nodes[:MAX_LISTED]
    ]
    more = len(nodes) - len(texts)
    return ", ".join(texts) + (f" and {more:,} more" if more else "")
