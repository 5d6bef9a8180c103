"""What a Loop, Scan or SequenceMap hands to the inputs of its body, for bodies that do not state it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opshift.adapters.node import Node
from opshift.converter.types import Shape

if TYPE_CHECKING:
    from opshift.converter.scope import Scope

BATCHED = 8
"""The opset whose Scan takes the lengths of sequences first, and batches."""
COUNTED = ("int64", "bool")
"""The types of what Loop makes itself: the number of the turn, and whether it goes on."""


def handed_type(body: Scope, name: str) -> str | None:
    """The element type of an input of a body."""
    holder, position = body.holder, _position(body, name)
    if holder is None or position is None or body.parent is None:
        return None
    if holder.op_type == "Loop" and position < len(COUNTED):
        return COUNTED[position]
    found = body.parent.element_type(_outer(body, holder, position))
    if found is not None and holder.op_type == "SequenceMap" and found.startswith("seq(tensor("):
        return found.removeprefix("seq(tensor(").removesuffix("))")
    return found


def handed_shape(body: Scope, name: str) -> Shape | None:
    """The shape of an input of a body; the states of a Loop may change theirs."""
    holder, position = body.holder, _position(body, name)
    if holder is None or position is None or body.parent is None:
        return None
    if holder.op_type == "Loop":
        return () if position < len(COUNTED) else None
    outer = _outer(body, holder, position)
    shape = body.parent.shape(outer)
    if shape is None or holder.op_type == "Scan":
        return shape and _of_one_step(body, Node.of(holder), position, shape)
    return None if (body.parent.element_type(outer) or "seq(").startswith("seq(") else shape


def _position(body: Scope, name: str) -> int | None:
    inputs = enumerate(body.container.input)
    return next((position for position, value in inputs if value.name == name), None)


def _outer(body: Scope, holder: Any, position: int) -> str:
    """The value of the graph around that an input stands for."""
    place = position + (holder.op_type == "Scan" and body.opset_of("") == BATCHED)
    return str(holder.input[place]) if place < len(holder.input) else ""


def _of_one_step(body: Scope, scan: Node, position: int, shape: Shape) -> Shape | None:
    """A state of a Scan as it is, or one step of what is scanned; of a batch, one sample."""
    is_batched = body.opset_of("") == BATCHED
    states = len(scan.inputs) - is_batched - scan.attribute("num_scan_inputs", 0)
    if is_batched:
        return shape[1:] if position < states else shape[2:]
    if position < states:
        return shape
    axes = scan.attribute("scan_input_axes", ())
    axis = axes[position - states] if position - states < len(axes) else 0
    return tuple(size for place, size in enumerate(shape) if place != axis % len(shape))
