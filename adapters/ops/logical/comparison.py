"""Comparisons: Less and Greater of integers since opset 9, Equal of floats since opset 11."""

from typing import NamedTuple

from opshift.adapters import Node, Rewriter, adapter, require_supported_types
from opshift.adapters.emit.cast import IEEE_FLOAT_TYPES, cast


class IntegerHalves(NamedTuple):
    """A 64-bit integer as two that double represents exactly; the lower one has the sign of the integer."""

    upper: str
    lower: str


@adapter("Equal", 11, 7)
def replace_equal_by_less_and_greater(node: Node, out: Rewriter) -> None:
    """Replace Equal of floats by "neither less nor greater, and not NaN"; compare uint64 as int64."""
    element_type = out.element_type(node.inputs[0])
    if element_type in IEEE_FLOAT_TYPES:
        less, greater = (out.emit(op_type, node.inputs) for op_type in ("Less", "Greater"))
        neither = out.emit("Not", [out.emit("Or", [less, greater])])
        first, second = (_is_number(name, element_type, out) for name in node.inputs)
        out.emit("And", [neither, out.emit("And", [first, second])], node.outputs)
    elif element_type == "uint64":
        signed = [out.cast(name, "int64") for name in node.inputs]
        out.replace(node, inputs=signed)
    else:
        require_supported_types(node, out)
        out.replace(node)


def _is_number(name: str, element_type: str, out: Rewriter) -> str:
    """Emit whether a value is not NaN: every number is less than 1 or greater than 0, NaN is neither."""
    less = out.emit("Less", [name, out.constant(1.0, element_type)])
    return out.emit("Or", [less, out.emit("Greater", [name, out.constant(0.0, element_type)])])


@adapter(("Less", "Greater"), 9, 7)
def compare_integers_by_halves(node: Node, out: Rewriter) -> None:
    """Compare 64-bit integers by their upper halves, and if these are equal by their lower halves."""
    element_type = out.element_type(node.inputs[0])
    if element_type not in ("int64", "uint64"):
        require_supported_types(node, out)
        out.replace(node)
        return
    first, second = (_split(name, element_type, out) for name in node.inputs)
    upper = _compare_as_double(node.op_type, first.upper, second.upper, out)
    lower = _compare_as_double(node.op_type, first.lower, second.lower, out)
    same = out.emit("Equal", [first.upper, second.upper])
    out.emit("Or", [upper, out.emit("And", [same, lower])], node.outputs)


def _split(name: str, element_type: str, out: Rewriter) -> IntegerHalves:
    value = name if element_type == "int64" else cast(name, "int64", out)
    base = out.int64(1 << 32)
    upper = out.emit("Div", [value, base])
    lower = out.emit("Sub", [value, out.emit("Mul", [upper, base])])
    if element_type == "uint64":
        # The cast turns the upper half of the uint64 range into negative numbers, in the same order; add 2 **
        # 64 back.
        is_wrapped = _compare_as_double("Less", value, out.int64(0), out)
        upper = out.emit("Add", [upper, out.emit("Mul", [cast(is_wrapped, "int64", out), base])])
    return IntegerHalves(upper, lower)


def _compare_as_double(op_type: str, first: str, second: str, out: Rewriter) -> str:
    return out.emit(op_type, [cast(name, "double", out) for name in (first, second)])
