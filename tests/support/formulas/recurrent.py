"""Recurrent layers before opset 7, forward, without bias and from a state of zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from support.formulas.elementwise import sigmoid
from support.running import Array

Step = Callable[[Array, Array, Array, Array, Array], tuple[Array, Array]]


def layer(step: Step) -> Callable[..., Any]:
    """Carries hidden and cell state along the sequence; the sequence is told only if it is asked for."""

    def run(x: Array, w: Array, r: Array, *rest: Array | None, output_sequence: int, **stated: Any) -> Any:
        assert all(each is None for each in rest), "neither bias nor lengths nor states"
        assert stated.get("direction") in ("forward", "foward")
        hidden = cell = np.zeros((x.shape[1], r.shape[2]), x.dtype)
        sequence = []
        for each in x:
            hidden, cell = step(each, w[0], r[0], hidden, cell)
            sequence.append(hidden[None])
        told = np.stack(sequence) if output_sequence else np.zeros(0, x.dtype)
        return told, hidden[None], cell[None]

    return run


def rnn(x: Array, w: Array, r: Array, hidden: Array, cell: Array) -> tuple[Array, Array]:
    return np.tanh(x @ w.T + hidden @ r.T), cell


def gru(x: Array, w: Array, r: Array, hidden: Array, cell: Array) -> tuple[Array, Array]:
    """Gates in the order update, reset, hidden; the reset comes before the product."""
    wz, wr, wh = np.split(w, 3)
    rz, rr, rh = np.split(r, 3)
    update, reset = sigmoid(x @ wz.T + hidden @ rz.T), sigmoid(x @ wr.T + hidden @ rr.T)
    new = np.tanh(x @ wh.T + (reset * hidden) @ rh.T)
    return np.asarray((1 - update) * new + update * hidden), cell


def lstm(x: Array, w: Array, r: Array, hidden: Array, cell: Array) -> tuple[Array, Array]:
    """Gates in the order input, output, forget, cell."""
    given, shown, kept, new = np.split(x @ w.T + hidden @ r.T, 4, 1)
    cell = sigmoid(kept) * cell + sigmoid(given) * np.tanh(new)
    return sigmoid(shown) * np.tanh(cell), cell
