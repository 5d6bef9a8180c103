"""Attention: which keys a query may attend to, told by a mask, by causality, by windows, by padding.

A mask is boolean, or is added to the scores; the logarithm of a boolean one is 0 where it keeps a key and
minus infinity where it does not. Versions 24 and 25 brought padding and windows, which a mask can say, too.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from opshift.adapters.attention_positions import FLOAT, distance, key_length, positions
from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.sizes import Size, as_list, dimension, listed, reshaped
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME

UNBOUNDED = -1
"""The size of a window that ends nowhere."""


class Mask(NamedTuple):
    """The name of a mask, and whether it is boolean rather than added to the scores."""

    name: str
    is_boolean: bool


@adapter("Attention", 25, 24)
def windows_become_a_mask(node: Node, out: Rewriter) -> None:
    """A query sees `left_window_size` keys before its own position, and `right_window_size` after it."""
    attributes = node.without("left_window_size", "right_window_size")
    left, right = (node.attribute(f"{side}_window_size", UNBOUNDED) for side in ("left", "right"))
    if left == right == UNBOUNDED:
        out.become(node, attributes=attributes)
        return
    mask, gap = full_mask(node, out), distance(node, out)
    if left != UNBOUNDED:
        mask = _restricted(mask, _unless("Less", gap, -left, out), node, out)
    if right != UNBOUNDED:
        mask = _restricted(mask, _unless("Greater", gap, right, out), node, out)
    out.become(node, inputs=_with_mask(node, mask), attributes=attributes)


@adapter("Attention", 24, 23)
def padding_becomes_a_mask(node: Node, out: Rewriter) -> None:
    """Keys from `nonpad_kv_seqlen` on are padding, and causality ends with the last key before them."""
    mask, attributes = full_mask(node, out), dict(node.attributes)
    lengths = node.input(6)
    if lengths:
        last = reshaped(out.emit("Cast", [lengths], to=FLOAT), (-1, 1, 1, 1), out)
        keys = positions(key_length(node, out), out)
        mask = _restricted(mask, out.emit("Less", [keys, last]), node, out)
        if node.attribute("is_causal", 0):
            mask = _restricted(mask, _unless("Greater", distance(node, out), 0, out), node, out)
        attributes.pop("is_causal", None)
    out.become(node, inputs=_with_mask(node, mask)[:6], attributes=attributes)


def bias(node: Node, out: Rewriter) -> str:
    """What version 23 adds to the scores: its mask, and minus infinity for keys ahead of a causal query."""
    mask = _stated_mask(node, out)
    if node.attribute("is_causal", 0):
        mask = _restricted(mask, _unless("Greater", distance(node, out), 0, out), node, out)
    return "" if mask is None else _added(mask, node, out)


def full_mask(node: Node, out: Rewriter) -> Mask | None:
    """The mask of a node; from 24 on it may have fewer columns than there are keys, which are masked then."""
    mask = _stated_mask(node, out)
    if mask is None:
        return None
    rank, shape, length = out.rank(node.inputs[3]), out.shape(node.inputs[3]), key_length(node, out)
    if shape and shape[-1] == length:
        return mask
    if not shape or shape[-1] == 1:
        raise CannotConvert(
            "attn_mask has one column, which may be that of the first key or stand for all",
            remedy="give it a column for every key",
        )
    columns = dimension(node.inputs[3], rank - 1, out)
    missing = _difference(length, columns, out)
    pads = listed([*[0] * (2 * rank - 1), missing], out)
    nothing = out.constant(-math.inf, out.element_type(node.inputs[0]))
    return Mask(out.emit("Pad", [_added(mask, node, out), pads, nothing], opset=13), is_boolean=False)


def _stated_mask(node: Node, out: Rewriter) -> Mask | None:
    name = node.input(3)
    if not name:
        return None
    element_type, wanted = out.element_type(name), out.element_type(node.inputs[0])
    if element_type not in ("bool", wanted):
        return Mask(out.emit("Cast", [name], to=BY_NAME[wanted].number), is_boolean=False)
    return Mask(name, element_type == "bool")


def _restricted(mask: Mask | None, keeps: str, node: Node, out: Rewriter) -> Mask:
    """The mask, and only the keys that `keeps`, a boolean value, is true of."""
    restriction = Mask(keeps, is_boolean=True)
    if mask is None:
        return restriction
    if mask.is_boolean:
        return Mask(out.emit("And", [mask.name, keeps]), is_boolean=True)
    return Mask(out.emit("Add", [mask.name, _added(restriction, node, out)]), is_boolean=False)


def _added(mask: Mask, node: Node, out: Rewriter) -> str:
    """The mask as it is added to scores."""
    if not mask.is_boolean:
        return mask.name
    number = BY_NAME[out.element_type(node.inputs[0])].number
    return out.emit("Log", [out.emit("Cast", [mask.name], to=number)])


def _with_mask(node: Node, mask: Mask | None) -> list[str]:
    inputs = list(node.inputs)
    if mask is not None:
        inputs += [""] * (4 - len(inputs))
        inputs[3] = mask.name
    return inputs


def _unless(comparison: str, gap: str, limit: int, out: Rewriter) -> str:
    return out.emit("Not", [out.emit(comparison, [gap, out.constant(float(limit), "float")])])


def _difference(size: Size, other: Size, out: Rewriter) -> Size:
    if isinstance(size, int) and isinstance(other, int):
        return size - other
    return out.emit("Sub", [as_list(size, out), as_list(other, out)])
