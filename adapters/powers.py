"""Pow: the exponent may be of another type than the base, and the base a whole number, from 12 on."""

from __future__ import annotations

from opshift.adapters.legal_types import require_types
from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME

MOST_FACTORS = 16
"""Whole powers of 64-bit numbers up to this one are written as products."""


@adapter("Pow", 12, 7)
def base_and_exponent_are_one_float_type(node: Node, out: Rewriter) -> None:
    """In double, which holds whole numbers of 32 bits; products of 64-bit numbers are written out."""
    base, exponent = (out.element_type(name) for name in node.inputs)
    if base == exponent and base not in ("int32", "int64"):
        require_types(node, out)
        out.become(node)
        return
    times = _whole_exponent(node, out) if base == "int64" else None
    if times is not None:
        _multiply(node, times, out)
        return
    if base == "int64":
        out.concede(
            "approximate", "a power of a 64-bit integer is computed in double, which rounds beyond 2**53"
        )
    wide = [out.emit("Cast", [name], to=BY_NAME["double"].number) for name in node.inputs]
    power = out.fresh("pow")
    out.become(node, inputs=wide, outputs=[power])
    out.emit("Cast", [power], node.outputs, to=BY_NAME[base].number)


def _whole_exponent(node: Node, out: Rewriter) -> int | None:
    """The exponent, if it is one small whole number that leaves the shape of the base."""
    found = out.constant_value(node.inputs[1])
    if found is None or found.dims not in ((), (1,)) or not 1 <= found.scalar <= MOST_FACTORS:
        return None
    rank = out.known_rank(node.inputs[0])
    fits = found.dims == () or (rank is not None and rank > 0)
    return int(found.scalar) if fits and float(found.scalar).is_integer() else None


def _multiply(node: Node, times: int, out: Rewriter) -> None:
    product = node.inputs[0]
    for _ in range(times - 1):
        product = out.emit("Mul", [product, node.inputs[0]])
    out.emit("Identity", [product], node.outputs)
