"""Data types of a plan: changes to nodes, graphs, functions, opsets and the IR version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from opshift.converter.errors import ConversionRefused, Refusal
from opshift.converter.ir_version.change import IrChange
from opshift.converter.plan.restorations import Restorations
from opshift.converter.rewrite.result import NodeRewrite
from opshift.model.graphs import NodeRecord, node_label
from opshift.model.node import Tensor
from opshift.model.operator_ids import OperatorId

if TYPE_CHECKING:
    from opshift.converter.reversible.record import RecordHeader


class NodeChange(NamedTuple):
    """Replacement of a node.

    Attributes:
        record: record of the replaced node.
        path: graph or function that contains it, for messages.
        name: its name.
        result: its rewrite.
    """

    record: NodeRecord
    path: str
    name: str
    result: NodeRewrite

    @property
    def position(self) -> int:
        """Position of the node in its graph or function."""
        return self.record[0]

    @property
    def place(self) -> str:
        """Label of the node, with its graph or function."""
        _, _, op_type, _, outputs = self.record
        return f"{self.path}, node {node_label(self.name, op_type, outputs)}"

    @property
    def operator(self) -> OperatorId:
        """Identity of the replaced operator version."""
        return self.result.operator.id


@dataclass
class ContainerPlan:
    """Changes to one graph or function."""

    path: str
    node_count: int = 0
    changes: list[NodeChange] = field(default_factory=list)
    constants: Mapping[str, Tensor] = field(default_factory=dict)
    new_imports: dict[str, int] = field(default_factory=dict)
    """Opset imports to add, for domains that only new nodes use."""
    subgraphs: list[tuple[int, str, int, ContainerPlan]] = field(default_factory=list)
    """Position of a node, name of its attribute, position in the attribute, and the plan of that subgraph."""

    calls: list[tuple[int, str]] = field(default_factory=list)
    """Positions of calls to redirect, each with the name of the function copy to call."""
    reversal: Restorations = field(default_factory=Restorations)
    """Nodes that earlier conversions replaced and this one restores, and the records that it adds."""

    def walk(self) -> Iterator[ContainerPlan]:
        """Yield this plan and the plans of all nested subgraphs."""
        waiting = [self]
        while waiting:
            current = waiting.pop()
            yield current
            waiting += reversed([each[3] for each in current.subgraphs])

    @property
    def is_empty(self) -> bool:
        """Whether neither this container nor any nested subgraph changes."""
        is_same = not self.changes and not self.calls and not self.reversal.dropped
        return is_same and all(each[3].is_empty for each in self.subgraphs)


@dataclass(frozen=True)
class FunctionCopy:
    """Copy of a function, specialized for some of its calls.

    Attributes:
        index: position of the function in the model.
        function: label of the function.
        name: name of the copy, in the same domain.
        container: plan of the copy.
    """

    index: int
    function: str
    name: str
    container: ContainerPlan


@dataclass(frozen=True)
class OpsetChange:
    """Opset of one domain before and after the conversion."""

    domain: str
    source: int
    target: int


@dataclass(frozen=True)
class Plan:
    """Everything that a conversion does to a model, and everything that prevents it.

    Attributes:
        opsets: domains with a changed opset.
        ir: IR version before and after, and the rewrites that it requires.
        graph: plan of the main graph.
        training: plans of the training graphs.
        functions: plans of the local functions, in the order of the model.
        targets: target opsets by domain.
        refusals: nodes and features that cannot be converted; a plan with refusals is never applied.
        concessions: inexact conversions that were allowed: each kind with its reason.
        copies: functions that are specialized for some of their calls.
        header: conversion record of the model as a whole; `None` without one.
    """

    opsets: tuple[OpsetChange, ...]
    ir: IrChange
    graph: ContainerPlan
    training: tuple[ContainerPlan, ...]
    """Initialization and algorithm of each `training_info`, in order."""
    functions: tuple[ContainerPlan, ...]
    targets: Mapping[str, int]
    refusals: tuple[Refusal, ...]
    concessions: tuple[tuple[str, str], ...] = ()
    copies: tuple[FunctionCopy, ...] = ()
    header: RecordHeader | None = None
    """Record of this and earlier conversions to write into the model."""

    def containers(self) -> Iterator[ContainerPlan]:
        """Yield the plan of every graph, subgraph, function and function copy."""
        for top in (self.graph, *self.training, *self.functions, *(each.container for each in self.copies)):
            yield from top.walk()

    @property
    def is_empty(self) -> bool:
        """Whether the conversion changes nothing; always `False` for models with functions."""
        versions_stay = not self.opsets and self.ir.before == self.ir.after and not self.ir.lowerings
        return versions_stay and not self.functions and all(each.is_empty for each in self.containers())

    def require_possible(self) -> None:
        """Raise an error if the plan contains refusals.

        Raises:
            ConversionRefused: at least one node or feature cannot be converted.
        """
        if self.refusals:
            raise ConversionRefused(self.refusals)
