"""Pow: version 12 added integer bases and independent types of base and exponent."""

from __future__ import annotations

from opshift.adapters.legal_types import require_types
from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME

MOST_FACTORS = 16
"""Largest power of a 64-bit integer that is expanded into Mul nodes: it bounds their number."""


@adapter("Pow", 12, 7)
def base_and_exponent_are_one_float_type(node: Node, out: Rewriter) -> None:
    """Compute mixed and integer types in double, and small powers of int64 as products.

    Double represents every 32-bit integer exactly. A Pow of a single float type is kept unchanged.
    """
    base_type, exponent_type = (out.element_type(name) for name in node.inputs)
    if base_type == exponent_type and base_type not in ("int32", "int64"):
        require_types(node, out)
        out.become(node)
        return
    factors = _small_integer_exponent(node, out) if base_type == "int64" else None
    if factors is not None:
        _emit_product(node, factors, out)
        return
    if base_type == "int64":
        out.concede(
            "approximate", "a power of a 64-bit integer is computed in double, which rounds above 2**53"
        )
    widened = [out.emit("Cast", [name], to=BY_NAME["double"].number) for name in node.inputs]
    result = out.fresh("pow")
    out.become(node, inputs=widened, outputs=[result])
    out.emit("Cast", [result], node.outputs, to=BY_NAME[base_type].number)


def _small_integer_exponent(node: Node, out: Rewriter) -> int | None:
    """Return a constant integer exponent up to the limit that keeps the shape of the base, or `None`."""
    exponent = out.constant_value(node.inputs[1])
    if exponent is None or exponent.dims not in ((), (1,)) or not 1 <= exponent.scalar <= MOST_FACTORS:
        return None
    rank = out.known_rank(node.inputs[0])
    # A list of one element broadcasts with a scalar base to rank 1.
    keeps_shape = exponent.dims == () or (rank is not None and rank > 0)
    return int(exponent.scalar) if keeps_shape and float(exponent.scalar).is_integer() else None


def _emit_product(node: Node, factors: int, out: Rewriter) -> None:
    product = node.inputs[0]
    for _ in range(factors - 1):
        product = out.emit("Mul", [product, node.inputs[0]])
    out.emit("Identity", [product], node.outputs)
