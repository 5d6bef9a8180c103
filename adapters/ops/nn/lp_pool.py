"""LpPool as an average of powers, for runtimes without it."""

from math import prod

from opshift.adapters import CannotConvert, Node, Rewriter, expression
from opshift.adapters.core.rewriter import rename_output
from opshift.adapters.emit.expression import Expression

OPSET = 13
"""Opset of the emitted arithmetic."""

AVERAGE_OPSET = 19
"""First opset in which AveragePool has dilations, like LpPool since 18."""


@expression("LpPool", 1, 2, 11, 18, 22)
def expand_lp_pool(node: Node, out: Rewriter) -> None:
    """Average the powers of the magnitudes in each window with its padding, and multiply by its size."""
    if node.attribute("ceil_mode", 0):
        reason = "runtimes do not agree on averages of windows that exceed the padding, as with ceil_mode 1"
        remedy = "add explicit padding, and set ceil_mode to 0"
        raise CannotConvert(reason, "operator.no-equivalent", remedy=remedy)
    element_type, exponent = out.element_type(node.inputs[0]), float(node.attribute("p", 2))
    attributes = {**node.without("ceil_mode", "p"), "count_include_pad": 1}
    arithmetic = out.for_opset(OPSET)
    data = Expression(node.inputs[0], element_type, arithmetic)
    powers = data * data if exponent == 2 else abs(data)
    if exponent not in (1, 2):
        powers = powers.apply("Pow", exponent)
    average = out.emit("AveragePool", [powers.name], opset=AVERAGE_OPSET, **attributes)
    total = Expression(average, element_type, arithmetic) * prod(node.attribute("kernel_shape"))
    if exponent == 2:
        total = total.apply("Sqrt")
    elif exponent != 1:
        total = total.apply("Pow", 1 / exponent)
    rename_output(total.name, node, out)
