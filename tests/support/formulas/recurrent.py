"""Forward recurrent layers before opset 7, without bias, with an initial state of zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from support.execution import Array
from support.formulas.elementwise import sigmoid

Step = Callable[[Array, Array, Array, Array, Array], tuple[Array, Array]]


def layer(step: Step) -> Callable[..., Any]:
    """Apply a step along the sequence; all hidden states are an output only with `output_sequence`."""

    def run(
        x: Array, w: Array, r: Array, *rest: Array | None, output_sequence: int, **attributes: Any
    ) -> Any:
        assert all(each is None for each in rest), "bias, lengths and initial states are not implemented"
        assert attributes.get("direction") in ("forward", "foward")
        hidden = cell = np.zeros((x.shape[1], r.shape[2]), x.dtype)
        sequence = []
        for each in x:
            hidden, cell = step(each, w[0], r[0], hidden, cell)
            sequence.append(hidden[None])
        output = np.stack(sequence) if output_sequence else np.zeros(0, x.dtype)
        return output, hidden[None], cell[None]

    return run


def rnn(x: Array, w: Array, r: Array, hidden: Array, cell: Array) -> tuple[Array, Array]:
    return np.tanh(x @ w.T + hidden @ r.T), cell


def gru(x: Array, w: Array, r: Array, hidden: Array, cell: Array) -> tuple[Array, Array]:
    """Compute a GRU step; gates are update, reset, hidden, and reset applies before the product."""
    wz, wr, wh = np.split(w, 3)
    rz, rr, rh = np.split(r, 3)
    update, reset = sigmoid(x @ wz.T + hidden @ rz.T), sigmoid(x @ wr.T + hidden @ rr.T)
    new = np.tanh(x @ wh.T + (reset * hidden) @ rh.T)
    return np.asarray((1 - update) * new + update * hidden), cell


def lstm(x: Array, w: Array, r: Array, hidden: Array, cell: Array) -> tuple[Array, Array]:
    """Compute an LSTM step; gates are input, output, forget, cell."""
    input_gate, output_gate, forget_gate, new = np.split(x @ w.T + hidden @ r.T, 4, 1)
    cell = sigmoid(forget_gate) * cell + sigmoid(input_gate) * np.tanh(new)
    return sigmoid(output_gate) * np.tanh(cell), cell
