"""ONNX's element types as numpy spells them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from opshift.converter.verification.result import CannotVerify

Array = np.ndarray[Any, np.dtype[Any]]
PLAIN = {
    "float": "float32", "double": "float64", "float16": "float16", "bool": "bool", "string": "object",
    "int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64",
    "uint8": "uint8", "uint16": "uint16", "uint32": "uint32", "uint64": "uint64",
    "complex64": "complex64", "complex128": "complex128",
}  # fmt: skip
"""The types that numpy has."""
EXTENDED = {
    "bfloat16": "bfloat16", "float8e4m3fn": "float8_e4m3fn", "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2", "float8e5m2fnuz": "float8_e5m2fnuz", "float8e8m0": "float8_e8m0fnu",
    "float4e2m1": "float4_e2m1fn", "float6e2m3": "float6_e2m3fn", "float6e3m2": "float6_e3m2fn",
    "int4": "int4", "uint4": "uint4", "int2": "int2", "uint2": "uint2",
}  # fmt: skip
"""The types that ml_dtypes adds to it."""
_NAMES = {spelled: name for name, spelled in {**PLAIN, **EXTENDED}.items()}


def dtype_of(element_type: str) -> np.dtype[Any]:
    """The numpy type of an element type of ONNX.

    Raises:
        CannotVerify: ml_dtypes, which has it, is not installed or too old.
    """
    if element_type in PLAIN:
        return np.dtype(PLAIN[element_type])
    try:
        found: np.dtype[Any] = np.dtype(getattr(import_module("ml_dtypes"), EXTENDED[element_type]))
    except (ImportError, AttributeError) as error:
        reason = f"there are no arrays of {element_type} without a newer ml_dtypes"
        raise CannotVerify(reason, remedy="pip install --upgrade ml_dtypes") from error
    return found


def element_type_of(array: Array) -> str:
    """The element type of an array; numpy's name for what ONNX does not have."""
    if array.dtype.kind in "OSU":
        return "string"
    return _NAMES.get(array.dtype.name, array.dtype.name)
