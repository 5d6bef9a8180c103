"""Sequences that stay inside of a model, as the tensors that they contain.

A pass over the nodes follows each sequence as a list of tensors. Sequence operators become operators on these
tensors, subgraphs pass the tensors, and loops with a constant number of iterations are unrolled if the number
of tensors changes in them. The pass replaces all sequences, or none.
"""

from __future__ import annotations

from collections import Counter
from copy import deepcopy

from opshift.converter.internal_types.sequence_graphs import (
    rewrite_if,
    rewrite_loop,
    rewrite_sequence_map,
)
from opshift.converter.internal_types.sequence_operators import (
    concatenate,
    construct,
    count,
    erase,
    identity,
    insert,
    select,
    split,
)
from opshift.converter.internal_types.sequence_pass import Context, SequencePass
from opshift.inference.function_scope import FunctionTable
from opshift.model.errors import CannotConvert
from opshift.model.graphs import ContainerProto, defined_values, root_graphs, training_graphs
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import function_label, opset_imports
from opshift.registry.registry import Registry

OPERATORS = {
    "SequenceConstruct": construct,
    "SequenceEmpty": construct,
    "SequenceInsert": insert,
    "SequenceErase": erase,
    "SequenceAt": select,
    "SequenceLength": count,
    "ConcatFromSequence": concatenate,
    "SplitToSequence": split,
    "SequenceMap": rewrite_sequence_map,
    "Identity": identity,
    "If": rewrite_if,
    "Loop": rewrite_loop,
}


def replace_sequences(
    model: ModelProto, registry: Registry
) -> tuple[ModelProto | None, dict[str, CannotConvert]]:
    """Return a copy of a model without sequences, or the reasons against it by the places of the nodes."""
    context = Context(OPERATORS)
    context.fresh_names.avoid(*root_graphs(model), *model.functions)
    opsets = opset_imports(model.opset_import, model.ir_version)
    copy, functions = deepcopy(model), FunctionTable(model, registry)
    main = functions.scope(model.graph, opsets, registry, {})
    names = Counter(defined_values(model.graph))
    passes: list[tuple[SequencePass, ContainerProto]] = [
        (SequencePass(main, "graph", context, names), copy.graph)
    ]
    for old, new in zip(training_graphs(model), training_graphs(copy), strict=True):
        scope = functions.scope(old.graph, opsets, registry, {}, main)
        training_names = names + Counter(defined_values(old.graph))
        passes.append((SequencePass(scope, old.path, context, training_names), new.graph))
    for index, function in enumerate(model.functions):
        scope = functions.scope(function, functions.opsets(index), registry, {})
        path, names = f"function {function_label(function)}", Counter(defined_values(function))
        passes.append((SequencePass(scope, path, context, names), copy.functions[index]))
    reasons: dict[str, CannotConvert] = {}
    for each, container in passes:
        each.run()
        each.write_to(container)
        reasons |= each.reasons
    return copy if context.sequence_count and not reasons else None, reasons
