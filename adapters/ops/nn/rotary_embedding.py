"""RotaryEmbedding (introduced in opset 23): rotate pairs of elements by angles with given sine and cosine."""

from opshift.adapters import CannotConvert, Node, Rewriter, adapter
from opshift.adapters.emit.shapes import INT64_MAX, reshape


@adapter("RotaryEmbedding", 23, 22)
def expand_rotary_embedding(node: Node, out: Rewriter) -> None:
    """Rewrite as arithmetic on the first `rotary_embedding_dim` elements of each head; 0 means all."""
    packed = out.rank(node.inputs[0]) == 3
    data = _split_heads(node, out) if packed else node.inputs[0]
    width = _rotated_width(node, out)
    rotated = _rotate(_slice_last(data, 0, width, out) if width else data, node, packed, out)
    if width:
        rotated = out.emit("Concat", [rotated, _slice_last(data, width, INT64_MAX, out)], axis=3)
    reshape(rotated, (0, 0, -1) if packed else (0, 0, 0, -1), out, node.outputs)


def _split_heads(node: Node, out: Rewriter) -> str:
    """Return the data as (batch, sequence, heads, head size)."""
    heads = node.attribute("num_heads", 0)
    if not heads:
        reason = "num_heads is missing, but 3-D data requires it"
        raise CannotConvert(reason, "node.invalid", remedy="set num_heads")
    return reshape(node.inputs[0], (0, 0, heads, -1), out)


def _rotated_width(node: Node, out: Rewriter) -> int:
    """Return how many elements of a head are rotated; 0 for all."""
    width, shape = node.attribute("rotary_embedding_dim", 0), out.shape(node.inputs[0])
    size = shape[-1] if shape else None
    if size is not None and shape is not None and len(shape) == 3:
        size //= node.attribute("num_heads", 1) or 1
    return 0 if width == size else int(width)


def _rotate(data: str, node: Node, packed: bool, out: Rewriter) -> str:
    """Rotate pairs: adjacent elements if `interleaved`, otherwise elements of both halves of a head."""
    interleaved = node.attribute("interleaved", 0)
    pairs = reshape(data, (0, 0, 0, -1, 2) if interleaved else (0, 0, 0, 2, -1), out)
    axis = 4 if interleaved else 3
    first, second = (out.emit("Gather", [pairs, out.int64(index)], axis=axis) for index in (0, 1))
    cosine, sine = (_angles(node, position, packed, out) for position in (1, 2))
    real = out.emit("Sub", [out.emit("Mul", [cosine, first]), out.emit("Mul", [sine, second])])
    imaginary = out.emit("Add", [out.emit("Mul", [sine, first]), out.emit("Mul", [cosine, second])])
    if not interleaved:
        return out.emit("Concat", [real, imaginary], axis=3)
    columns = [out.emit("Unsqueeze", [each, out.int64([4])], opset=13) for each in (real, imaginary)]
    return reshape(out.emit("Concat", columns, axis=4), (0, 0, 0, -1), out)


def _angles(node: Node, position: int, packed: bool, out: Rewriter) -> str:
    """Return the sine or cosine for every token, the same for all heads."""
    angles = node.inputs[position]
    if node.input(3):
        angles = out.emit("Gather", [angles, node.inputs[3]], axis=0)
    return out.emit("Unsqueeze", [angles, out.int64([2 if packed else 1])], opset=13)


def _slice_last(data: str, start: int, end: int, out: Rewriter) -> str:
    bounds = [out.int64([each]) for each in (start, end, 3)]
    return out.emit("Slice", [data, *bounds])
