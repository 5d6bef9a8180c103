"""Nodes that onnx.reference computes or accepts wrongly, used for nodes that onnxruntime does not run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import onnx

OWN_ACTIVATIONS = {"GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}
"""The activations that onnx.reference always applies, by operator."""

ONE_HOT_VALUES = 2
"""Position of the input `values` of OneHot, which contains the off value and the on value."""

POSITION = 2
"""Position of the input `position` of SequenceInsert."""


def has_reference_fault(node: onnx.NodeProto, values: Mapping[str, Any]) -> bool:
    """Return whether onnx.reference computes a node wrongly; `values` are its inputs.

    It ignores `activations` of GRU and LSTM, and computes OneHot by a product that is NaN for infinities.
    """
    if node.op_type == "OneHot":
        choices = np.asarray(values.get(node.input[ONE_HOT_VALUES], 0.0))
        return choices.dtype.kind not in "OUS" and not np.isfinite(choices.astype(float)).all()
    own = OWN_ACTIVATIONS.get(node.op_type)
    stated = next((each.strings for each in node.attribute if each.name == "activations"), ())
    return own is not None and any(
        each.decode().lower() != own[position % len(own)].lower() for position, each in enumerate(stated)
    )


def is_invalid(node: onnx.NodeProto, values: Mapping[str, Any]) -> bool:
    """Return whether a node is invalid, but runs in onnx.reference; `values` are all values of the model.

    It accepts positions outside of a sequence, and parts that do not add up to the axis.
    """
    if node.op_type == "SequenceInsert" and len(node.input) > POSITION:
        size = len(values[node.input[0]])
        return not -size <= int(values[node.input[POSITION]]) <= size
    if node.op_type == "SplitToSequence" and len(node.input) > 1:
        axis = next((each.i for each in node.attribute if each.name == "axis"), 0)
        parts = np.asarray(values[node.input[1]])
        return parts.ndim == 1 and int(parts.sum()) != np.shape(values[node.input[0]])[axis]
    return False
