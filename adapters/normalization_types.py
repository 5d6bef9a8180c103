"""BatchNormalization: since versions 14 and 15, parameters may differ in type from the data."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.registry.element_types import BY_NAME

WIDTHS = {"float16": 1, "bfloat16": 1, "float": 2, "double": 3}
"""Order of the types by width."""


def common_type(names: Sequence[str], out: Rewriter) -> str | None:
    """Return the narrowest type that holds the values of all, or `None` if they have one type already."""
    types = {out.element_type(name) for name in names}
    if len(types) == 1:
        return None
    widest = max(types, key=lambda element_type: WIDTHS[element_type])
    # Neither float16 nor bfloat16 holds the values of the other.
    return "float" if WIDTHS[widest] == 1 else widest


def compute_in(
    element_type: str, inputs: Sequence[int], outputs: Sequence[int], node: Node, out: Rewriter
) -> None:
    """Emit the node in its source version, with some inputs cast to a type and some outputs cast back."""
    # The step runs again on the emitted node, which then has a single type.
    opset = out.source.since_version
    number = BY_NAME[element_type].number
    cast_inputs, cast_outputs, casts_back = list(node.inputs), list(node.outputs), []
    for position in inputs:
        if out.element_type(node.inputs[position]) != element_type:
            cast_inputs[position] = out.emit("Cast", [node.inputs[position]], opset=opset, to=number)
    for position in outputs:
        name = node.output(position)
        # Output 0 has the type of the data; running statistics have that of inputs 3 and 4.
        original_type = out.element_type(node.inputs[0 if position == 0 else position + 2])
        if name and original_type != element_type:
            cast_outputs[position] = out.fresh(f"{name}_wide")
            casts_back.append((cast_outputs[position], name, BY_NAME[original_type].number))
    out.become(node, inputs=cast_inputs, outputs=cast_outputs, opset=opset)
    for wide_name, name, original_number in casts_back:
        out.emit("Cast", [wide_name], [name], opset=opset, to=original_number)
