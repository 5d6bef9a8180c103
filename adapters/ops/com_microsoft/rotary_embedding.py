"""RotaryEmbedding of onnxruntime, as the operator of ONNX."""

from opshift.adapters import CannotConvert, Node, Rewriter, adapter
from opshift.adapters.emit.shapes import dimension, dimension_tensor, index_range

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
    if rank == 3 and not heads:
        # The caches have a column for each pair of a head.
        heads = out.dimension(data, 2) // (2 * out.dimension(cosine, 1))
    if out.rank(positions) == 1:
        positions = _consecutive_positions(positions, data, rank - 2, out)
    out.emit(
        "RotaryEmbedding", [data, cosine, sine, positions], node.outputs,
        interleaved=node.attribute("interleaved"), num_heads=heads or None,
        rotary_embedding_dim=node.attribute("rotary_embedding_dim"),
    )  # fmt: skip


def _consecutive_positions(start: str, data: str, axis: int, out: Rewriter) -> str:
    """Return the positions of all tokens, of which `start` has the first."""
    batch, length = (dimension_tensor(dimension(data, each, out), out) for each in (0, axis))
    positions = out.emit("Add", [start, index_range(length, out)])
    return out.emit("Expand", [positions, out.emit("Concat", [batch, length], axis=0)])
