"""Write the record into a model that has been converted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from opshift.converter.changes import ContainerPlan, Plan
from opshift.converter.opsets import opset_imports
from opshift.converter.reversible.additions import merge_copies, remove_imports
from opshift.converter.reversible.holding import Holding
from opshift.converter.reversible.places import GRAPH, graph_in, top_places
from opshift.converter.reversible.record import Copy, Import, Part, Place, write_record


def remember(plan: Plan, model: Any) -> None:
    """Make a converted model remember what the plan says, and forget what is put back."""
    if plan.header is None or _changes_nothing(plan):
        return
    record = plan.header.record
    planned = dict(_planned(plan, model))
    imports = dict.fromkeys((*record.imports, *_new_imports(planned)))
    copies = merge_copies((*record.copies, *_new_copies(plan, list(planned))), model)
    tops = [(place, container) for place, container in top_places(model) if place in planned]
    parts = [part for place, container in tops for part in _parts(planned[place], container, place)]
    found = record.model_copy(
        update={"copies": copies, "imports": remove_imports(imports, model), "parts": tuple(parts)}
    )
    opsets = opset_imports(model.opset_import, model.ir_version)
    is_home = all(opsets.get(each.domain) == each.version for each in record.opsets)
    is_kept = found.parts or (plan.header.is_continued and not is_home)
    write_record(model, found if is_kept else None)


def _changes_nothing(plan: Plan) -> bool:
    is_same = not plan.opsets and plan.ir.before == plan.ir.after and not plan.copies
    return is_same and all(each.is_empty for each in (plan.graph, *plan.training, *plan.functions))


def _planned(plan: Plan, model: Any) -> Iterator[tuple[Place, ContainerPlan]]:
    """What happened where; a lower IR version may have cost the model its training or its functions."""
    bodies = (*plan.functions, *(each.container for each in plan.copies))
    for kind, plans in (("graph", (plan.graph,)), ("training_info", plan.training), ("function", bodies)):
        places = [place for place, _ in top_places(model) if place[0] == kind]
        if len(places) == len(plans):
            yield from zip(places, plans, strict=True)


def _new_imports(planned: dict[Place, ContainerPlan]) -> Iterator[Import]:
    for place, top in planned.items():
        for each in top.all():
            for domain in each.new_imports:
                yield Import(place=place if place[0] == "function" else GRAPH, domain=domain)


def _new_copies(plan: Plan, places: list[Place]) -> Iterator[Copy]:
    functions = [place for place in places if place[0] == "function"]
    for each, place in zip(plan.copies, functions[len(plan.functions) :], strict=False):
        yield Copy(place=place, name=functions[each.index][2])


def _parts(plan: ContainerPlan, container: Any, place: Place) -> Iterator[Part]:
    """What is to be recorded of a graph or function, and of those within."""
    if not any(each.reversal.entries for each in plan.all()):
        return
    holding = Holding(container)
    if plan.reversal.entries:
        constants = tuple(each for each in plan.reversal.constants if holding.has_constant(each))
        added = frozenset(constants)
        digested = (
            entry.model_copy(update={"digest": holding.digest(entry.group, added) or ""})
            for entry in plan.reversal.entries
        )
        entries = tuple(each for each in digested if each.digest)
        if entries:
            yield Part(place=place, entries=entries, constants=constants)
    for index, attribute, position, inner in plan.subgraphs:
        holder = plan.reversal.holders.get((index, attribute), "")
        if holder in holding.makers:
            graph = graph_in(holding.nodes[holding.makers[holder]], attribute, str(position))
            if graph is not None:
                yield from _parts(inner, graph, (*place, holder, attribute, str(position)))
