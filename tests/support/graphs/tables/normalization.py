"""Normalization, and operators with one parameter a channel."""

from __future__ import annotations

from typing import Any

from support.graphs.draft import Choice, Draft, Of
from support.graphs.tables.layout import axis


def channels(n: Draft) -> Of:
    return Of(n.shape[1:2])


def means(n: Draft) -> Of:
    """A tensor of its own: some runtimes write the running means over it."""
    return Of(n.shape[1:2], fresh=True)


def spread(n: Draft) -> Of:
    return Of(n.shape[1:2], "positive")


def from_axis_on(n: Draft) -> Of:
    return Of(n.shape[axis(n) :])


def groups(n: Draft) -> int:
    found: int = n.fact("groups", lambda: n.one_of(*(each for each in (1, 2, 3) if n.shape[1] % each == 0)))
    return found


def of_groups(n: Draft) -> Of:
    return Of((groups(n) if n.since < 21 else n.shape[1],))


def training_mode(n: Draft) -> Any:
    """Only in training are there other outputs than the first."""
    n.facts["outputs"] = 3 if n.chance(40) else 1
    return 1 if n.facts["outputs"] == 3 else n.one_of(None, 0)


def plain(n: Draft) -> Of:
    """Floats that vary; onnxruntime expands the function for them alone."""
    n.types["T"] = "float"
    return Of((2, 2, 2, 3))


def spatial(n: Draft) -> Any:
    n.facts["outputs"] = 1
    return n.one_of(None, 1)


CHOICES: dict[str, Choice] = {
    "BatchNormalization.scale": channels,
    "BatchNormalization.B": channels,
    "BatchNormalization.mean": means,
    "BatchNormalization.var": spread,
    "BatchNormalization.input_mean": means,
    "BatchNormalization.input_var": spread,
    "BatchNormalization.spatial": spatial,
    "BatchNormalization.training_mode": training_mode,
    "InstanceNormalization.scale": channels,
    "InstanceNormalization.B": channels,
    "GroupNormalization.scale": of_groups,
    "GroupNormalization.bias": of_groups,
    "GroupNormalization.num_groups": groups,
    "LayerNormalization.Scale": from_axis_on,
    "LayerNormalization.B": lambda n: n.one_of(None, from_axis_on(n)),
    "RMSNormalization.scale": from_axis_on,
    "MeanVarianceNormalization.X": plain,
    "MeanVarianceNormalization.axes": lambda n: n.one_of(None, [0, 2, 3], [1, -1], [2, 3]),
    "epsilon": lambda n: n.one_of(None, 1e-3, 0.1),
}
RANKS: dict[str, tuple[int, int]] = {
    "BatchNormalization": (2, 4), "InstanceNormalization": (3, 4), "GroupNormalization": (3, 4),
    "LayerNormalization": (1, 4), "RMSNormalization": (1, 4),
}  # fmt: skip
