"""Emit Cast nodes, and choose the types in which older arithmetic operators compute."""

import sys
from collections.abc import Sequence

from opshift.adapters import Node, Rewriter
from opshift.adapters.core.rewriter import rename_output
from opshift.model.element_types import FLOAT_MAX

CAST_OPSET = 13
"""Opset of the emitted Cast nodes: the first with bfloat16, so that older targets refuse that type."""

FLOAT_TYPES = ("float16", "bfloat16", "float", "double")

IEEE_FLOAT_TYPES = ("float16", "float", "double")
"""Types that operators for floating point support before they support bfloat16."""

LARGEST_FINITE = {
    "float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float": FLOAT_MAX, "double": sys.float_info.max,
}  # fmt: skip
"""Largest finite number of each floating-point type; its negative is the smallest."""

ARITHMETIC_TYPES = {"int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}
"""Types to compute in below opset 14, where Add, Sub, Mul and Div support only 32-bit and 64-bit integers."""


def cast(value: str, element_type: str, out: Rewriter, outputs: int | Sequence[str] = 1) -> str:
    """Emit a Cast to an element type for `CAST_OPSET`; `outputs` may hold the name of the result."""
    return out.cast(value, element_type, outputs, opset=CAST_OPSET)


def cast_between(value: str, source: str, target: str, out: Rewriter) -> str:
    """Emit a Cast unless both element types are equal."""
    return value if source == target else cast(value, target, out)


def cast_output(value: str, source: str, target: str, node: Node, out: Rewriter) -> None:
    """Emit the output of a node: a Cast, or only its name if both element types are equal."""
    if source == target:
        rename_output(value, node, out)
    else:
        cast(value, target, out, node.outputs)
