"""Attention: masks that express causality, sliding windows and padding.

A mask is boolean, or is added to the scores. The logarithm turns a boolean mask into an added one: 0 for
a key that is kept, minus infinity for a key that is masked. Versions 24 and 25 introduced padding and
windows, which older versions express as a mask.
"""

import math
from typing import NamedTuple

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor, UnknownShape, adapter
from opshift.adapters.emit.shapes import (
    MAX_CONSTANT_ELEMENTS,
    Dimension,
    add_dimensions,
    dimension,
    dimension_tensor,
    index_range,
    reshape,
    shape_tensor,
)

UNBOUNDED = -1
"""Window size that means no limit."""


class Mask(NamedTuple):
    """Value name of a mask, and whether the mask is boolean or added to the scores."""

    name: str
    is_boolean: bool


@adapter("Attention", 25, 24)
def convert_windows_to_mask(node: Node, out: Rewriter) -> None:
    """Mask keys more than `left_window_size` before a query or more than `right_window_size` after it."""
    attributes = node.without("left_window_size", "right_window_size")
    left, right = (node.attribute(f"{side}_window_size", UNBOUNDED) for side in ("left", "right"))
    if left == right == UNBOUNDED:
        out.replace(node, attributes=attributes)
        return
    mask, distances = full_mask(node, out), relative_positions(node, out)
    if left != UNBOUNDED:
        mask = _restrict(mask, _is_not("Less", distances, -left, out), node, out)
    if right != UNBOUNDED:
        mask = _restrict(mask, _is_not("Greater", distances, right, out), node, out)
    out.replace(node, inputs=_with_mask(node, mask), attributes=attributes)


@adapter("Attention", 24, 23)
def convert_padding_to_mask(node: Node, out: Rewriter) -> None:
    """Mask the padding keys beyond `nonpad_kv_seqlen`; causality is aligned with the last unpadded key."""
    mask, attributes = full_mask(node, out), dict(node.attributes)
    lengths = node.input(6)
    if lengths:
        end = reshape(out.cast(lengths, "float"), (-1, 1, 1, 1), out)
        keys = float_positions(key_length(node, out), out)
        mask = _restrict(mask, out.emit("Less", [keys, end]), node, out)
        if node.attribute("is_causal", 0):
            mask = _apply_causality(mask, node, out)
        else:
            # Runtimes require a mask with a row for every query.
            queries = shape_tensor([1, 1, _sequence_length(node, 0, out), 1], out)
            mask = mask._replace(name=out.emit("Expand", [mask.name, queries]))
        # In version 23 queries follow the past keys and not the last unpadded key, so the attribute would
        # mask the wrong keys.
        attributes.pop("is_causal", None)
    out.replace(node, inputs=_with_mask(node, mask)[:6], attributes=attributes)


def full_mask(node: Node, out: Rewriter) -> Mask | None:
    """Return the mask of a node with one column for every key, or `None` without a mask.

    Since version 24 a mask may have fewer columns than there are keys; the remaining keys are masked.

    Raises:
        CannotConvert: the mask may have a single column, which either broadcasts or is padded.
    """
    mask = _mask_input(node, out)
    if mask is None:
        return None
    rank, shape, length = out.rank(node.inputs[3]), out.shape(node.inputs[3]), key_length(node, out)
    if shape and shape[-1] == length:
        return mask
    if not shape or shape[-1] == 1:
        reason = "attn_mask may have one column, which can apply to the first key only or to every key"
        remedy = "give attn_mask one column for every key"
        if shape and isinstance(length, int):
            raise CannotConvert(reason, "shape.unsupported", remedy=remedy)
        raise UnknownShape(reason, node.inputs[1], node.inputs[3], otherwise=remedy)
    columns = dimension(node.inputs[3], rank - 1, out)
    missing = _subtract(length, columns, out)
    pads = shape_tensor([*[0] * (2 * rank - 1), missing], out)
    masked = out.constant(-math.inf, out.element_type(node.inputs[0]))
    return Mask(out.emit("Pad", [_as_bias(mask, node, out), pads, masked], opset=13), is_boolean=False)


def _mask_input(node: Node, out: Rewriter) -> Mask | None:
    name = node.input(3)
    if not name:
        return None
    element_type, score_type = out.element_type(name), out.element_type(node.inputs[0])
    if element_type not in ("bool", score_type):
        return Mask(out.cast(name, score_type), is_boolean=False)
    return Mask(name, element_type == "bool")


def key_length(node: Node, out: Rewriter) -> Dimension:
    """Return the number of keys, past ones included."""
    new, past = _sequence_length(node, 1, out), node.input(4)
    return add_dimensions(dimension(past, 2, out), new, out) if past else new


def _sequence_length(node: Node, position: int, out: Rewriter) -> Dimension:
    """Return the number of queries or of new keys."""
    return dimension(node.inputs[position], out.rank(node.inputs[position]) - 2, out)


def _subtract(size: Dimension, subtrahend: Dimension, out: Rewriter) -> Dimension:
    if isinstance(size, int) and isinstance(subtrahend, int):
        return size - subtrahend
    return out.emit("Sub", [dimension_tensor(size, out), dimension_tensor(subtrahend, out)])


def _as_bias(mask: Mask, node: Node, out: Rewriter) -> str:
    """Return the mask in the form that is added to the scores."""
    if not mask.is_boolean:
        return mask.name
    return out.emit("Log", [out.cast(mask.name, out.element_type(node.inputs[0]))])


def relative_positions(node: Node, out: Rewriter) -> str:
    """Return the key position minus the query position, as float.

    The last two dimensions of the result are queries and keys. With `nonpad_kv_seqlen`, the last query has
    the position of the last unpadded key.
    """
    queries, lengths, past = _sequence_length(node, 0, out), node.input(6), node.input(4)
    offset = dimension(past, 2, out) if past and not lengths else 0
    keys = float_positions(key_length(node, out), out)
    distances = out.emit("Sub", [keys, _position_column(queries, offset, out)])
    if not lengths:
        return distances
    ends = reshape(out.cast(lengths, "float"), (-1, 1, 1, 1), out)
    first = out.emit("Sub", [ends, _as_float(queries, out)])
    return out.emit("Sub", [distances, first])


def float_positions(length: Dimension, out: Rewriter) -> str:
    """Return 0, 1, 2 and so on as float; a constant if the length is known and short."""
    if isinstance(length, int) and length <= MAX_CONSTANT_ELEMENTS:
        return out.constant(tuple(map(float, range(length))), "float")
    return out.cast(index_range(dimension_tensor(length, out), out), "float")


def _position_column(length: Dimension, offset: Dimension, out: Rewriter) -> str:
    """Return the positions from an offset onwards, one per row."""
    if isinstance(length, int) and isinstance(offset, int) and length <= MAX_CONSTANT_ELEMENTS:
        numbers = tuple(float(offset + index) for index in range(length))
        return out.tensor(Tensor("float", (length, 1), numbers))
    column = reshape(float_positions(length, out), (-1, 1), out)
    return out.emit("Add", [column, _as_float(offset, out)])


def _as_float(size: Dimension, out: Rewriter) -> str:
    if isinstance(size, int):
        return out.constant(float(size), "float")
    return out.cast(size, "float")


def _restrict(mask: Mask | None, keeps: str, node: Node, out: Rewriter) -> Mask:
    """Return the mask, restricted to the keys for which the boolean value `keeps` is true."""
    restriction = Mask(keeps, is_boolean=True)
    if mask is None:
        return restriction
    if mask.is_boolean:
        return Mask(out.emit("And", [mask.name, keeps]), is_boolean=True)
    return Mask(out.emit("Add", [mask.name, _as_bias(restriction, node, out)]), is_boolean=False)


def _is_not(comparison: str, distances: str, limit: int, out: Rewriter) -> str:
    return out.emit("Not", [out.emit(comparison, [distances, out.constant(float(limit), "float")])])


def _with_mask(node: Node, mask: Mask | None) -> list[str]:
    if mask is None:
        return list(node.inputs)
    return [*(node.input(position) for position in range(3)), mask.name, *node.inputs[4:]]


def attention_bias(node: Node, out: Rewriter) -> str:
    """Return the value that version 23 adds to the scores, or `""` if there is none.

    It combines the mask with minus infinity for keys after the position of a causal query.
    """
    mask = _apply_causality(_mask_input(node, out), node, out)
    return "" if mask is None else _as_bias(mask, node, out)


def _apply_causality(mask: Mask | None, node: Node, out: Rewriter) -> Mask | None:
    if not node.attribute("is_causal", 0):
        return mask
    return _restrict(mask, _is_not("Greater", relative_positions(node, out), 0, out), node, out)
