"""Upgrades of Attention: version 24 pads narrow masks, and version 25 restricts head counts and caches."""

from opshift.adapters import CannotConvert, Node, Rewriter, adapter
from opshift.adapters.emit.shapes import Dimension, add_dimensions, dimension, dimension_tensor
from opshift.adapters.ops.nn.attention import split_input_heads

HEAD_COUNTS = ("q_num_heads", "kv_num_heads")
"""Attributes of nodes with 3-D inputs, which pack all heads in the last dimension."""


@adapter("Attention", 23, 24)
def expand_single_column(node: Node, out: Rewriter) -> None:
    """Expand a mask that may have a single column to all keys: version 24 masks keys without a column."""
    if not node.input(3) or not _may_lack_columns(node, out):
        out.replace(node)
        return
    mask = out.emit("Expand", [node.inputs[3], dimension_tensor(_key_length(node, out), out)])
    out.replace(node, inputs=(*node.inputs[:3], mask, *node.inputs[4:]))


def _may_lack_columns(node: Node, out: Rewriter) -> bool:
    """Return whether the mask may have a single column for several keys, or may be a scalar."""
    # Query all values at once: for nonconsecutive values, the rewrite cache records more facts.
    shapes = out.comparable_shapes((*node.inputs, *node.outputs[:2]))
    key, mask = shapes[1], shapes[3]
    if not mask:
        return True
    columns = mask[-1]
    if columns is not None and columns >= 0 and columns != 1:
        return False
    length = key[-2] if key and len(key) > 1 else None
    if node.input(4):
        # A size of `present_key` is the sum of two lengths, which may be symbols.
        present = shapes[len(node.inputs) + 1] if node.output(1) else None
        length = present[2] if present and len(present) == 4 else None
    return length is None or length not in (1, columns)


def _key_length(node: Node, out: Rewriter) -> Dimension:
    """Return the number of keys, including past keys; the rank of the keys is 3 or 4, or unknown."""
    new, past = dimension(node.inputs[1], -2, out), node.input(4)
    return add_dimensions(dimension(past, 2, out), new, out) if past else new


@adapter("Attention", 24, 25)
def meet_rules_of_heads_and_caches(node: Node, out: Rewriter) -> None:
    """Drop head counts of 4-D inputs, and name both or no output caches.

    With `nonpad_kv_seqlen`, version 25 allows no output caches: emit the split keys and values separately.
    """
    _require_valid_past(node)
    attributes, outputs = None, None
    if not node.attributes.keys().isdisjoint(HEAD_COUNTS) and out.known_rank(node.inputs[0]) == 4:
        attributes = node.without(*HEAD_COUNTS)
    names = [node.output(position) for position in range(len(node.outputs))]
    presents = names[1:3]
    if node.input(6) and any(presents):
        for position, name in enumerate(presents, 1):
            if out.is_used(name):
                out.emit("Identity", [split_input_heads(node, position, out)], [name])
        outputs = [names[0], "", "", *names[3:]] if names[3:] else names[:1]
    elif any(presents) and not all((node.output(1), node.output(2))):
        both = [node.output(1) or out.fresh("present_key"), node.output(2) or out.fresh("present_value")]
        outputs = [names[0], *both, *names[3:]]
    out.replace(node, outputs=outputs, attributes=attributes)


def _require_valid_past(node: Node) -> None:
    has_key, has_value = bool(node.input(4)), bool(node.input(5))
    if has_key != has_value:
        absent = "past_value" if has_key else "past_key"
        remedy = f"pass {absent}, too"
        raise CannotConvert(
            f"one of past_key and past_value is absent: {absent}", "node.invalid", remedy=remedy
        )
    if has_key and node.input(6):
        reason = "nonpad_kv_seqlen is combined with past_key and past_value"
        remedy = "concatenate the past with K and V, or remove nonpad_kv_seqlen"
        raise CannotConvert(reason, "node.invalid", remedy=remedy)
