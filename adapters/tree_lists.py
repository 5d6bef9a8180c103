"""TreeEnsembleRegressor and TreeEnsembleClassifier, downgrade: tensors of numbers since version 3."""

from __future__ import annotations

from struct import pack, unpack

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.adapters.tensor_messages import tensor_of

SUFFIX = "_as_tensor"
"""Suffix of the attributes that version 3 added."""
UNUSED = "nodes_hitrates"
"""Frequency of each node in training. It has no effect on results, so it may be dropped."""


@adapter(("TreeEnsembleRegressor", "TreeEnsembleClassifier"), 3, 1, domain="ai.onnx.ml")
def tensors_become_lists_of_floats(node: Node, out: Rewriter) -> None:
    """Move tensors to the lists of the same names, if float represents their numbers."""
    tensors = [name for name in node.attributes if name.endswith(SUFFIX)]
    lists = {}
    for name in tensors:
        list_name = name.removesuffix(SUFFIX)
        if list_name == UNUSED:
            continue
        values = tensor_of(node.attribute(name)).values
        lists[list_name] = [*values]
        if any(not _fits_float(value) for value in values):
            raise CannotConvert(
                f"{name} has numbers that float does not represent exactly",
                remedy="round them if the model tolerates it, or keep ai.onnx.ml at 3 or later",
            )
    out.become(node, attributes={**node.without(*tensors), **lists})


def _fits_float(value: float) -> bool:
    try:
        # NaN differs from itself, but float represents it.
        return value != value or unpack("<f", pack("<f", value))[0] == value
    except OverflowError:
        return False
