"""NGramRepeatBlock of onnxruntime: exclude tokens that would repeat a sequence of tokens."""

import math

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor, adapter
from opshift.adapters.emit.expression import fold
from opshift.adapters.emit.shapes import INT64_MAX

OPSET = 13
"""Opset of the emitted nodes."""

NO_TOKEN = -1
"""Padding before the tokens; as an index, the last column."""


@adapter("NGramRepeatBlock", 1, 0, domain="com.microsoft")
def expand_n_gram_repeat_block(node: Node, out: Rewriter) -> None:
    """Rewrite as comparisons of all sequences with the last tokens, and ScatterElements of minus infinity."""
    out = out.for_opset(OPSET, "")
    ids, scores = node.inputs
    size = node.attribute("ngram_size")
    if size < 1:
        raise CannotConvert(f"ngram_size is {size}, but a sequence has at least one token", "node.invalid")
    # With padding, there is a sequence, and none with padding is equal to the last tokens.
    padding = [out.int64([0, size, 0, 0]), out.int64(NO_TOKEN)]
    padded = out.emit("Pad", [ids, *padding])

    def tokens(start: int, end: int) -> str:
        bounds = [out.int64([each]) for each in (start, end or INT64_MAX, 1)]
        return out.emit("Slice", [padded, *bounds])

    repeats = fold(
        "And",
        (
            out.emit("Equal", [tokens(place, place + 1 - size), tokens(place + 1 - size, place + 2 - size)])
            for place in range(size - 1)
        ),
        out,
    )
    excluded = tokens(size - 1, 0)
    if repeats:
        excluded = out.emit("Where", [repeats, excluded, out.int64(NO_TOKEN)])
    infinity = Tensor("float", (1,), (-math.inf,))
    updates = out.emit("ConstantOfShape", [out.emit("Shape", [excluded])], value=infinity)
    # A further column receives the updates of all other tokens.
    wider = out.emit("Pad", [scores, out.int64([0, 0, 0, 1])])
    changed = out.emit("ScatterElements", [wider, excluded, updates], axis=1)
    out.emit("Slice", [changed, *(out.int64([each]) for each in (0, -1, 1))], node.outputs)
