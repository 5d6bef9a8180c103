"""Recurrent networks."""

from __future__ import annotations

from typing import Any

from random_graphs.draft import Choice, Draft, TensorSpec

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
HIDDEN = 2


def directions(n: Draft) -> int:
    """Return the number of directions."""
    return 2 if n.attribute("direction") == "bidirectional" else 1


def gates(n: Draft) -> int:
    """Return the number of gates of the operator."""
    return GATES[n.version.name]


def _is_batch_first(n: Draft) -> bool:
    return "layout" in n.version.attributes and n.attribute("layout") == 1


def batch(n: Draft) -> int:
    """Return the batch size of the data."""
    return n.shape[0 if _is_batch_first(n) else 1]


def state(n: Draft) -> Any:
    """Draw no initial state, or its shape."""
    if n.chance(50):
        return None
    sizes = (batch(n), directions(n)) if _is_batch_first(n) else (directions(n), batch(n))
    return TensorSpec((*sizes, HIDDEN))


def lengths(n: Draft) -> Any:
    """Draw no sequence lengths, or one for each element of the batch."""
    if n.chance(60):
        return None
    longest = n.shape[1 if _is_batch_first(n) else 0]
    return [n.number(1, longest) for _ in range(batch(n))]


def activations(n: Draft) -> Any:
    """Draw no activation functions, or the functions of all gates and directions."""
    if n.chance(60):
        return None
    count = {"RNN": 1, "GRU": 2, "LSTM": 3}[n.version.name] * directions(n)
    return [n.one_of("Tanh", "Sigmoid", "Relu") for _ in range(count)]


CHOICES: dict[str, Choice] = {
    "recurrent.X": lambda n: TensorSpec((n.number(1, 3), n.number(1, 2), 3)),
    "recurrent.W": lambda n: TensorSpec((directions(n), gates(n) * HIDDEN, 3), "unit"),
    "recurrent.R": lambda n: TensorSpec((directions(n), gates(n) * HIDDEN, HIDDEN), "unit"),
    "recurrent.B": lambda n: n.one_of(None, TensorSpec((directions(n), 2 * gates(n) * HIDDEN))),
    "recurrent.sequence_lens": lengths,
    "recurrent.initial_h": state,
    "recurrent.initial_c": state,
    "recurrent.P": lambda n: n.one_of(None, TensorSpec((directions(n), 3 * HIDDEN))),
    "recurrent.hidden_size": lambda n: HIDDEN,
    "recurrent.activations": activations,
    "recurrent.direction": lambda n: n.attribute("direction"),
    "recurrent.layout": lambda n: n.attribute("layout"),
    "recurrent.clip": lambda n: n.one_of(None, None, 0.75),
    "GRU.linear_before_reset": lambda n: n.one_of(None, 0, 1),
}
RANKS: dict[str, tuple[int, int]] = {}
