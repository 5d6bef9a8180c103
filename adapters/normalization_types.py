"""BatchNormalization: scale, bias and statistics may be of other types than the data from 14 and 15 on."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.registry.element_types import BY_NAME

WIDTHS = {"float16": 1, "bfloat16": 1, "float": 2, "double": 3}


def common_type(names: Sequence[str], out: Rewriter) -> str | None:
    """The type that holds the values of all, if they are not of one type already."""
    types = {out.element_type(name) for name in names}
    if len(types) == 1:
        return None
    widest = max(types, key=lambda each: WIDTHS[each])
    return "float" if WIDTHS[widest] == 1 else widest


def compute_in(
    element_type: str, inputs: Sequence[int], outputs: Sequence[int], node: Node, out: Rewriter
) -> None:
    """Emit the node as the version it was, with some inputs cast to a type and some outputs back."""
    opset = out.source.since_version
    number = BY_NAME[element_type].number
    cast_inputs, cast_outputs, back = list(node.inputs), list(node.outputs), []
    for position in inputs:
        if out.element_type(node.inputs[position]) != element_type:
            cast_inputs[position] = out.emit("Cast", [node.inputs[position]], opset=opset, to=number)
    for position in outputs:
        name = node.output(position)
        narrow = out.element_type(node.inputs[0 if position == 0 else position + 2])
        if name and narrow != element_type:
            cast_outputs[position] = out.fresh(f"{name}_wide")
            back.append((cast_outputs[position], name, BY_NAME[narrow].number))
    out.become(node, inputs=cast_inputs, outputs=cast_outputs, opset=opset)
    for wide, name, narrow_number in back:
        out.emit("Cast", [wide], [name], opset=opset, to=narrow_number)
