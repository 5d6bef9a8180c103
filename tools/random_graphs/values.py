"""Values of a random graph: tensors and lists of tensors, with their data in one run."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import ml_dtypes
import numpy as np
from onnx import TypeProto, helper

from opshift.model.element_types import BY_NAME, BY_NUMBER

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
Kind = Literal["any", "finite", "positive", "nonzero", "unit", "whole"]
FLOATS = ("float", "double", "float16", "bfloat16")
TYPES = (
    *FLOATS, "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64", "bool", "string",
    "float8e4m3fn", "float8e5m2", "int4", "uint4",
)  # fmt: skip
"""Element types of random data."""
WORDS = np.array(["", "a", "B", "ab", "a,b", "1", "2.5", "äö", "Abc d", "the"], object)
SPECIAL_FLOATS = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-7, 3e4])


class Value(NamedTuple):
    """A named value, its data in the test run, and whether the data are free of rounding errors."""

    name: str
    data: Any
    exact: bool = True

    @property
    def type(self) -> str:
        """The type, such as `float` or `seq(tensor(float))`."""
        return type_of(self.data)

    @property
    def shape(self) -> Shape:
        """The shape of a tensor."""
        return np.shape(self.data) if self.is_tensor else ()

    @property
    def rank(self) -> int:
        """The rank of a tensor."""
        return len(self.shape)

    @property
    def is_tensor(self) -> bool:
        """Whether the value is a tensor, not a list of tensors."""
        return isinstance(self.data, np.ndarray | np.generic)


def type_of(data: Any) -> str:
    """Return the type of an array or a list of arrays as definitions spell it."""
    if isinstance(data, list):
        return f"seq(tensor({type_of(data[0])}))" if data else "seq()"
    if data.dtype.kind in "OUS":
        return "string"
    return BY_NUMBER[helper.np_dtype_to_tensor_dtype(data.dtype)].name


def dtype_of(name: str) -> np.dtype[Any]:
    """Return the numpy type of an element type."""
    found: np.dtype[Any] = helper.tensor_dtype_to_np_dtype(BY_NAME[name].number)
    return found


def is_float(name: str) -> bool:
    """Return whether an element type is a floating-point type."""
    return name.startswith(("float", "bfloat", "double"))


def type_proto(data: Any, dims: Any = None) -> TypeProto:
    """Return the TypeProto of a value; `dims` are the declared dimensions of a tensor, if any."""
    if isinstance(data, list):
        return helper.make_sequence_type_proto(type_proto(data[0]))
    return helper.make_tensor_type_proto(BY_NAME[type_of(data)].number, dims)


def random_data(
    random: np.random.Generator, element_type: str, shape: Shape, kind: Kind, special: bool
) -> Array:
    """Return small numbers that most types represent exactly; with `special`, also special floats."""
    if element_type == "string":
        return np.array(random.choice(WORDS, shape), object).reshape(shape)
    if element_type == "bool":
        return np.asarray(random.integers(0, 2, shape), bool).reshape(shape)
    found = random.integers(-15, 16, shape) / (8 if is_float(element_type) else 3)
    if kind in ("positive", "unit") or element_type.startswith("uint"):
        found = np.abs(found)
    if kind == "whole" or not is_float(element_type):
        found = np.trunc(found)
    if kind in ("positive", "nonzero"):
        found = np.where(found == 0, 1, found)
    if kind == "unit":
        found = found / 4
    if special and kind == "any" and is_float(element_type):
        found = np.where(random.random(shape) < 0.3, random.choice(SPECIAL_FLOATS, shape), found)
    return np.asarray(found).astype(dtype_of(element_type)).reshape(shape)


def as_tensor(data: Any, element_type: str) -> Array:
    """Return a parameter's value as an array of its type."""
    return np.asarray(data, object if element_type == "string" else dtype_of(element_type))


def is_finite(data: Any) -> bool:
    """Return whether data contain neither infinities nor NaN, nor numbers whose squares exceed their type."""
    if isinstance(data, list):
        return all(map(is_finite, data))
    if not is_float(type_of(data)):
        return True
    with np.errstate(all="ignore"):
        return bool(np.isfinite((data * data).astype(np.float64)).all())


def is_custom(data: Any) -> bool:
    """Return whether the type is not a native numpy type; onnxruntime refuses such arrays."""
    return any(
        each.dtype.kind == "V" or each.dtype.type.__module__.startswith(ml_dtypes.__name__)
        for each in (data if isinstance(data, list) else [data])
    )
