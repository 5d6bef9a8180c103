"""TreeEnsembleRegressor and TreeEnsembleClassifier, back: numbers in lists of floats until 3."""

from __future__ import annotations

from struct import pack, unpack

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.adapters.tensor_messages import tensor_of

SUFFIX = "_as_tensor"
UNUSED = "nodes_hitrates"
"""It says how often nodes were met in training, which changes no result."""


@adapter(("TreeEnsembleRegressor", "TreeEnsembleClassifier"), 3, 1, domain="ai.onnx.ml")
def tensors_become_lists_of_floats(node: Node, out: Rewriter) -> None:
    """What single precision holds goes to the list of the same name."""
    tensors = [name for name in node.attributes if name.endswith(SUFFIX)]
    lists = {}
    for name in tensors:
        listed = name.removesuffix(SUFFIX)
        if listed == UNUSED:
            continue
        values = tensor_of(node.attribute(name)).values
        lists[listed] = [*values]
        if any(not _is_held(value) for value in values):
            raise CannotConvert(
                f"{name} has numbers that single precision does not hold",
                remedy="round them, if the model can bear it, or keep ai.onnx.ml at 3 or later",
            )
    out.become(node, attributes={**node.without(*tensors), **lists})


def _is_held(value: float) -> bool:
    try:
        return value != value or unpack("<f", pack("<f", value))[0] == value
    except OverflowError:
        return False
