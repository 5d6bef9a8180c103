"""Activation functions: rewrite Celu, Swish, SwiGLU, Gelu, ThresholdedRelu and Shrink with older operators.

Since version 13, Softmax, LogSoftmax and Hardmax normalize the single dimension `axis`. Older versions
flatten the input to a matrix at `axis`, and normalize each row.
"""

import math

from opshift.adapters import CannotConvert, Node, Rewriter, adapter, function_body
from opshift.adapters.emit.expression import Expression
from opshift.adapters.emit.shapes import ALLOWZERO_OPSET
from opshift.model.element_types import round_to_float32

SHRINK_FLOAT_TYPES = ("float16", "float", "double")
"""Element types in which Shrink is computed without a cast."""


@adapter("Celu", 12, 11)
def expand_celu(node: Node, out: Rewriter) -> None:
    """Rewrite as `alpha * Elu(x / alpha)`; if `alpha` is negative, rewrite with Relu and Exp.

    The definition is `max(0, x) + min(0, alpha * (exp(x / alpha) - 1))`.
    """
    alpha = node.attribute("alpha", 1.0)
    if alpha < 0:
        x = Expression(node.inputs[0], out.element_type(node.inputs[0]), out)
        # Relu is emitted, because Max and Min broadcast a zero only since opset 8.
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
    """Rewrite as `x * sigmoid(alpha * x)`; for SwiGLU, multiply by the second input."""
    data, alpha, gate = node.inputs[0], node.attribute("alpha", 1.0), node.input(1)
    scaled = data if alpha == 1 else out.emit("Mul", [data, out.constant(alpha, out.element_type(data))])
    swish = out.emit("Mul", [data, out.emit("Sigmoid", [scaled])], 1 if gate else node.outputs)
    if gate:
        out.emit("Mul", [swish, gate], node.outputs)


@adapter("Gelu", 20, 19)
def expand_gelu(node: Node, out: Rewriter) -> None:
    """Rewrite as `0.5 * x * (1 + erf(x / sqrt(2)))`, or as its approximation if `approximate` is `tanh`.

    The approximation replaces `erf` by `tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))`. Both formulas use the
    operators of ONNX's function body in the same order, because runtimes fuse no other order.
    """
    x = Expression(node.inputs[0], out.element_type(node.inputs[0]), out)
    if node.attribute("approximate", b"none") == b"tanh":
        # The constants of the function body are float32, whatever type the data has.
        factor, ratio = round_to_float32(0.044715), round_to_float32(2 / math.pi)
        term = ((x + x.apply("Pow", 3.0) * factor) * math.sqrt(ratio)).apply("Tanh")
    else:
        term = (x / math.sqrt(2)).apply("Erf")
    gate = term + 1.0
    out.emit("Mul", [(x * 0.5).name, gate.name], node.outputs)


@adapter("ThresholdedRelu", 10, 1)
def expand_thresholded_relu(node: Node, out: Rewriter) -> None:
    """Rewrite as Where: `x` where `x > alpha`, else 0.

    Version 1 is experimental, and runtimes do not implement this version.
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


@adapter(("Softmax", "LogSoftmax", "Hardmax"), 11, 13)
def flatten_at_axis(node: Node, out: Rewriter) -> None:
    """Flatten the input to a matrix at `axis`, normalize each row, and restore the shape."""
    data = node.inputs[0]
    axis = node.attribute("axis", 1)
    rank = out.known_rank(data)
    if axis == -1 or (rank is not None and axis == rank - 1):
        out.replace(node, attributes={**node.attributes, "axis": -1})
        return
    # Before opset 14, Reshape cannot restore a dimension of size 0. An empty input needs no normalization.
    if out.default_opset < ALLOWZERO_OPSET and 0 in (out.shape(data) or ()):
        out.replace(node, op_type="Identity", inputs=[data], attributes={})
        return
    shape = out.emit("Shape", [data])
    flat = out.emit("Flatten", [data], axis=axis)
    normalized = out.fresh(node.op_type.lower())
    out.replace(node, inputs=[flat], outputs=[normalized], attributes={**node.attributes, "axis": -1})
    if out.default_opset < ALLOWZERO_OPSET and _copies_empty_dimensions(out.shape(data), axis):
        out.emit("Reshape", [normalized, shape], node.outputs)
    else:
        out.emit("Reshape", [normalized, shape], node.outputs, opset=ALLOWZERO_OPSET, allowzero=1)


def _copies_empty_dimensions(shape: tuple[int | None, ...] | None, axis: int) -> bool:
    """Return whether a Reshape without `allowzero` restores every dimension that may be 0.

    For a 0 in the shape, Reshape copies the input dimension at the same position. With axis 1, the input has
    the dimensions d0 and d1 * d2 * ..., which are 0 if d0 or d1 is 0.
    """
    if shape is None:
        return False
    return all(dim or (axis == 1 and position < 2) for position, dim in enumerate(shape))


MAX_SHORT_AXIS = 32
"""Maximum size of an axis along which the definition of Softmax takes less time than Softmax and Transpose.

Softmax takes two to five times as long for 4 to 21 elements, because runtimes normalize slice by slice.
"""


@adapter(("Softmax", "LogSoftmax", "Hardmax"), 13, 11)
def swap_axis_with_last(node: Node, out: Rewriter) -> None:
    """Swap `axis` with the last dimension, along which versions 11 and 13 agree, and swap back.

    Along a short axis, Softmax of float or double is rewritten as its definition, which takes less time.
    """
    data = node.inputs[0]
    axis, rank = node.attribute("axis", -1), out.known_rank(data)
    # For axis -1, both versions normalize only the last dimension, so the rank need not be known.
    if axis == -1 and rank is None:
        out.replace(node, attributes={"axis": -1})
        return
    rank = out.rank(data)
    last, axis = rank - 1, axis + rank if axis < 0 else axis
    if not 0 <= axis <= last:
        raise CannotConvert(
            f"axis {node.attribute('axis', -1)} is out of range for {data!r}, which has {rank} dimensions",
            "node.invalid",
        )
    if axis == last:
        out.replace(node, attributes={"axis": last})
        return
    size = out.known_dimension(data, axis)
    is_short = size is not None and 0 < size <= MAX_SHORT_AXIS
    if node.op_type == "Softmax" and is_short and out.element_type(data) in ("float", "double"):
        _normalize_by_sum(node, axis, out)
        return
    order = [*range(axis), last, *range(axis + 1, last), axis]
    moved = out.emit("Transpose", [data], perm=order)
    normalized = out.fresh(node.op_type.lower())
    out.replace(node, inputs=[moved], outputs=[normalized], attributes={"axis": last})
    out.emit("Transpose", [normalized], node.outputs, perm=order)


@function_body(("Softmax", "LogSoftmax"), 13)
def expand_softmax(node: Node, out: Rewriter) -> None:
    """Rewrite Softmax as `exp(x) / sum(exp(x))` along `axis`, and LogSoftmax as `x - log(sum(exp(x)))`.

    The maximum is subtracted from x first, which prevents overflow.
    """
    _normalize_by_sum(node, node.attribute("axis", -1), out)


def _normalize_by_sum(node: Node, axis: int, out: Rewriter) -> None:
    data = node.inputs[0]
    shifted = out.emit("Sub", [data, out.emit("ReduceMax", [data], axes=(axis,), opset=13)])
    exponentials = out.emit("Exp", [shifted])
    total = out.emit("ReduceSum", [exponentials, out.int64([axis])], opset=13)
    if node.op_type == "Softmax":
        out.emit("Div", [exponentials, total], node.outputs)
    else:
        out.emit("Sub", [shifted, out.emit("Log", [total])], node.outputs)
