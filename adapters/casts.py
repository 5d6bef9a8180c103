"""A Cast by the name of the type, as many adapters emit it, and which types arithmetic does without."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.adapters.rewriter import Rewriter
from opshift.registry.element_types import BY_NAME

FORM = 13
"""The opset that a Cast here is written for: the first with bfloat16, so that older ones refuse it."""
FLOATS = ("float16", "bfloat16", "float", "double")
WIDER = {"int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}
"""What to compute in where Add, Sub, Mul and Div lack a type, as before 14."""


def cast(value: str, element_type: str, out: Rewriter, outputs: int | Sequence[str] = 1) -> str:
    """The value in another element type."""
    return out.emit("Cast", [value], outputs, opset=FORM, domain="", to=BY_NAME[element_type].number)
