"""The record of a model while it is planned: what it brings back, and what is added to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import Any

from opshift.converter.changes import ContainerPlan, NodeChange
from opshift.converter.ir.change import IrChange, since
from opshift.converter.ir.lowering import least_version
from opshift.converter.ir_version import INITIALIZERS_STAND_ALONE
from opshift.converter.lines import read_line
from opshift.converter.names import Names
from opshift.converter.reversible.groups import intact_groups, read_original
from opshift.converter.reversible.holding import Holding, first_output, names_made, names_read, names_read_in
from opshift.converter.reversible.places import graph_at, holding_of, top_places
from opshift.converter.reversible.record import Header, Opset, Part, Record, read_record
from opshift.converter.reversible.recording import newly_remembered, still_remembered
from opshift.converter.reversible.restoring import drop_constants, settle
from opshift.converter.reversible.reversal import Reversal
from opshift.converter.reversible.written import names_read_by
from opshift.converter.route import Router
from opshift.converter.survey import Surveyed
from opshift.converter.target import Target
from opshift.registry.catalogue import Registry
from opshift.registry.messages import NodeProto


class History:
    """What one model remembers of earlier conversions.

    Args:
        model: the model as it is.
        is_continued: whether this conversion is recorded.

    Raises:
        InvalidModel: the record that the model carries is damaged.
    """

    def __init__(self, model: Any, is_continued: bool) -> None:
        self.is_continued = is_continued
        self._model = model
        self._record = read_record(model)
        self._holdings: dict[int, Holding] = {}

    def reserve(self, names: Names) -> None:
        """See to it that no new value gets the name of one that may come back."""
        originals = chain.from_iterable(self._originals.values())
        names.sets.append({name for each in originals for name in names_made(each)})

    def restore(self, found: ContainerPlan, surveyed: Surveyed, router: Router) -> None:
        """Plan to put back what stands unchanged and belongs to the target, or lies on the way there."""
        part = self._parts.get(id(surveyed.scope.container))
        if part is None:
            return
        scope, reversal = surveyed.scope, found.reversal
        holding = holding_of(scope.container, self._holdings)
        reversal.constants = [each for each in part.constants if holding.has_constant(each)]
        groups = intact_groups(part, surveyed, holding, self._used_outside(scope.container))
        settle(groups, reversal, holding, scope, router)
        found.changes += (
            NodeChange(
                read_line(position, each.group.original),
                surveyed.path,
                each.group.original.name,
                each.result,
                each.node,
            )
            for position, each in reversal.returns.items()
            if not each.changes_nothing
        )

    def note(self, found: ContainerPlan, surveyed: Surveyed, router: Router) -> None:
        """Add to the plan what the converted model is to remember."""
        reversal = found.reversal
        reversal.entries += still_remembered(found, surveyed)
        if self.is_continued:
            reversal.entries += newly_remembered(found, surveyed, router)
        read = {name for change in found.changes for name in names_read_by(change.result.nodes)}
        if reversal.carried:  # what was tried for them in vain may have added some
            found.constants = {name: each for name, each in found.constants.items() if name in read}
        if reversal.returns:
            container = surveyed.scope.container
            read.update(self._used_outside(container), self._still_wanted(reversal, surveyed))
            drop_constants(reversal, holding_of(container, self._holdings), read)
        found.changes.sort(key=lambda each: each.position)
        reversal.constants += found.constants
        reversal.holders = _holders(found, surveyed)

    def ir(
        self,
        change: IrChange,
        imports: Mapping[str, int],
        target: Target,
        registry: Registry,
    ) -> IrChange:
        """The change of the IR version: back to what it was, and rewriting nothing where it need not be."""
        if target.wanted_ir_version is not None:
            return change
        if self._record and self._leads_home(imports, target):
            return self._ir_home(change, target, registry)
        if self.is_continued and target.ir_version is None and not change.dropped:
            least = min(change.before, INITIALIZERS_STAND_ALONE)
            after = max([least, change.after, *(since(each.feature) for each in change.lowerings)])
            return replace(change, after=after, lowerings=())
        return change

    def header(self, imports: Mapping[str, int], ir: IrChange) -> Header:
        """The record after the conversion, but for its parts."""
        opsets = tuple(Opset(domain=domain, version=opset) for domain, opset in imports.items())
        known = self._record or Record(format=1, ir_version=(ir.before, ir.after), opsets=opsets)
        versions = (known.ir_version[0], ir.after)
        return Header(known.model_copy(update={"ir_version": versions}), self.is_continued)

    def _leads_home(self, imports: Mapping[str, int], target: Target) -> bool:
        assert self._record is not None
        finals = {**imports, **target.opsets}
        return all(finals.get(each.domain) == each.version for each in self._record.opsets)

    def _ir_home(self, change: IrChange, target: Target, registry: Registry) -> IrChange:
        assert self._record is not None
        before, after = self._record.ir_version
        if change.before != after:
            before = max(before, change.before)
        if before < change.before:
            before = max(before, least_version(self._model, registry))
        if target.ir_version is not None and before > target.ir_version:
            return change
        return IrChange(change.before, before)

    @cached_property
    def _originals(self) -> dict[int, list[Any]]:
        """The recorded nodes that are not there, by the identity of the graph or function."""
        sample = NodeProto()
        return {
            key: [read_original(each, sample) for each in part.entries if each.original]
            for key, part in self._parts.items()
        }

    def _still_wanted(self, reversal: Reversal, surveyed: Surveyed) -> Iterator[str]:
        """What is read by nodes that may come back later, or come back in graphs within."""
        for group in reversal.carried:
            yield from names_read(group.original)
        waiting = [each[3] for each in surveyed.subgraphs if each[0] not in reversal.settled]
        while waiting:
            current = waiting.pop()
            for each in self._originals.get(id(current.scope.container), ()):
                yield from names_read(each)
            waiting += [below[3] for below in current.subgraphs]

    @cached_property
    def _parts(self) -> dict[int, Part]:
        """What is recorded of each graph and function that is still there, by its identity."""
        found: dict[int, Part] = {}
        tops = dict(top_places(self._model))
        for part in self._record.parts if self._record else ():
            container = graph_at(part.place, tops, self._holdings)
            if container is not None:
                holding_of(container, self._holdings)
                found[id(container)] = part
        return found

    def _used_outside(self, container: Any) -> frozenset[str]:
        """The names of a graph that training refers to from outside of it."""
        return self._trained | self._bound if container is self._model.graph else self._bound

    @cached_property
    def _trained(self) -> frozenset[str]:
        """The names that training graphs read; those of the main graph are among them."""
        graphs = (
            graph for info in self._model.training_info for graph in (info.initialization, info.algorithm)
        )
        return frozenset(name for graph in graphs for name in names_read_in(graph))

    @cached_property
    def _bound(self) -> frozenset[str]:
        """The names of what training sets, and of what it sets it to."""
        infos = self._model.training_info
        bindings = (each for info in infos for each in (*info.initialization_binding, *info.update_binding))
        return frozenset(name for each in bindings for name in (each.key, each.value))


def _holders(found: ContainerPlan, surveyed: Surveyed) -> dict[tuple[int, str], str]:
    nodes = surveyed.scope.container.node
    changes = {each.position: each.result.nodes for each in found.changes}
    holders: dict[tuple[int, str], str] = {}
    for index, attribute, _, _ in surveyed.subgraphs:
        written = changes.get(index)
        if written is None:
            holders[index, attribute] = first_output(nodes[index])
            continue
        holder = next((each for each in written if attribute in each.node.attributes), None)
        holders[index, attribute] = next(filter(None, holder.node.outputs), "") if holder else ""
    return holders
