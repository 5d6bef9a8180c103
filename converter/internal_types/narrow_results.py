"""Emit nodes that round results in a wider type to the values of the narrow type."""

import math
from collections.abc import Collection, Mapping

from opshift.converter.internal_types.float_formats import FORMATS, FloatFormat
from opshift.converter.internal_types.node_writer import NodeWriter
from opshift.model.attributes import INT
from opshift.model.element_types import BY_NAME, INTEGER_BITS
from opshift.model.errors import CannotConvert
from opshift.model.messages import NodeProto
from opshift.model.node import Node
from opshift.model.shared_data import FrozenRecord
from opshift.model.tensors import PACKED_BITS, packed_range
from opshift.registry.models import OperatorVersion

EXACT_SOURCES = frozenset({*INTEGER_BITS, *PACKED_BITS, "bool"})
"""Types whose Cast to narrow integers has the same result in all runtimes, unlike floating-point types."""

ROUNDED_DIRECTLY = frozenset({"float16", "float", "double"})
"""Floating-point types that all versions of Round accept."""

NUMERIC_SOURCES = EXACT_SOURCES | ROUNDED_DIRECTLY | {*FORMATS, "float8e8m0"}

CASTS = ("Cast", "CastLike")

KNOWN = (*CASTS, "QuantizeLinear", "DequantizeLinear")
"""Operators that convert between types; their definitions have no `bridge` (permitted wider types)."""

MOVING = frozenset({
    "Constant", "ConstantOfShape", "EyeLike", "If", "Loop", "Optional", "OptionalGetElement",
    "OptionalHasElement", "Scan", "ScatterElements", "ScatterND", "SplitToSequence", "TensorScatter",
})  # fmt: skip
"""Accepted operators without a `bridge`: they only move values, unless the attribute `reduction` is set."""

COMPUTING_BRIDGES = ("real", "ring")


class Widening(FrozenRecord):
    """Types to replace in a model.

    Attributes:
        wider: wider type of each narrow type.
        sources: types whose Cast to narrow integers is replaced. Floats are rounded to the nearest integer,
            ties to even, before the high bits are dropped: Cast does not state this, but ONNX's pages about
            types of 4 and 2 bits do. onnx.reference truncates, and onnxruntime rounds ties away from zero.
        remedy: advice in the error if a node prevents the replacement.
    """

    wider: Mapping[str, str]
    sources: Collection[str]
    remedy: str

    @property
    def has_floats(self) -> bool:
        """Whether narrow floating-point types are replaced, so that results of arithmetic must be rounded."""
        return not FORMATS.keys().isdisjoint(self.wider)

    def require_known_use(self, node: Node, operator: OperatorVersion | None, narrow: str) -> None:
        """Refuse a node if its result may depend on the storage format of a narrow type."""
        is_known = operator is not None and operator.domain == "ai.onnx" and operator.name != "BitCast"
        if is_known and narrow not in PACKED_BITS:
            assert operator is not None
            moves = operator.name in MOVING and node.attribute("reduction", "none") in ("none", b"none")
            is_known = operator.bridge is not None or operator.name in KNOWN or moves
        # Operators of other domains, such as GatherBlockQuantized, may read bytes as packed integers.
        if not is_known:
            reason = f"{node.op_type} may depend on the number of bits of {narrow}"
            raise CannotConvert(reason, "type.narrow-integer", subject=narrow, remedy=self.remedy)

    def restrict_cast(self, copy: NodeProto, source: str, result: str, writer: NodeWriter) -> None:
        """Restrict `copy`, the last written Cast or CastLike, to the values of the narrow type `result`."""
        is_integer = result in PACKED_BITS
        if source not in (self.sources if is_integer else NUMERIC_SOURCES) or result == "float8e8m0":
            reason = f"runtimes round a Cast from {source} to {result} differently"
            raise CannotConvert(reason, "result.runtime-dependent", remedy=self.remedy)
        saturates = next((each.i for each in copy.attribute if each.name == "saturate"), 1)
        name, wide = _rename_output(copy, 0, writer), self.wider[result]
        copy.op_type = "Cast"
        del copy.input[1:], copy.attribute[:]
        is_rounded = is_integer and source not in EXACT_SOURCES
        if is_rounded and source in ROUNDED_DIRECTLY:
            copy.op_type = "Round"
        else:
            compute = "int32" if is_integer and not is_rounded else "float"
            copy.attribute.add(name="to", type=INT, i=BY_NAME[compute].number)
        if not is_integer:
            emit_rounded(copy.output[0], result, wide, name, writer, saturates=bool(saturates))
            return
        integer = copy.output[0]
        if is_rounded:
            rounded = integer if copy.op_type == "Round" else writer.emit("Round", [integer])
            integer = writer.emit("Cast", [rounded], to=BY_NAME["int32"].number)
        writer.emit("Cast", [emit_low_bits(integer, result, writer)], name, to=BY_NAME[wide].number)

    def restrict_quantized(self, copy: NodeProto, result: str, writer: NodeWriter) -> None:
        """Clip `copy`, the last written QuantizeLinear, to the range of the narrow integer type `result`."""
        name, values = _rename_output(copy, 0, writer), packed_range(result)
        bounds = [writer.constant(self.wider[result], (), each) for each in (values[0], values[-1])]
        writer.emit("Clip", [copy.output[0], *bounds], name)

    def round_output(self, copy: NodeProto, position: int, result: str, writer: NodeWriter) -> None:
        """Round an output of `copy`, the last written node, to the narrow floating-point type `result`."""
        name = _rename_output(copy, position, writer)
        emit_rounded(copy.output[position], result, self.wider[result], name, writer, saturates=False)


def _rename_output(copy: NodeProto, position: int, writer: NodeWriter) -> str:
    """Give an output of a node a new name, and return the old name."""
    name = copy.output[position]
    copy.output[position] = writer.names.fresh(name)
    # The added node has no name and produces `name`; tract names it `name`, so no other node may have it.
    if copy.name == name:
        copy.name = copy.output[position]
    return name


def emit_low_bits(value: str, element_type: str, writer: NodeWriter) -> str:
    """Emit nodes that wrap an int32 value to the range of a narrow integer type, and return the result."""
    values = packed_range(element_type)
    shifted = writer.emit("Sub", [value, writer.constant("int32", (), values[0])])
    low = writer.emit("Mod", [shifted, writer.constant("int32", (), len(values))])
    return writer.emit("Add", [low, writer.constant("int32", (), values[0])])


def emit_rounded(
    value: str, element_type: str, wide: str, output: str, writer: NodeWriter, *, saturates: bool
) -> None:
    """Emit nodes that round a float value to a narrow type, half to even, and cast it to the wide type.

    Args:
        value: name of the value.
        element_type: the narrow type.
        wide: float, or float16 if it represents all numbers of the narrow type.
        output: name of the result.
        writer: writer of the nodes.
        saturates: whether the largest number replaces larger ones, as for Cast.

    Raises:
        CannotConvert: the narrow type is float8e8m0, which has only powers of two.
    """
    kind = FORMATS.get(element_type)
    if kind is None:
        reason = f"the output has the type {element_type}, to which results cannot be rounded"
        raise CannotConvert(reason, "type.unsupported", subject=element_type)
    steps = [_round_significand]
    if element_type != "bfloat16":  # bfloat16 needs no step: like float, it overflows to infinity.
        steps.append(_emit_saturated if saturates or element_type == "float4e2m1" else _emit_overflow)
    if not kind.has_negative_zero:
        steps.append(_clear_sign_of_zero)
    for step in steps:
        value = step(value, kind, writer)
    writer.emit("Cast", [value], output, to=BY_NAME[wide].number)


def _round_significand(value: str, kind: FloatFormat, writer: NodeWriter) -> str:
    """Round to the precision of the type: divide by the power of two below the value, round, and multiply.

    The logarithm of a number near a power of two may round to the wrong exponent. This is harmless: with both
    exponents, the number is rounded to that power of two.
    """

    def scalar(number: float, element_type: str = "float") -> str:
        return writer.constant(element_type, (), number)

    logarithm = writer.emit("Log", [writer.emit("Abs", [value])])
    exponent = writer.emit("Floor", [writer.emit("Mul", [logarithm, scalar(1 / math.log(2))])])
    integer = writer.emit("Cast", [exponent], to=BY_NAME["int32"].number)
    # The logarithms of zero and infinity are infinite. Cast turns these into an arbitrary integer, which Clip
    # limits.
    bounds = [scalar(each, "int32") for each in (kind.least, kind.greatest)]
    position = writer.emit("Sub", [writer.emit("Clip", [integer, *bounds]), scalar(kind.least, "int32")])
    exponents = range(kind.least, kind.greatest + 1)
    # A table of constants, because constants are exact in every runtime, unlike results of Pow.
    powers = writer.shared_constant("float", tuple(math.ldexp(1.0, each) for each in exponents))
    power = writer.emit("Gather", [powers, position])
    # Two factors, because the place value of the last bit may be subnormal: some devices flush it to zero.
    last_place = math.ldexp(1.0, kind.precision - 1)
    significand = writer.emit("Mul", [writer.emit("Div", [value, power]), scalar(last_place)])
    rounded = writer.emit("Mul", [writer.emit("Round", [significand]), scalar(1 / last_place)])
    return writer.emit("Mul", [rounded, power])


def _emit_saturated(value: str, kind: FloatFormat, writer: NodeWriter) -> str:
    bounds = [writer.constant("float", (), each) for each in (-kind.largest, kind.largest)]
    is_nan = writer.emit("IsNaN", [value])
    # Where handles NaN, because runtimes differ in the result of Clip for NaN.
    nan = writer.constant("float", (), kind.not_a_number)
    return writer.emit("Where", [is_nan, nan, writer.emit("Clip", [value, *bounds])])


def _emit_overflow(value: str, kind: FloatFormat, writer: NodeWriter) -> str:
    largest = writer.constant("float", (), kind.largest)
    is_large = writer.emit("Greater", [writer.emit("Abs", [value]), largest])
    product = writer.emit("Mul", [value, writer.constant("float", (), kind.overflow)])
    return writer.emit("Where", [is_large, product, value])


def _clear_sign_of_zero(value: str, kind: FloatFormat, writer: NodeWriter) -> str:
    zero = writer.constant("float", (), 0.0)
    return writer.emit("Where", [writer.emit("Equal", [value, zero]), zero, value])
