"""Sequences that stay inside of a model, as the tensors that they contain.

A pass over the nodes follows each sequence as a list of tensors. Sequence operators become operators on these
tensors, subgraphs pass the tensors, and loops with a constant number of iterations are unrolled if the number
of tensors changes in them. The pass replaces all sequences, or none.
"""

from collections import Counter
from copy import deepcopy

from opshift.converter.internal_types.sequence_graphs import rewrite_if, rewrite_loop, rewrite_sequence_map
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
from opshift.inference.root_scopes import root_scopes
from opshift.model.errors import CannotConvert
from opshift.model.graphs import ContainerProto, defined_values, nested_nodes, root_graphs
from opshift.model.messages import ModelProto
from opshift.registry.registry import Registry
from opshift.rewriting.allowances import Allowances

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

SEQUENCE_OPERATORS = {name for name in OPERATORS if "Sequence" in name}


def replace_sequences(
    model: ModelProto, registry: Registry, allowances: Allowances
) -> tuple[ModelProto | None, dict[str, CannotConvert]]:
    """Return a copy of a model without sequences, or the reasons against it by the places of the nodes."""
    containers: list[ContainerProto] = [*root_graphs(model), *model.functions]
    if SEQUENCE_OPERATORS.isdisjoint(node.op_type for node in nested_nodes(*containers)):
        return None, {}
    context = Context(OPERATORS, allowances)
    context.fresh_names.avoid(*containers)
    copy, reasons = deepcopy(model), dict[str, CannotConvert]()
    for scope, container, path in root_scopes(model, copy, registry):
        visible = [scope.container] if scope.parent is None else [scope.container, scope.parent.container]
        values = SequencePass(scope, path, context, Counter(defined_values(*visible)))
        values.run()
        values.write_to(container)
        reasons |= values.reasons
    return copy if context.sequence_count and not reasons else None, reasons
