"""What a conversion changes: nodes, graphs and functions, opsets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from opshift.adapters.node import Node, Tensor
from opshift.converter.errors import ConversionRefused, Refusal
from opshift.converter.ir.change import IrChange
from opshift.converter.lines import Line
from opshift.converter.pattern import Result
from opshift.converter.reversible.reversal import Reversal
from opshift.converter.survey import label
from opshift.registry.names import OperatorId

if TYPE_CHECKING:
    from opshift.converter.reversible.record import Header


class NodeChange(NamedTuple):
    """A node that is replaced: what it was, and what takes its place.

    Where that is no pattern's, `original` is the view that it came of.
    """

    line: Line
    path: str
    name: str
    result: Result
    original: Node | None = None

    @property
    def position(self) -> int:
        """Where the node stands among those of its graph or function."""
        return self.line[0]

    @property
    def place(self) -> str:
        """The graph or function, and the node in it."""
        _, _, op_type, _, outputs = self.line
        return f"{self.path}, node {label(self.name, op_type, outputs)}"

    @property
    def operator(self) -> OperatorId:
        """What the node was."""
        return self.result.operator.id


@dataclass
class ContainerPlan:
    """What happens in one graph or function."""

    path: str
    node_count: int = 0
    changes: list[NodeChange] = field(default_factory=list)
    constants: Mapping[str, Tensor] = field(default_factory=dict)
    new_imports: dict[str, int] = field(default_factory=dict)
    """Domains that new nodes are of and that had no opset import."""
    subgraphs: list[tuple[int, str, int, ContainerPlan]] = field(default_factory=list)
    """Position of the node, name of its attribute, position in it, and the plan of the graph there."""

    calls: list[tuple[int, str]] = field(default_factory=list)
    """Position of nodes that call a function, and the name of the copy that they are to call."""
    reversal: Reversal = field(default_factory=Reversal)
    """What is put back of what earlier conversions replaced, and what is remembered of this one."""

    def all(self) -> Iterator[ContainerPlan]:
        """This plan and those of the graphs within."""
        waiting = [self]
        while waiting:
            current = waiting.pop()
            yield current
            waiting += reversed([each[3] for each in current.subgraphs])

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes here or within."""
        is_same = not self.changes and not self.calls and not self.reversal.dropped
        return is_same and all(each[3].is_empty for each in self.subgraphs)


@dataclass(frozen=True)
class FunctionCopy:
    """A function that is specialised for some of its calls.

    Attributes:
        index: the position of the function in the model.
        function: what it is called.
        name: the name of the copy, in the same domain.
        container: what happens in the copy.
    """

    index: int
    function: str
    name: str
    container: ContainerPlan


@dataclass(frozen=True)
class OpsetChange:
    """One domain's opset before and after."""

    domain: str
    source: int
    target: int


@dataclass(frozen=True)
class Plan:
    """All that a conversion does to a model, and all that stands in its way.

    Attributes:
        opsets: the domains whose opset changes.
        ir: the IR version before and after, and what changes for it.
        graph, training, functions: what happens in each.
        refusals: what cannot be converted; a plan with any is never applied.
        concessions: what is not exact and was allowed, with the reason of each.
        copies: the functions that are specialised for some of their calls.
    """

    opsets: tuple[OpsetChange, ...]
    ir: IrChange
    graph: ContainerPlan
    training: tuple[ContainerPlan, ...]
    """Of each training_info its initialization and its algorithm."""
    functions: tuple[ContainerPlan, ...]
    targets: Mapping[str, int]
    refusals: tuple[Refusal, ...]
    concessions: tuple[tuple[str, str], ...] = ()
    copies: tuple[FunctionCopy, ...] = ()
    header: Header | None = None
    """What the model is to remember of its conversions as a whole."""

    def containers(self) -> Iterator[ContainerPlan]:
        """Every graph and function of the model."""
        for top in (self.graph, *self.training, *self.functions, *(each.container for each in self.copies)):
            yield from top.all()

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all changes; a model with functions is not looked at that closely."""
        versions_stay = not self.opsets and self.ir.before == self.ir.after and not self.ir.lowerings
        return versions_stay and not self.functions and all(each.is_empty for each in self.containers())

    def require_possible(self) -> None:
        """Raise what stands in the way.

        Raises:
            ConversionRefused: at least one node cannot be converted.
        """
        if self.refusals:
            raise ConversionRefused(self.refusals)
