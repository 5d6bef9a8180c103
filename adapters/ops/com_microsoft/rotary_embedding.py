"""RotaryEmbedding of onnxruntime, as the operator of ONNX."""

from opshift.adapters import CannotConvert, Node, Rewriter, adapter
from opshift.adapters.emit.shapes import (
    dimension,
    dimension_tensor,
    index_range,
    multiply_dimension,
    reshape,
    reshape_like,
)

OPSET = 23
"""First opset with RotaryEmbedding."""


@adapter("RotaryEmbedding", 1, 0, domain="com.microsoft")
def expand_rotary_embedding(node: Node, out: Rewriter) -> None:
    """Rewrite as RotaryEmbedding of ONNX, with one position for each token."""
    out = out.for_opset(OPSET, "")
    if node.attribute("is_packed_batching", 0):
        reason = "is_packed_batching is 1, but RotaryEmbedding of ONNX requires a batch dimension"
        raise CannotConvert(reason, "attribute.unsupported", subject="is_packed_batching")
    data, positions, cosine, sine = node.inputs[:4]
    heads, rank = node.attribute("num_heads", 0), out.rank(data)
    sizes = out.known_dimension(data, 2), out.known_dimension(cosine, 1)
    if rank == 3 and not heads and sizes[0] is not None and sizes[1]:
        # The caches have a column for each pair of a head.
        heads = sizes[0] // (2 * sizes[1])
    if out.rank(positions) == 1:
        positions = _consecutive_positions(positions, data, rank - 2, out)
    attributes = {name: node.attribute(name) for name in ("interleaved", "rotary_embedding_dim")}
    is_split = rank == 4 or heads
    rotated = out.emit(
        "RotaryEmbedding",
        [data if is_split else _split_heads(data, cosine, out), cosine, sine, positions],
        node.outputs if is_split else 1,
        num_heads=heads or None,
        **attributes,
    )
    if not is_split:
        merged = out.emit("Transpose", [rotated], perm=(0, 2, 1, 3))
        reshape_like(merged, data, out.emit("Shape", [data]), out, node.outputs)


def _split_heads(data: str, cosine: str, out: Rewriter) -> str:
    """Return the data as (batch, heads, sequence, head size), with sizes that are computed."""
    half = dimension(cosine, 1, out)
    size = multiply_dimension(half, 2, out)
    heads = out.emit("Div", [dimension_tensor(dimension(data, 2, out), out), dimension_tensor(size, out)])
    return out.emit("Transpose", [reshape(data, (0, 0, heads, size), out)], perm=(0, 2, 1, 3))


def _consecutive_positions(start: str, data: str, axis: int, out: Rewriter) -> str:
    """Return the positions of all tokens, of which `start` has the first."""
    batch, length = (dimension_tensor(dimension(data, each, out), out) for each in (0, axis))
    positions = out.emit("Add", [start, index_range(length, out)])
    return out.emit("Expand", [positions, out.emit("Concat", [batch, length], axis=0)])
