"""Rewrite TfIdfVectorizer (opset 9): compare all windows of a row with all n-grams, and count the matches."""

from collections.abc import Iterator, Sequence
from itertools import count

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor, adapter
from opshift.adapters.core.rewriter import rename_output
from opshift.adapters.emit.expression import fold
from opshift.adapters.emit.shapes import SLICE_END

OPSET = 13
"""Opset of the emitted nodes."""


@adapter("TfIdfVectorizer", 9, 8)
def expand_tf_idf_vectorizer(node: Node, out: Rewriter) -> None:
    """Count the windows of each row that equal an n-gram, and select the counts by coordinates."""
    pool, coordinates = node.attribute("pool_int64s"), node.attribute("ngram_indexes")
    width = out.require_elements(max(coordinates) + 1)
    weights = node.attribute("weights") if node.attribute("mode") != b"TF" else None
    if pool is None:
        reason, remedy = "the n-grams are strings", "number the strings outside of the model"
        raise CannotConvert(reason, "operator.no-equivalent", remedy=remedy)
    if weights is not None and list(coordinates) != list(range(len(weights))):
        reason = "runtimes do not agree whether weights belong to n-grams or to coordinates"
        remedy = "order the pool by the coordinates of the n-grams"
        raise CannotConvert(reason, "operator.no-equivalent", remedy=remedy)
    starts = node.attribute("ngram_counts")
    lengths = range(node.attribute("min_gram_length"), node.attribute("max_gram_length") + 1)
    out = out.for_opset(OPSET)
    data = _padded(node, pool, lengths[-1], out)
    counts: list[str] = []
    positions: dict[int, list[int]] = {}
    gram, counted = 0, 0
    for length, (start, end) in enumerate(zip(starts, [*starts[1:], len(pool)], strict=True), start=1):
        items = pool[start:end]
        size = len(items) // length
        if size and length in lengths:
            # N-grams of one item have no distances between items.
            distances = range(1, node.attribute("max_skip_count") + 2) if length > 1 else [1]
            counts.append(fold("Add", (_counts(data, items, length, each, out) for each in distances), out))
            for position in range(size):
                positions.setdefault(coordinates[gram + position], []).append(counted + position)
            counted += size
        gram += size
    result = _select(counts, positions, width, out)
    if node.attribute("mode") == b"IDF":
        result = out.cast(out.cast(result, "bool"), "float")
    if weights is not None:
        result = out.emit("Mul", [result, out.constant(weights, "float")])
    rename_output(result, node, out)


def _padded(node: Node, pool: Sequence[int], longest: int, out: Rewriter) -> str:
    """Append items that no n-gram has: onnxruntime's ReduceSum keeps the axis of rows without windows."""
    span = (longest - 1) * (node.attribute("max_skip_count") + 1)
    pads = [0] * (2 * out.rank(node.inputs[0]) - 1) + [span + 1]
    known = set(pool)
    other = next(each for each in count() if each not in known)
    element_type = out.element_type(node.inputs[0])
    # Pad before the Cast, because tract does not pad the result of a Cast to int64.
    padded = out.emit("Pad", [node.inputs[0], out.int64(pads), out.constant(other, element_type)])
    return padded if element_type == "int64" else out.cast(padded, "int64")


def _counts(data: str, items: Sequence[int], length: int, distance: int, out: Rewriter) -> str:
    """Return how often each n-gram of a length occurs in each row, with a distance between its items."""
    span = (length - 1) * distance
    hits = []
    for position in range(length):
        start = position * distance
        bounds = [out.int64([each]) for each in (start, start - span or SLICE_END, -1)]
        column = out.emit("Unsqueeze", [out.emit("Slice", [data, *bounds]), out.int64([-1])])
        hits.append(out.emit("Equal", [column, out.int64(items[position::length])]))
    hit = out.cast(fold("And", hits, out), "float")
    return out.emit("ReduceSum", [hit, out.int64([-2])], keepdims=0)


def _select(counts: Sequence[str], positions: dict[int, list[int]], width: int, out: Rewriter) -> str:
    """Return for each coordinate the sum of the counts of its n-grams; 0 if it has no n-grams."""
    if not counts:
        reason = "no n-gram has a length from `min_gram_length` to `max_gram_length`"
        raise CannotConvert(reason, "operator.no-equivalent", remedy="replace the node by zeros")
    concatenated = out.emit("Concat", counts, axis=-1)

    def terms() -> Iterator[str]:
        """Yield the counts to add: each tensor has the count of at most one n-gram for each coordinate."""
        for term in range(max(map(len, positions.values()))):
            chosen = [positions.get(each, [])[term : term + 1] for each in range(width)]
            found = out.emit("Gather", [concatenated, out.int64([*map(sum, chosen)])], axis=-1)
            mask = Tensor("float", (width,), tuple(float(len(each)) for each in chosen))
            yield found if all(chosen) else out.emit("Mul", [found, out.tensor(mask)])

    return fold("Add", terms(), out)
