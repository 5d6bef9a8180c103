"""Differences between two models."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from opshift.converter.report import counted_names
from opshift.model.plain_data import Json

Status = Literal["added", "removed", "changed", "renamed", "kept"]

MARKS: Mapping[Status, str] = {"added": "+", "removed": "-", "changed": "~", "renamed": "=", "kept": " "}

VALUE_CHANGES = ("input", "output", "captured value")
"""Prefixes of the names of changes whose texts are value names."""


@dataclass(frozen=True)
class PropertyChange:
    """Property with its value in both models; `before` or `after` is empty if a model lacks the property."""

    name: str
    before: str
    after: str

    @property
    def status(self) -> Status:
        """Status: `added`, `removed` or `changed`."""
        if self.before and self.after:
            return "changed"
        return "added" if self.after else "removed"

    @property
    def is_metadata(self) -> bool:
        """Whether the property is an entry of `metadata_props`."""
        return self.name.startswith("metadata")

    def __str__(self) -> str:
        return f"{MARKS[self.status]} {self.name}: {' -> '.join(filter(None, (self.before, self.after)))}"


@dataclass(frozen=True)
class DiffNode:
    """Node of one of the models.

    Attributes:
        position: its index in its graph or function.
        operator: name of the operator, with the domain unless it is the default domain.
        name, inputs, outputs: as in NodeProto.
        constants: some inputs that are initializers: name, and type, shape and few elements as text.
    """

    position: int
    operator: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: tuple[tuple[str, str], ...] = ()

    @property
    def place(self) -> str:
        """Name of the node, or else its outputs."""
        return self.name or ", ".join(self.outputs)

    @property
    def label(self) -> str:
        """Operator, and the name or else the outputs."""
        return f"{self.operator}{' ' if self.name else ' -> '}{self.place}"


@dataclass(frozen=True)
class NodeDifference:
    """Node in one or both models, and its changes.

    Attributes:
        status: `renamed` means that only names differ.
        before, after: the node in each model; `None` if the model lacks it.
        changes: the properties that differ.
    """

    status: Status
    before: DiffNode | None
    after: DiffNode | None
    changes: tuple[PropertyChange, ...] = ()

    @property
    def node(self) -> DiffNode:
        """The node in the new model, or in the old one if it was removed."""
        node = self.after or self.before
        assert node is not None
        return node

    @property
    def kind(self) -> tuple[object, ...]:
        """Key of the change without metadata, node names and value names: equal for identical changes."""
        changes = [each for each in self.changes if not each.is_metadata]
        is_value = [each.name.startswith(VALUE_CHANGES) for each in changes]
        parts = (each.name if value else each for each, value in zip(changes, is_value, strict=True))
        return self.status, self.node.operator, *parts

    @property
    def mark(self) -> str:
        """Character for the status in texts, such as `+` for `added`."""
        return MARKS[self.status]


@dataclass(frozen=True)
class Region:
    """Connected changed nodes, and the unchanged nodes next to them (status `kept`)."""

    nodes: tuple[NodeDifference, ...]

    @property
    def changed(self) -> Iterator[NodeDifference]:
        """The added, removed and changed nodes."""
        return (each for each in self.nodes if each.status != "kept")

    @property
    def title(self) -> str:
        """Operators before and after, such as `Softmax -> Flatten, Softmax, Reshape`."""
        old = Counter(each.before.operator for each in self.changed if each.before)
        new = Counter(each.after.operator for each in self.changed if each.after)
        before, after = counted_names(old.items()), counted_names(new.items())
        return before if before == after else f"{before or 'nothing'} -> {after or 'nothing'}"


@dataclass(frozen=True)
class ContainerDiff:
    """Differences of the model itself, or of one graph or function."""

    place: str
    properties: tuple[PropertyChange, ...]
    regions: tuple[Region, ...] = ()
    renamed: tuple[NodeDifference, ...] = ()

    def identical(self) -> Iterator[Sequence[Region]]:
        """Yield groups of regions with the same changes, apart from names."""
        groups: dict[tuple[object, ...], list[Region]] = {}
        for region in self.regions:
            groups.setdefault(tuple(each.kind for each in region.changed), []).append(region)
        yield from groups.values()


@dataclass(frozen=True)
class ModelDiff:
    """All differences between two models.

    Attributes:
        containers: differences of the model itself, and of each graph and function that differs.
        kept: number of equal nodes, including nodes of subgraphs and functions.
    """

    containers: tuple[ContainerDiff, ...]
    kept: int

    @property
    def equal(self) -> bool:
        """Whether there are no differences."""
        return not self.containers

    def counts(self) -> dict[Status, int]:
        """Return the number of nodes of each status."""
        regions = (region for each in self.containers for region in each.regions)
        found = Counter(each.status for region in regions for each in region.changed)
        renamed = sum(len(each.renamed) for each in self.containers)
        statuses: tuple[Status, ...] = ("added", "removed", "changed")
        return {**{each: found[each] for each in statuses}, "renamed": renamed, "kept": self.kept}

    def __str__(self) -> str:
        if self.equal:
            return "no differences"
        nodes = ", ".join(f"{count:,} {status}" for status, count in self.counts().items() if count)
        properties = sum(len(each.properties) for each in self.containers)
        return f"nodes: {nodes or 'none'}; other properties: {properties:,} differ"

    def as_dict(self) -> dict[str, Json]:
        """Return plain data for JSON."""
        return {
            "equal": self.equal,
            "nodes": {str(status): count for status, count in self.counts().items()},
            "containers": [
                {
                    "place": each.place,
                    "properties": [asdict(change) for change in each.properties],
                    "regions": [[asdict(node) for node in region.nodes] for region in each.regions],
                    "renamed": [asdict(node) for node in each.renamed],
                }
                for each in self.containers
            ],
        }
