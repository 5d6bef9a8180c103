"""Nodes that onnx.reference computes or accepts wrongly, used for nodes that onnxruntime does not run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from opshift.model.element_types import NAME_BY_NUMBER
from random_graphs.values import is_float, type_of

if TYPE_CHECKING:
    import onnx

OWN_ACTIVATIONS = {"GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}
"""The activations that onnx.reference always applies, by operator."""

ONE_HOT_VALUES = 2
"""Position of the input `values` of OneHot, which contains the off value and the on value."""

ROUNDED_REDUCTIONS = ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean")
"""Operators without a definition of how results of integers are rounded."""

EXTREMES = ("ArgMax", "ArgMin", "ReduceMax", "ReduceMin")
"""Operators without a definition of whether NaN is the largest or the smallest element."""

NARROW_INTEGERS = ("int4", "uint4", "int2", "uint2")
"""Types to which casts round floats, as ONNX's pages about these types define."""

POSITION = 2
"""Position of the input `position` of SequenceInsert."""


def has_reference_fault(node: onnx.NodeProto, values: Mapping[str, Any]) -> bool:
    """Return whether onnx.reference computes a node wrongly; `values` are its inputs.

    It ignores `activations` of GRU and LSTM and `input_forget` of LSTM, computes OneHot by a product that is
    NaN for infinities, and truncates floats in casts to integers of 4 and 2 bits.
    """
    if node.op_type in ("Cast", "CastLike"):
        data = np.asarray(values.get(node.input[0], 0))
        is_narrow = _result_type(node, values) in NARROW_INTEGERS
        return is_narrow and is_float(type_of(data)) and bool((data != np.trunc(data)).any())
    if node.op_type == "OneHot":
        choices = np.asarray(values.get(node.input[ONE_HOT_VALUES], 0.0))
        return choices.dtype.kind not in "OUS" and not np.isfinite(choices.astype(float)).all()
    if node.op_type == "LSTM" and any(each.name == "input_forget" and each.i for each in node.attribute):
        return True
    own = OWN_ACTIVATIONS.get(node.op_type)
    stated = next((each.strings for each in node.attribute if each.name == "activations"), ())
    return own is not None and any(
        each.decode().lower() != own[position % len(own)].lower() for position, each in enumerate(stated)
    )


def _result_type(node: onnx.NodeProto, values: Mapping[str, Any]) -> str:
    """Return the element type of the result of a Cast or CastLike."""
    if node.op_type == "CastLike":
        return type_of(np.asarray(values[node.input[1]]))
    return NAME_BY_NUMBER[next(each.i for each in node.attribute if each.name == "to")]


def is_invalid(node: onnx.NodeProto, values: Mapping[str, Any]) -> bool:
    """Return whether a node has no defined result, but runs; `values` are all values of the model.

    onnx.reference accepts positions outside of a sequence, and parts that do not add up to the axis. Runtimes
    differ in casts of numbers that the integer type cannot represent, in overflows and the rounding of
    reductions, in whether NaN is the largest or the smallest element, and in samples at infinity. For data
    without elements, onnxruntime ignores `beta` of Gemm and negative axes of reductions.
    """
    if node.op_type in EXTREMES and _has_nan(values[node.input[0]]):
        return True
    if node.op_type == "Gemm" or node.op_type.startswith("Reduce"):
        return _is_reduced_wrongly(node, values) or _is_undefined_reduction(node, values)
    if node.op_type == "GridSample":
        return not bool(np.isfinite(values[node.input[1]]).all())
    if node.op_type in ("Cast", "CastLike"):
        return _is_cast_out_of_range(values[node.input[0]], values[node.output[0]])
    if node.op_type == "SequenceInsert" and len(node.input) > POSITION:
        size = len(values[node.input[0]])
        return not -size <= int(values[node.input[POSITION]]) <= size
    if node.op_type == "SplitToSequence" and len(node.input) > 1:
        axis = next((each.i for each in node.attribute if each.name == "axis"), 0)
        parts = np.asarray(values[node.input[1]])
        return parts.ndim == 1 and int(parts.sum()) != np.shape(values[node.input[0]])[axis]
    return False


def _has_nan(value: Any) -> bool:
    """Return whether an element of an array is NaN."""
    data = np.asarray(value)
    return is_float(type_of(data)) and bool(np.isnan(data).any())


def _is_undefined_reduction(node: onnx.NodeProto, values: Mapping[str, Any]) -> bool:
    """Return whether a reduction of integers rounds its results, or may exceed the range of their type."""
    data = np.asarray(values[node.input[0]])
    if data.dtype.kind not in "iu" or not data.size:
        return False
    sizes = np.abs(data.astype(np.float64))
    bounds = {
        "ReduceL1": sizes.sum(),
        "ReduceProd": np.exp2(np.log2(np.maximum(sizes, 1)).sum()),
        "ReduceSum": sizes.sum(),
        "ReduceSumSquare": np.square(sizes).sum(),
    }
    return node.op_type in ROUNDED_REDUCTIONS or bounds.get(node.op_type, 0) > np.iinfo(data.dtype).max


def _is_reduced_wrongly(node: onnx.NodeProto, values: Mapping[str, Any]) -> bool:
    """Return whether onnxruntime computes a Gemm or a reduction of data without elements wrongly."""
    attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    if 0 not in np.shape(values[node.input[0]]):
        return False
    if node.op_type == "Gemm":
        return bool(attributes.get("beta", 1.0) != 1.0)
    axes = values.get(node.input[1]) if len(node.input) > 1 else attributes.get("axes")
    return axes is not None and bool((np.asarray(axes) < 0).any())


def _is_cast_out_of_range(data: Any, result: Any) -> bool:
    """Return whether the data have floats that the integer type of the result cannot represent."""
    given, kind = np.asarray(data), np.asarray(result).dtype
    if not is_float(type_of(given)) or kind.kind not in "iu":
        return False
    wide, limits = np.trunc(given.astype(np.float64)), np.iinfo(kind)
    # floats cannot represent the largest integer of 64 bits
    is_legal = (wide >= limits.min) & (wide < float(limits.max) + 1)
    return not is_legal.all()
