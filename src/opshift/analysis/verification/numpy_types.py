"""NumPy types of ONNX element types."""

from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from opshift.analysis.verification.result import CannotVerify

Array: TypeAlias = npt.NDArray[Any]

NUMPY_TYPES = {
    "float": "float32", "double": "float64", "float16": "float16", "bool": "bool", "string": "object",
    "int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64",
    "uint8": "uint8", "uint16": "uint16", "uint32": "uint32", "uint64": "uint64",
    "complex64": "complex64", "complex128": "complex128",
}  # fmt: skip
"""Names of NumPy types, by ONNX element type."""

ML_DTYPES_TYPES = {
    "bfloat16": "bfloat16", "float8e4m3fn": "float8_e4m3fn", "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2", "float8e5m2fnuz": "float8_e5m2fnuz", "float8e8m0": "float8_e8m0fnu",
    "float4e2m1": "float4_e2m1fn", "float6e2m3": "float6_e2m3fn", "float6e3m2": "float6_e3m2fn",
    "int4": "int4", "uint4": "uint4", "int2": "int2", "uint2": "uint2",
}  # fmt: skip
"""Names of types that ml_dtypes adds to NumPy, by ONNX element type."""

_ELEMENT_TYPES = {dtype: element_type for element_type, dtype in {**NUMPY_TYPES, **ML_DTYPES_TYPES}.items()}


def dtype_of(element_type: str) -> np.dtype[np.generic]:
    """Return the NumPy type of an ONNX element type; raise CannotVerify if ml_dtypes does not provide it."""
    if element_type in NUMPY_TYPES:
        return np.dtype(NUMPY_TYPES[element_type])
    try:
        scalar_type: type[np.generic] = getattr(import_module("ml_dtypes"), ML_DTYPES_TYPES[element_type])
    except (ImportError, AttributeError) as error:
        reason = f"arrays of {element_type} require a version of ml_dtypes that has this type"
        raise CannotVerify(reason, remedy="pip install --upgrade ml_dtypes") from error
    return np.dtype(scalar_type)


def array_element_type(array: Array) -> str:
    """Return the ONNX element type of an array, or NumPy's name of a type that ONNX does not have."""
    if array.dtype.kind in "OSU":
        return "string"
    return _ELEMENT_TYPES.get(array.dtype.name, array.dtype.name)
