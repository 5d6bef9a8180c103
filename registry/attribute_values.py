"""Values of attributes in definitions."""

import math
from typing import Annotated

from opshift.model.element_types import round_to_float32
from opshift.registry.record import Checked

# Strict, because pydantic takes `true` for 1 otherwise.
Number = Annotated[int, Checked(strict=True)] | Annotated[float, Checked(strict=True)]

Scalar = Number | str

Value = Scalar | tuple[Scalar, ...]


def stored_value(value: Value, kind: str) -> Value:
    """Return a value as a model stores it in an attribute of a type: floating-point numbers are float32.

    Raises:
        ValueError: a number is out of range for float32.
    """
    if isinstance(value, tuple):
        return tuple(_stored_scalar(item, kind.removesuffix("S")) for item in value)
    return _stored_scalar(value, kind)


def _stored_scalar(value: Scalar, kind: str) -> Scalar:
    if kind == "FLOAT" and isinstance(value, int | float):
        rounded = round_to_float32(value)
        if math.isinf(rounded) and not math.isinf(value):
            raise ValueError(f"{value!r} is out of range for float32")
        return rounded
    return value
