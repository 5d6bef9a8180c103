"""Binarizer and ArrayFeatureExtractor, for runtimes without them."""

import math

from opshift.adapters import CannotConvert, Node, Rewriter, adapter
from opshift.adapters.emit.shapes import reshape
from opshift.model.element_types import INTEGER_BITS

DOMAIN = "ai.onnx.ml"

OPSET = 13
"""Opset of the emitted nodes."""


@adapter("Binarizer", 1, 0, domain=DOMAIN)
def expand_binarizer(node: Node, out: Rewriter) -> None:
    """Compare with the threshold, or with the integer below it, and cast the result."""
    data, threshold = node.inputs[0], node.attribute("threshold", 0.0)
    element_type = out.element_type(data)
    if element_type in INTEGER_BITS:
        if not abs(threshold) < 2.0 ** (INTEGER_BITS[element_type] - 1):
            reason = f"the threshold {threshold} is outside of the range of {element_type}"
            raise CannotConvert(reason, "operator.no-equivalent", remedy="replace the node by a constant")
        threshold = math.floor(threshold)
    out = out.for_opset(OPSET, "")
    is_greater = out.emit("Greater", [data, out.constant(threshold, element_type)])
    out.cast(is_greater, element_type, node.outputs)


@adapter("ArrayFeatureExtractor", 1, 0, domain=DOMAIN)
def expand_array_feature_extractor(node: Node, out: Rewriter) -> None:
    """Gather elements of the last axis; one-dimensional data is a matrix with one row."""
    data, indices = node.inputs
    rank = out.rank(data)
    out = out.for_opset(OPSET, "")
    rows = reshape(data, (1, -1), out) if rank == 1 else data
    out.emit("Gather", [rows, reshape(indices, (-1,), out)], node.outputs, axis=max(rank, 2) - 1)
