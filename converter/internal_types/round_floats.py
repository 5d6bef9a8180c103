"""Rounding of float to the numbers of a narrower floating-point type, with operators on float."""

import math

from opshift.converter.internal_types.float_formats import FORMATS, FloatFormat
from opshift.converter.internal_types.node_writer import NodeWriter
from opshift.model.element_types import BY_NAME


def emit_rounded(
    value: str, element_type: str, wide: str, output: str, writer: NodeWriter, *, saturates: bool
) -> None:
    """Emit the nodes that round a float value, half to even, and return it as the wide type.

    Args:
        value: name of the value.
        element_type: the narrow type.
        wide: float, or float16 if it has all numbers of the narrow type.
        output: name of the result.
        writer: writer of the nodes.
        saturates: whether the largest number replaces larger ones, as for Cast.
    """
    kind = FORMATS[element_type]
    steps = [_round_significand]
    if element_type != "bfloat16":  # the arithmetic overflows to infinity like bfloat16
        steps.append(_saturate if saturates or element_type == "float4e2m1" else _overflow)
    if not kind.has_negative_zero:
        steps.append(_clear_sign_of_zero)
    for step in steps:
        value = step(value, kind, writer)
    writer.emit("Cast", [value], output, to=BY_NAME[wide].number)


def _round_significand(value: str, kind: FloatFormat, writer: NodeWriter) -> str:
    """Round to the precision of the type: divide by the power of two below the value, round, and multiply.

    A logarithm near a power of two may round to the wrong exponent. This is harmless: such numbers round to
    that power of two with both exponents.
    """

    def scalar(number: float, element_type: str = "float") -> str:
        return writer.constant(element_type, (), number)

    logarithm = writer.emit("Log", [writer.emit("Abs", [value])])
    exponent = writer.emit("Floor", [writer.emit("Mul", [logarithm, scalar(1 / math.log(2))])])
    integer = writer.emit("Cast", [exponent], to=BY_NAME["int32"].number)
    # also for the infinite exponents of zero and infinity, which become any integer
    bounds = [scalar(each, "int32") for each in (kind.least, kind.greatest)]
    position = writer.emit("Sub", [writer.emit("Clip", [integer, *bounds]), scalar(kind.least, "int32")])
    exponents = range(kind.least, kind.greatest + 1)
    # constants are exact in every runtime, unlike Pow
    powers = writer.shared_constant("float", tuple(math.ldexp(1.0, each) for each in exponents))
    power = writer.emit("Gather", [powers, position])
    # two factors, because the place value of the last bit may be subnormal, which some devices flush to zero
    last_place = math.ldexp(1.0, kind.precision - 1)
    significand = writer.emit("Mul", [writer.emit("Div", [value, power]), scalar(last_place)])
    rounded = writer.emit("Mul", [writer.emit("Round", [significand]), scalar(1 / last_place)])
    return writer.emit("Mul", [rounded, power])


def _saturate(value: str, kind: FloatFormat, writer: NodeWriter) -> str:
    bounds = [writer.constant("float", (), each) for each in (-kind.largest, kind.largest)]
    is_nan = writer.emit("IsNaN", [value])
    # runtimes differ in how Clip and Greater treat NaN
    nan = writer.constant("float", (), kind.not_a_number)
    return writer.emit("Where", [is_nan, nan, writer.emit("Clip", [value, *bounds])])


def _overflow(value: str, kind: FloatFormat, writer: NodeWriter) -> str:
    largest = writer.constant("float", (), kind.largest)
    is_large = writer.emit("Greater", [writer.emit("Abs", [value]), largest])
    product = writer.emit("Mul", [value, writer.constant("float", (), kind.overflow)])
    return writer.emit("Where", [is_large, product, value])


def _clear_sign_of_zero(value: str, kind: FloatFormat, writer: NodeWriter) -> str:
    zero = writer.constant("float", (), 0.0)
    return writer.emit("Where", [writer.emit("Equal", [value, zero]), zero, value])
