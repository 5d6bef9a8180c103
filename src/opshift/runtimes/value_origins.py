"""Search for operators that compute a value, through nodes that keep its element type."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from opshift.inference.evaluator.element_facts import defining_scope
from opshift.inference.facts import InferenceScope, Producer
from opshift.inference.infer_types import parameter_at


def comes_from(scope: InferenceScope, name: str, operators: Collection[str]) -> bool:
    """Return whether a value is a result of an operator, or of nodes that compute it from such a result.

    These nodes keep the element type: their definitions have one type variable for the result and the input.

    Args:
        scope: the scope that reads the value.
        name: the name of the value.
        operators: operator types of any domain.
    """
    pending, seen = [(scope, name)], set()
    while pending:
        current = pending.pop()
        owner = defining_scope(*current)
        producer = owner.producer(current[1]) if owner is not None else None
        if owner is None or producer is None or current in seen:
            continue
        if producer.node.op_type in operators:
            return True
        seen.add(current)
        pending += [(owner, each) for each in _inputs_of_same_type(producer)]
    return False


def _inputs_of_same_type(producer: Producer) -> Iterator[str]:
    """Yield the inputs of a node with the type variable of one of its outputs."""
    operator = producer.operator
    output = parameter_at(operator.outputs, producer.position) if operator is not None else None
    if operator is None or output is None or output.type not in operator.type_constraints:
        return
    for position, name in enumerate(producer.node.inputs):
        parameter = parameter_at(operator.inputs, position)
        if name and parameter is not None and parameter.type == output.type:
            yield name
