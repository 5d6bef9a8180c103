"""Update the record in a converted model."""

from collections.abc import Iterable, Iterator
from copy import deepcopy

from opshift.checker.ir_features.contents import FIRST_IR_WITH_STANDALONE_INITIALIZERS
from opshift.converter.plan.changes import ContainerPlan, Plan
from opshift.converter.reversible.record import (
    MAIN_GRAPH,
    AddedImport,
    ConversionRecord,
    GraphPath,
    RecordedCopy,
    RecordPart,
    restore_inputs,
    top_level_graphs,
    write_record,
)
from opshift.converter.reversible.value_index import ValueIndex
from opshift.model.graphs import ContainerProto, nested_nodes, remove_messages
from opshift.model.messages import FunctionProto, ModelProto
from opshift.model.offloaded_tensors import serialize
from opshift.model.operator_ids import called_function, canonical_domain, function_id, opset_imports


def update_record(record: ConversionRecord, plan: Plan, model: ModelProto, *, is_continued: bool) -> None:
    """Write the record of a plan with changes into the converted model; remove unneeded imports and copies.

    A record without entries is removed if the model is back at the recorded opsets, or if this conversion is
    not recorded (`is_continued` is false).
    """
    if _is_unchanged(plan):
        return
    planned = dict(_plans_by_path(plan, model))
    imports = dict.fromkeys((*record.imports, *_new_imports(planned)))
    # Remove copies first, because their nodes keep imports in use.
    copies = _merge_copies((*record.copies, *_new_copies(plan, list(planned))), model)
    used = tuple(each for each in imports if not _remove_if_unused(each, model))
    parts = tuple(
        part
        for place, container in top_level_graphs(model)
        if place in planned
        for part in _part_records(planned[place], container, place)
    )
    inputs = record.initializer_inputs
    if inputs and model.ir_version < FIRST_IR_WITH_STANDALONE_INITIALIZERS:
        restore_inputs(model.graph, inputs)
        inputs = ()
    changed = {"copies": copies, "imports": used, "parts": parts, "initializer_inputs": inputs}
    updated = record.model_copy(update=changed)
    opsets = opset_imports(model.opset_import, model.ir_version)
    is_restored = all(opsets.get(each.domain) == each.version for each in record.opsets)
    is_needed = updated.parts or (is_continued and not is_restored)
    write_record(model, updated if is_needed else None)


def _is_unchanged(plan: Plan) -> bool:
    keeps_model = not plan.opsets and plan.ir.before == plan.ir.after and not plan.copies
    return keeps_model and all(each.is_empty for each in (plan.graph, *plan.training, *plan.functions))


def _plans_by_path(plan: Plan, model: ModelProto) -> Iterator[tuple[GraphPath, ContainerPlan]]:
    """Yield each graph and function path with its plan."""
    bodies = tuple(container for _, container in plan.function_versions())
    for kind, plans in (("graph", (plan.graph,)), ("training_info", plan.training), ("function", bodies)):
        places = [place for place, _ in top_level_graphs(model) if place[0] == kind]
        # a lower IR version may have removed the training graphs or functions
        if len(places) == len(plans):
            yield from zip(places, plans, strict=True)


def _new_imports(planned: dict[GraphPath, ContainerPlan]) -> Iterator[AddedImport]:
    for place, top in planned.items():
        for each in top.walk():
            for domain in each.new_imports:
                yield AddedImport(place=place if place[0] == "function" else MAIN_GRAPH, domain=domain)


def _new_copies(plan: Plan, places: list[GraphPath]) -> Iterator[RecordedCopy]:
    functions = [place for place in places if place[0] == "function"]
    names: dict[int, str] = {}
    # not `strict`, because a lower IR version may have removed the functions
    for (index, _), place in zip(plan.function_versions(), functions, strict=False):
        name = names.setdefault(index, place[2])
        if place[2] != name:
            yield RecordedCopy(place=place, name=name)


def _part_records(plan: ContainerPlan, container: ContainerProto, place: GraphPath) -> Iterator[RecordPart]:
    if not any(each.reversal.entries for each in plan.walk()):
        return
    value_index = ValueIndex(container)
    if plan.reversal.entries:
        constants = tuple(each for each in plan.reversal.constants if value_index.has_constant(each))
        added_constants = frozenset(constants)
        digested = (
            entry.model_copy(update={"digest": value_index.digest(entry.group, added_constants) or ""})
            for entry in plan.reversal.entries
        )
        entries = tuple(each for each in digested if each.digest)
        if entries:
            yield RecordPart(place=place, entries=entries, constants=constants)
    for planned_position, attribute, position, inner in plan.subgraphs:
        steps = (plan.reversal.holders.get((planned_position, attribute), ""), attribute, str(position))
        graph = value_index.subgraph(*steps)
        if graph is not None:
            yield from _part_records(inner, graph, (*place, *steps))


def _merge_copies(copies: Iterable[RecordedCopy], model: ModelProto) -> tuple[RecordedCopy, ...]:
    """Remove function copies that equal the original function again, and return the remaining copies.

    Calls of a removed copy call the original function instead.
    """
    functions = _functions_by_path(model)
    remaining = [each for each in copies if each.place in functions]
    count = len(remaining) + 1
    # Removing one copy can make another copy, which calls it, equal to its original.
    while len(remaining) < count:
        count = len(remaining)
        remaining = [each for each in remaining if not _merge_copy(each, model)]
    return tuple(remaining)


def _merge_copy(copy: RecordedCopy, model: ModelProto) -> bool:
    functions = _functions_by_path(model)
    kind, domain, _, overload = copy.place
    function, original = functions[copy.place], functions.get((kind, domain, copy.name, overload))
    if original is None:
        return False
    # A copy and its original always have different names: compare both under one name.
    renamed = deepcopy(function)
    renamed.name = copy.name
    if serialize(renamed) != serialize(original):
        return False
    for node in nested_nodes(*dict(top_level_graphs(model)).values()):
        if ("function", *called_function(node)) == copy.place:
            node.op_type = copy.name
    model.functions.remove(function)
    return True


def _functions_by_path(model: ModelProto) -> dict[GraphPath, FunctionProto]:
    return {("function", *function_id(each)): each for each in model.functions}


def _remove_if_unused(added: AddedImport, model: ModelProto) -> bool:
    """Remove an added import if no node uses its domain; return whether it is removed or was absent."""
    if added.place == MAIN_GRAPH:
        # Functions without imports use the imports of the model.
        imports, users = model.opset_import, [container for _, container in top_level_graphs(model)]
    else:
        function = _functions_by_path(model).get(added.place)
        if function is None:
            return True
        imports, users = function.opset_import, [function]
    if any(canonical_domain(node.domain) == added.domain for node in nested_nodes(*users)):
        return False
    remove_messages(imports, [canonical_domain(each.domain) == added.domain for each in imports])
    return True
