"""Shapes of RNN, GRU and LSTM."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.registry.shapes.context import Shape, ShapeContext
from opshift.registry.shapes.reading import input_shape, integer, text
from opshift.registry.shapes.table import rule


@rule("recurrent")
def recurrent(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the outputs of all steps, then the final states; with layout 1, the batch dimension is first."""
    data, recurrence = input_shape(node, 0), input_shape(node, 2)
    first, second = data[:2] if data is not None and len(data) == 3 else (None, None)
    hidden = integer(node, "hidden_size")
    if hidden is None and recurrence is not None and len(recurrence) == 3:
        hidden = recurrence[2]
    directions = 2 if text(node, "direction") == "bidirectional" else 1
    if integer(node, "layout", 0):
        state: Shape = (first, directions, hidden)
        return [(first, second, directions, hidden), state, state]
    state = (directions, second, hidden)
    return [(first, directions, second, hidden), state, state]
