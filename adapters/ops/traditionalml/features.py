"""Adapters of Binarizer and ArrayFeatureExtractor, for runtimes without these operators, and of LabelEncoder.

In version 2 of LabelEncoder, keys and values replace the list of classes; version 4 adds tensor attributes.
"""

import math
from collections.abc import Sequence
from typing import Any

from opshift.adapters import CannotConvert, Node, Rewriter, adapter
from opshift.adapters.core.rewriter import Attributes
from opshift.adapters.emit.expression import cast
from opshift.adapters.emit.shapes import fits_float32, reshape
from opshift.model.element_types import INTEGER_BITS
from opshift.model.tensors import require_tensor

DOMAIN = "ai.onnx.ml"

OPSET = 13
"""Opset of the emitted nodes."""


@adapter("Binarizer", 1, 0, domain=DOMAIN)
def expand_binarizer(node: Node, out: Rewriter) -> None:
    """Compare with the threshold, which is rounded down for integers, and cast the result."""
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


LIST_SUFFIXES = {
    "string": "strings", "int64": "int64s", "int32": "int64s", "int16": "int64s",
    "float": "floats", "double": "floats",
}  # fmt: skip
"""Suffix of the list attribute, such as `keys_strings`, for keys or values of each element type."""

SUFFIX_TYPES = {"strings": "string", "int64s": "int64", "floats": "float"}
"""Element type of the list attributes with each suffix."""

DEFAULTS = ("default_float", "default_int64", "default_string")
"""Attributes of version 2 that set the default; version 1 does not have the first, `default_float`."""


@adapter("LabelEncoder", 1, 2, domain="ai.onnx.ml")
def convert_classes_to_pairs(node: Node, out: Rewriter) -> None:
    """Write the classes and their indices as keys and values.

    The input type of version 1, and the names of the two lists of version 2, determine whether strings are
    mapped to indices or indices to strings. The attributes `default_*` are kept.
    """
    classes = node.attribute("classes_strings", ())
    if not classes:
        reason = "classes_strings is missing"
        raise CannotConvert(reason, "node.invalid", remedy="list the classes in classes_strings")
    kept = node.without("classes_strings")
    if out.element_type(node.inputs[0]) == "string":
        # A repeated class maps to the last index. Write keys once: runtimes disagree about repeated keys.
        indices = {name: index for index, name in enumerate(classes)}
        lists = {"keys_strings": [*indices], "values_int64s": [*indices.values()]}
    else:
        lists = {"keys_int64s": [*range(len(classes))], "values_strings": [*classes]}
    out.replace(node, attributes={**kept, **lists})


@adapter("LabelEncoder", 2, 4, domain="ai.onnx.ml")
def refuse_nan_keys(node: Node, out: Rewriter) -> None:
    """Refuse NaN keys: version 4 matches every NaN, version 2 equal bits or, in onnxruntime, no NaN."""
    if _has_nan(node.attribute("keys_floats", ())):
        reason = "the keys contain NaN; version 4 matches such keys differently"
        remedy = "remove the NaN keys and their values, or keep version 2"
        raise CannotConvert(reason, "value.unsupported", remedy=remedy)
    out.replace(node)


@adapter("LabelEncoder", 4, 2, domain="ai.onnx.ml")
def move_tensors_to_lists(node: Node, out: Rewriter) -> None:
    """Move tensors to lists of string, int64 or float; cast values of other types."""
    keys_type, keys = _read_side(node, "keys")
    values_type, values = _read_side(node, "values")
    if keys_type == "double" or _has_nan(keys):
        reason = "the keys are double or contain NaN; version 2 matches such keys differently"
        raise CannotConvert(reason, "value.unsupported")
    if values_type == "double" and any(math.isnan(value) or not fits_float32(value) for value in values):
        reason = "the values are double, and float does not represent them exactly"
        raise CannotConvert(reason, "value.inexact")
    # In version 4, the last of repeated keys applies; in version 2, runtimes disagree. Write each key once.
    pairs = dict(zip(keys, values, strict=True))
    lists = {
        f"keys_{LIST_SUFFIXES[keys_type]}": [*pairs],
        f"values_{LIST_SUFFIXES[values_type]}": [*pairs.values()],
    }
    kept = {name: node.attributes[name] for name in DEFAULTS if name in node.attributes}
    data, result = node.inputs[0], node.outputs[0]
    if keys_type not in SUFFIX_TYPES.values():
        data = cast(data, "int64", out)
    if values_type not in SUFFIX_TYPES.values():
        result = out.fresh("values")
    attributes = {**kept, **_default_attribute(node, values_type), **lists}
    out.replace(node, inputs=[data], outputs=[result], attributes=attributes)
    if result != node.outputs[0]:
        cast(result, values_type, out, node.outputs)


@adapter("LabelEncoder", 2, 1, domain="ai.onnx.ml")
def convert_pairs_to_classes(node: Node, out: Rewriter) -> None:
    """Convert pairs of strings and indices to a list of classes.

    The indices must be 0, 1, 2 and so on, in any order.
    """
    strings, indices = node.attribute("keys_strings"), node.attribute("values_int64s")
    if strings is None:
        strings, indices = node.attribute("values_strings"), node.attribute("keys_int64s")
    elif len(set(strings)) < len(strings):
        strings = None
    if strings is None or indices is None or sorted(indices) != list(range(len(strings))):
        reason = "version 1 maps only distinct strings to or from the indices 0, 1, 2 and so on"
        raise CannotConvert(reason, "value.unsupported")
    classes = [string for _, string in sorted(zip(indices, strings, strict=True))]
    kept = {name: node.attributes[name] for name in DEFAULTS[1:] if name in node.attributes}
    out.replace(node, attributes={**kept, "classes_strings": classes})


def _has_nan(keys: Sequence[object]) -> bool:
    return any(isinstance(key, float) and math.isnan(key) for key in keys)


def _read_side(node: Node, side: str) -> tuple[str, Sequence[Any]]:
    """Return the element type and the elements of `side`, which is `keys` or `values`."""
    attribute = node.attribute(f"{side}_tensor")
    if attribute is not None:
        tensor = require_tensor(attribute)
        return tensor.element_type, tensor.values
    for suffix, element_type in SUFFIX_TYPES.items():
        values = node.attribute(f"{side}_{suffix}")
        if values is not None:
            return element_type, values
    raise CannotConvert(f"the node has no {side}", "node.invalid")


def _default_attribute(node: Node, element_type: str) -> Attributes:
    """Return `default_tensor` as an attribute such as `default_float`; empty without `default_tensor`."""
    attribute = node.attribute("default_tensor")
    if attribute is None:
        return {}
    value = require_tensor(attribute).values[0]
    if element_type == "double" and not fits_float32(value):
        raise CannotConvert("the default is double, and float does not represent it exactly", "value.inexact")
    return {f"default_{LIST_SUFFIXES[element_type].removesuffix('s')}": value}
