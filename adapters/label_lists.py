"""LabelEncoder, back: lists for tensors at 2, one list of classes at 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from struct import pack, unpack
from typing import Any

from opshift.adapters.casts import cast
from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.adapters.tensor_messages import tensor_of

LISTS = {
    "string": "strings", "int64": "int64s", "int32": "int64s", "int16": "int64s",
    "float": "floats", "double": "floats",
}  # fmt: skip
"""The list that holds the keys or values of an element type."""
TYPES = {"strings": "string", "int64s": "int64", "floats": "float"}


@adapter("LabelEncoder", 4, 2, domain="ai.onnx.ml")
def tensors_become_lists(node: Node, out: Rewriter) -> None:
    """Lists hold three types; of other integers, and of double values, Casts make them."""
    keys_type, keys = _column(node, "keys")
    values_type, values = _column(node, "values")
    if keys_type == "double" or any(isinstance(key, float) and math.isnan(key) for key in keys):
        raise CannotConvert("its keys are double, or one is NaN, which lists do not match in the same way")
    if values_type == "double" and any(_as_float(value) != value for value in values):
        raise CannotConvert("its values are double, and single precision does not hold them")
    # The last of repeated keys wins from 4 on; before, runtimes differ.
    pairs = dict(zip(keys, values, strict=True))
    lists = {f"keys_{LISTS[keys_type]}": [*pairs], f"values_{LISTS[values_type]}": [*pairs.values()]}
    kept = {name: node.attributes[name] for name in _defaults(node) if name in node.attributes}
    data, result = node.inputs[0], node.outputs[0]
    if keys_type not in TYPES.values():
        data = cast(data, "int64", out)
    if values_type not in TYPES.values():
        result = out.fresh("values")
    out.become(
        node, inputs=[data], outputs=[result], attributes={**kept, **_default(node, values_type), **lists}
    )
    if result != node.outputs[0]:
        cast(result, values_type, out, node.outputs)


@adapter("LabelEncoder", 2, 1, domain="ai.onnx.ml")
def pairs_become_places(node: Node, out: Rewriter) -> None:
    """One side has to be text, and the other its places: 0, 1, 2 and so on."""
    texts, places = node.attribute("keys_strings"), node.attribute("values_int64s")
    if texts is None:
        texts, places = node.attribute("values_strings"), node.attribute("keys_int64s")
    elif len(set(texts)) < len(texts):
        texts = None
    if texts is None or places is None or sorted(places) != list(range(len(texts))):
        raise CannotConvert(
            "it does not pair different texts with the numbers 0, 1, 2 and so on, all that version 1 maps"
        )
    classes = [text for _, text in sorted(zip(places, texts, strict=True))]
    kept = {name: node.attributes[name] for name in _defaults(node) if name in node.attributes}
    kept.pop("default_float", None)
    out.become(node, attributes={**kept, "classes_strings": classes})


def _defaults(node: Node) -> Sequence[str]:
    return [name for name in node.attributes if name in ("default_float", "default_int64", "default_string")]


def _column(node: Node, side: str) -> tuple[str, Sequence[Any]]:
    """The element type of the keys or values, and what they are."""
    stated = node.attribute(f"{side}_tensor")
    if stated is not None:
        tensor = tensor_of(stated)
        return tensor.element_type, tensor.values
    for kind, element_type in TYPES.items():
        listed = node.attribute(f"{side}_{kind}")
        if listed is not None:
            return element_type, listed
    raise CannotConvert(f"it states no {side}")


def _default(node: Node, element_type: str) -> dict[str, Any]:
    """What a default tensor says, as the attribute of its type."""
    stated = node.attribute("default_tensor")
    if stated is None:
        return {}
    value = tensor_of(stated).values[0]
    if element_type == "double" and _as_float(value) != value and not math.isnan(value):
        raise CannotConvert("its default is double, and single precision does not hold it")
    return {f"default_{LISTS[element_type].removesuffix('s')}": value}


def _as_float(value: float) -> float:
    try:
        return float(unpack("<f", pack("<f", value))[0])
    except OverflowError:
        return math.nan
