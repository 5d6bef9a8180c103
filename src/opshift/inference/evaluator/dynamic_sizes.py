"""Casts of sizes to floats that are not worth evaluating."""

from __future__ import annotations

from opshift.inference.constants import FLOAT_INTEGER_RANGES
from opshift.inference.evaluator.rule_table import EVALUATED
from opshift.inference.facts import InferenceScope
from opshift.model.element_types import BY_NAME
from opshift.model.graphs import is_graph
from opshift.model.node import Node
from opshift.model.types import shape_of

FLOAT_NUMBERS = tuple(BY_NAME[name].number for name in FLOAT_INTEGER_RANGES)
"""Numbers of the floating-point types that Cast converts to."""

MAX_WALK = 64
"""Maximum number of values to visit in search of a shape: each Cast starts its own search."""


def rounds_sizes(node: Node, scope: InferenceScope) -> bool:
    """Return whether a node converts sizes to floats in a model with sizes known only at run time.

    Floats have no symbols, so the result is hardly ever known. Exporters compute the scales of each Resize
    like this, and inferring the shapes for them would take most of the time of a conversion.
    """
    is_cast = node.op_type == "Cast" and node.attribute("to") in FLOAT_NUMBERS
    return is_cast and _has_dynamic_inputs(scope) and _reads_sizes(node.input(0), scope)


def _has_dynamic_inputs(scope: InferenceScope) -> bool:
    """Return whether an input of the main graph has an unknown size, apart from the batch."""
    if scope.evaluation.has_dynamic_inputs is None:
        root = scope
        while root.parent is not None:
            root = root.parent
        inputs = root.container.input if is_graph(root.container) else ()
        shapes = [shape_of(value.type) for value in inputs]
        scope.evaluation.has_dynamic_inputs = any(shape is None or None in shape[1:] for shape in shapes)
    return scope.evaluation.has_dynamic_inputs


def _reads_sizes(name: str, scope: InferenceScope) -> bool:
    """Return whether evaluated operators compute a value from a shape."""
    pending, seen = [name], {name}
    while pending and len(seen) <= MAX_WALK:
        record = scope.producing_records.get(pending.pop())
        if record is None or record[2] not in EVALUATED:
            continue
        if record[2] in ("Shape", "Size"):
            return True
        pending += [each for each in record[3] if each not in seen]
        seen.update(record[3])
    return bool(pending)
