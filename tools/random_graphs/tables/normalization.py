"""Normalization, and operators with one parameter per channel."""

from __future__ import annotations

from typing import Any

from random_graphs.draft import Choice, Draft, TensorSpec
from random_graphs.tables.layout import axis


def channels(n: Draft) -> TensorSpec:
    """Return the shape of a vector with one number for each channel."""
    return TensorSpec(n.shape[1:2])


def means(n: Draft) -> TensorSpec:
    """Choose a new tensor, since some runtimes overwrite it with the running means."""
    return TensorSpec(n.shape[1:2], fresh=True)


def variances(n: Draft) -> TensorSpec:
    """Return the shape of a vector with one positive number for each channel."""
    return TensorSpec(n.shape[1:2], "positive")


def trailing_shape(n: Draft) -> TensorSpec:
    return TensorSpec(n.shape[axis(n) :])


def groups(n: Draft) -> int:
    """Draw the number of groups, which divides the number of channels."""
    found: int = n.fact("groups", lambda: n.one_of(*(each for each in (1, 2, 3) if n.shape[1] % each == 0)))
    return found


def group_parameters(n: Draft) -> TensorSpec:
    return TensorSpec((groups(n) if n.since < 21 else n.shape[1],))


def training_mode(n: Draft) -> Any:
    """Choose the training mode; only training has more than one output."""
    n.facts["outputs"] = 3 if n.chance(40) else 1
    return 1 if n.facts["outputs"] == 3 else n.one_of(None, 0)


def float_image(n: Draft) -> TensorSpec:
    """Choose floats; onnxruntime expands the function for them only."""
    n.types["T"] = "float"
    return TensorSpec((2, 2, 2, 3))


def spatial(n: Draft) -> Any:
    """Draw the attribute `spatial`, and use the first output only."""
    n.facts["outputs"] = 1
    return n.one_of(None, 1)


CHOICES: dict[str, Choice] = {
    "BatchNormalization.scale": channels,
    "BatchNormalization.B": channels,
    "BatchNormalization.mean": means,
    "BatchNormalization.var": variances,
    "BatchNormalization.input_mean": means,
    "BatchNormalization.input_var": variances,
    "BatchNormalization.spatial": spatial,
    "BatchNormalization.training_mode": training_mode,
    "InstanceNormalization.scale": channels,
    "InstanceNormalization.B": channels,
    "GroupNormalization.scale": group_parameters,
    "GroupNormalization.bias": group_parameters,
    "GroupNormalization.num_groups": groups,
    "LayerNormalization.Scale": trailing_shape,
    "LayerNormalization.B": lambda n: n.one_of(None, trailing_shape(n)),
    "RMSNormalization.scale": trailing_shape,
    "MeanVarianceNormalization.X": float_image,
    "MeanVarianceNormalization.axes": lambda n: n.one_of(None, [0, 2, 3], [1, -1], [2, 3]),
    "epsilon": lambda n: n.one_of(None, 1e-3, 0.1),
}
RANKS: dict[str, tuple[int, int]] = {
    "BatchNormalization": (2, 4), "InstanceNormalization": (3, 4), "GroupNormalization": (3, 4),
    "LayerNormalization": (1, 4), "RMSNormalization": (1, 4),
}  # fmt: skip
