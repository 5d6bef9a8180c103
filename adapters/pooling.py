"""LpPool and GlobalLpPool: `p` was a float until 2 made it an integer."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter


@adapter(("LpPool", "GlobalLpPool"), 1, 2)
def exponent_becomes_whole(node: Node, out: Rewriter) -> None:
    """Only whole exponents can be written from 2 on."""
    if node.op_type == "LpPool" and "kernel_shape" not in node.attributes:
        raise CannotConvert("kernel_shape is left out, which LpPool-2 requires", remedy="state kernel_shape")
    exponent = float(node.attribute("p", 2.0))
    if not exponent.is_integer():
        raise CannotConvert(f"p is {exponent}; from version 2 on it is a whole number")
    out.become(node, attributes={**node.without("p"), "p": int(exponent)})
