"""Activations that came late: each is a formula of operators that are older."""

from __future__ import annotations

import math
from collections.abc import Sequence

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME

FLOATS = ("float16", "float", "double")


@adapter("Celu", 12, 11)
def celu_is_a_scaled_elu(node: Node, out: Rewriter) -> None:
    """`alpha * Elu(x / alpha)`."""
    alpha = node.attribute("alpha", 1.0)
    if not alpha > 0:
        raise CannotConvert(
            f"alpha is {alpha}; only above 0 is Celu one curve", remedy="state a positive alpha"
        )
    if alpha == 1:
        out.become(node, op_type="Elu", attributes={})
        return
    factor = out.constant(alpha, out.element_type(node.inputs[0]))
    curve = out.emit("Elu", [out.emit("Div", [node.inputs[0], factor])])
    out.emit("Mul", [curve, factor], node.outputs)


@adapter("Swish", 24, 23)
def swish_is_a_gate(node: Node, out: Rewriter) -> None:
    """`x * sigmoid(alpha * x)`."""
    out.emit("Mul", [node.inputs[0], _sigmoid(node, out)], node.outputs)


@adapter("SwiGLU", 28, 27)
def gated_unit_is_swish_times_value(node: Node, out: Rewriter) -> None:
    """`a * sigmoid(alpha * a) * b`."""
    swish = out.emit("Mul", [node.inputs[0], _sigmoid(node, out)])
    out.emit("Mul", [swish, node.inputs[1]], node.outputs)


@adapter("Gelu", 20, 19)
def gelu_is_half_of_a_gate(node: Node, out: Rewriter) -> None:
    """`0.5 * x * (1 + erf(x / sqrt(2)))`, or tanh of a polynomial for erf."""
    data = node.inputs[0]
    element_type = out.element_type(data)
    tanh = node.attribute("approximate", b"none") == b"tanh"
    curve = _tanh_curve(data, element_type, out) if tanh else _erf_curve(data, element_type, out)
    gate = out.emit("Add", [curve, out.constant(1.0, element_type)])
    half = out.emit("Mul", [data, out.constant(0.5, element_type)])
    out.emit("Mul", [half, gate], node.outputs)


@adapter("ThresholdedRelu", 10, 1)
def threshold_is_a_choice(node: Node, out: Rewriter) -> None:
    """`x` where it exceeds `alpha`, else 0; runtimes do not have the experimental version 1."""
    element_type = out.element_type(node.inputs[0])
    exceeds = out.emit(
        "Greater", [node.inputs[0], out.constant(node.attribute("alpha", 1.0), element_type)], opset=9
    )
    out.emit("Where", [exceeds, node.inputs[0], out.constant(0.0, element_type)], node.outputs, opset=9)


@adapter("Shrink", 9, 8)
def shrink_is_two_choices(node: Node, out: Rewriter) -> None:
    """`x + bias` below `-lambd`, `x - bias` above `lambd`, and 0 between; whole numbers go through double."""
    element_type = out.element_type(node.inputs[0])
    if element_type in FLOATS:
        _shrink(node.inputs[0], node, element_type, node.outputs, out)
        return
    wide = out.emit("Cast", node.inputs, to=BY_NAME["double"].number)
    shrunk = _shrink(wide, node, "double", 1, out)
    out.emit("Cast", [shrunk], node.outputs, to=BY_NAME[element_type].number)


def _shrink(data: str, node: Node, element_type: str, outputs: Sequence[str] | int, out: Rewriter) -> str:
    limit = node.attribute("lambd", 0.5)
    shift = out.constant(node.attribute("bias", 0.0), element_type)
    low = out.emit("Less", [data, out.constant(-limit, element_type)], opset=9)
    high = out.emit("Greater", [data, out.constant(limit, element_type)], opset=9)
    rest = out.emit("Where", [high, out.emit("Sub", [data, shift]), out.constant(0.0, element_type)], opset=9)
    return out.emit("Where", [low, out.emit("Add", [data, shift]), rest], outputs, opset=9)


def _sigmoid(node: Node, out: Rewriter) -> str:
    data, alpha = node.inputs[0], node.attribute("alpha", 1.0)
    if alpha != 1:
        data = out.emit("Mul", [data, out.constant(alpha, out.element_type(data))])
    return out.emit("Sigmoid", [data])


def _erf_curve(data: str, element_type: str, out: Rewriter) -> str:
    return out.emit("Erf", [out.emit("Mul", [data, out.constant(math.sqrt(0.5), element_type)])])


def _tanh_curve(data: str, element_type: str, out: Rewriter) -> str:
    """`tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))`."""
    cube = out.emit("Mul", [data, out.emit("Mul", [data, data])])
    inner = out.emit("Add", [data, out.emit("Mul", [cube, out.constant(0.044715, element_type)])])
    return out.emit("Tanh", [out.emit("Mul", [inner, out.constant(math.sqrt(2 / math.pi), element_type)])])
