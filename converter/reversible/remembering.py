"""Update of the record in a converted model."""

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
    """Write the record of a plan into the converted model, and clean up additions that are no longer needed.

    The record is removed if it has no entries and the model is back at the recorded opsets, or if this
    conversion is not recorded.
    """
    if plan.header is None or _is_unchanged(plan):
        return
    record = plan.header.record
    planned = dict(_plans_by_path(plan, model))
    imports = dict.fromkeys((*record.imports, *_new_imports(planned)))
    # copies are removed first, because their nodes keep imports in use
    copies = merge_copies((*record.copies, *_new_copies(plan, list(planned))), model)
    converted = [(place, container) for place, container in top_places(model) if place in planned]
    parts = [
        part for place, container in converted for part in _part_records(planned[place], container, place)
    ]
    updated = record.model_copy(
        update={"copies": copies, "imports": remove_imports(imports, model), "parts": tuple(parts)}
    )
    opsets = opset_imports(model.opset_import, model.ir_version)
    is_restored = all(opsets.get(each.domain) == each.version for each in record.opsets)
    is_needed = updated.parts or (plan.header.is_continued and not is_restored)
    write_record(model, updated if is_needed else None)


def _is_unchanged(plan: Plan) -> bool:
    keeps_model = not plan.opsets and plan.ir.before == plan.ir.after and not plan.copies
    return keeps_model and all(each.is_empty for each in (plan.graph, *plan.training, *plan.functions))


def _plans_by_path(plan: Plan, model: Any) -> Iterator[tuple[Place, ContainerPlan]]:
    """Yield each graph and function path with its plan."""
    bodies = (*plan.functions, *(each.container for each in plan.copies))
    for kind, plans in (("graph", (plan.graph,)), ("training_info", plan.training), ("function", bodies)):
        places = [place for place, _ in top_places(model) if place[0] == kind]
        # a lower IR version may have removed the training graphs or functions
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


def _part_records(plan: ContainerPlan, container: Any, place: Place) -> Iterator[Part]:
    """Yield the records of a graph or function and of its subgraphs."""
    if not any(each.reversal.entries for each in plan.all()):
        return
    value_index = Holding(container)
    if plan.reversal.entries:
        constants = tuple(each for each in plan.reversal.constants if value_index.has_constant(each))
        added_constants = frozenset(constants)
        digested = (
            entry.model_copy(update={"digest": value_index.digest(entry.group, added_constants) or ""})
            for entry in plan.reversal.entries
        )
        entries = tuple(each for each in digested if each.digest)
        if entries:
            yield Part(place=place, entries=entries, constants=constants)
    for planned_position, attribute, position, inner in plan.subgraphs:
        holder = plan.reversal.holders.get((planned_position, attribute), "")
        if holder in value_index.makers:
            graph = graph_in(value_index.nodes[value_index.makers[holder]], attribute, str(position))
            if graph is not None:
                yield from _part_records(inner, graph, (*place, holder, attribute, str(position)))
