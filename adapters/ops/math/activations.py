"""Celu, Swish, SwiGLU, Gelu, ThresholdedRelu and Shrink as formulas of older operators."""

import math

from opshift.adapters import CannotConvert, Node, Rewriter, adapter
from opshift.adapters.emit.expression import Expression
from opshift.model.element_types import round_to_float32

SHRINK_FLOAT_TYPES = ("float16", "float", "double")
"""Element types in which Shrink is computed without a cast."""


@adapter("Celu", 12, 11)
def expand_celu(node: Node, out: Rewriter) -> None:
    """Rewrite as `alpha * Elu(x / alpha)`; with a negative `alpha` as Relu and Exp.

    The definition is `max(0, x) + min(0, alpha * (exp(x / alpha) - 1))`.
    """
    alpha = node.attribute("alpha", 1.0)
    if alpha < 0:
        x = Expression(node.inputs[0], out.element_type(node.inputs[0]), out)
        # Relu, because Max and Min broadcast a zero only since opset 8.
        below = (((x / alpha).apply("Exp") - 1.0) * -alpha).apply("Relu")
        out.emit("Sub", [x.apply("Relu").name, below.name], node.outputs)
        return
    if not alpha > 0:
        reason = f"alpha is {alpha}, and the result of Celu is undefined"
        raise CannotConvert(reason, "result.undefined", remedy="use an alpha other than 0")
    if alpha == 1:
        out.replace(node, op_type="Elu", attributes={})
        return
    scale = out.constant(alpha, out.element_type(node.inputs[0]))
    elu = out.emit("Elu", [out.emit("Div", [node.inputs[0], scale])])
    out.emit("Mul", [elu, scale], node.outputs)


@adapter("Swish", 24, 23)
@adapter("SwiGLU", 28, 27)
def expand_swish(node: Node, out: Rewriter) -> None:
    """Rewrite as `x * sigmoid(alpha * x)`, times the second input of SwiGLU."""
    data, alpha, gate = node.inputs[0], node.attribute("alpha", 1.0), node.input(1)
    scaled = data if alpha == 1 else out.emit("Mul", [data, out.constant(alpha, out.element_type(data))])
    swish = out.emit("Mul", [data, out.emit("Sigmoid", [scaled])], 1 if gate else node.outputs)
    if gate:
        out.emit("Mul", [swish, gate], node.outputs)


@adapter("Gelu", 20, 19)
def expand_gelu(node: Node, out: Rewriter) -> None:
    """Rewrite as `0.5 * x * (1 + erf(x / sqrt(2)))`, or with the tanh approximation if it is requested.

    The approximation replaces the error function by `tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))`. Both are the
    formulas of the function body, operator by operator, because runtimes fuse these forms only.
    """
    x = Expression(node.inputs[0], out.element_type(node.inputs[0]), out)
    if node.attribute("approximate", b"none") == b"tanh":
        # The constants of the function body are float32, whatever the type of the data is.
        factor, ratio = round_to_float32(0.044715), round_to_float32(2 / math.pi)
        term = ((x + x.apply("Pow", 3.0) * factor) * math.sqrt(ratio)).apply("Tanh")
    else:
        term = (x / math.sqrt(2)).apply("Erf")
    gate = term + 1.0
    out.emit("Mul", [(x * 0.5).name, gate.name], node.outputs)


@adapter("ThresholdedRelu", 10, 1)
def expand_thresholded_relu(node: Node, out: Rewriter) -> None:
    """Rewrite as Where: `x` where it exceeds `alpha`, else 0.

    Version 1 is experimental, and runtimes do not implement it.
    """
    data, element_type = node.inputs[0], out.element_type(node.inputs[0])
    alpha = out.constant(node.attribute("alpha", 1.0), element_type)
    exceeds = out.emit("Greater", [data, alpha], opset=9)
    out.emit("Where", [exceeds, data, out.constant(0.0, element_type)], node.outputs, opset=9)


@adapter("Shrink", 9, 8)
def expand_shrink(node: Node, out: Rewriter) -> None:
    """Rewrite as two Where: `x + bias` below `-lambd`, `x - bias` above `lambd`, else 0.

    Integers are computed in double.
    """
    data, element_type, threshold = (
        node.inputs[0],
        out.element_type(node.inputs[0]),
        node.attribute("lambd", 0.5),
    )
    is_float = element_type in SHRINK_FLOAT_TYPES
    compute_type = element_type if is_float else "double"
    if not is_float:
        data = out.cast(data, compute_type)
    bias = out.constant(node.attribute("bias", 0.0), compute_type)
    is_below = out.emit("Less", [data, out.constant(-threshold, compute_type)], opset=9)
    is_above = out.emit("Greater", [data, out.constant(threshold, compute_type)], opset=9)
    lowered = out.emit("Sub", [data, bias])
    upper = out.emit("Where", [is_above, lowered, out.constant(0.0, compute_type)], opset=9)
    raised = out.emit("Add", [data, bias])
    shrunk = out.emit("Where", [is_below, raised, upper], node.outputs if is_float else 1, opset=9)
    if not is_float:
        out.cast(shrunk, element_type, node.outputs)
