"""Clip, upgrade: `min` and `max` became inputs of the type of the data in version 11."""

from __future__ import annotations

from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

FLOAT_MAX = 3.4028234663852886e38
"""Largest finite float32; it and its negative are the default bounds of Clip in version 6."""


@adapter("Clip", 6, 11)
def bounds_become_inputs(node: Node, out: Rewriter) -> None:
    """Move the bounds to inputs; leave out a bound only if it has no effect on float.

    The default bounds of version 6 are the limits of float, those of version 11 the limits of the type of the
    data.
    """
    data = node.inputs[0]
    element_type = out.element_type(data)
    inputs = [data]
    for name, limit in (("min", -FLOAT_MAX), ("max", FLOAT_MAX)):
        bound = node.attribute(name, limit)
        is_limit = bound == limit and element_type == "float"
        inputs.append("" if is_limit else out.constant(bound, element_type))
    while not inputs[-1]:
        inputs.pop()
    out.become(node, inputs=inputs, attributes=node.without("min", "max"))
