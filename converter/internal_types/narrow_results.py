"""Results of nodes that compute in a wider type than their own, restricted to the values of their type."""

from collections.abc import Collection, Mapping

from opshift.converter.internal_types.float_formats import FORMATS
from opshift.converter.internal_types.node_writer import NodeWriter
from opshift.converter.internal_types.round_floats import emit_rounded
from opshift.model.attributes import INT
from opshift.model.element_types import BY_NAME, INTEGER_BITS
from opshift.model.errors import CannotConvert
from opshift.model.messages import NodeProto
from opshift.model.node import Node
from opshift.model.shared_data import FrozenRecord
from opshift.model.tensors import PACKED_BITS, packed_range
from opshift.registry.models import OperatorVersion

EXACT_SOURCES = frozenset({*INTEGER_BITS, *PACKED_BITS, "bool"})
"""Types with one result of a Cast to narrow integers; runtimes differ in how they round others."""

ROUNDED_DIRECTLY = frozenset({"float16", "float", "double"})
"""Floating-point types that all versions of Round accept."""

NUMERIC_SOURCES = EXACT_SOURCES | ROUNDED_DIRECTLY | {*FORMATS, "float8e8m0"}

CASTS = ("Cast", "CastLike")

KNOWN = (*CASTS, "QuantizeLinear", "DequantizeLinear")
"""Operators without a `bridge` that convert between types."""

MOVING = frozenset({
    "Constant", "ConstantOfShape", "EyeLike", "If", "Loop", "Optional", "OptionalGetElement",
    "OptionalHasElement", "Scan", "ScatterElements", "ScatterND", "SplitToSequence", "TensorScatter",
})  # fmt: skip
"""Operators without a `bridge` that only move values, unless they have an attribute `reduction`."""

COMPUTING_BRIDGES = ("real", "ring")


class Widening(FrozenRecord):
    """Types to replace in a model.

    Attributes:
        wider: wider types by narrow types.
        sources: types whose Cast to narrow integers is replaced. Floats are rounded to the nearest integer,
            ties to even, before the high bits are dropped: Cast does not state this, but ONNX's pages about
            types of 4 and 2 bits do. onnx.reference truncates, and onnxruntime rounds ties away from zero.
        remedy: what to do if a node prevents the replacement.
    """

    wider: Mapping[str, str]
    sources: Collection[str]
    remedy: str

    @property
    def has_floats(self) -> bool:
        """Whether there are types that are computed in."""
        return not FORMATS.keys().isdisjoint(self.wider)

    def require_known_use(self, node: Node, operator: OperatorVersion | None, narrow: str) -> None:
        """Refuse a node that may compute with a narrow type in an unknown way."""
        is_known = operator is not None and operator.domain == "ai.onnx" and operator.name != "BitCast"
        if is_known and narrow not in PACKED_BITS:
            assert operator is not None
            moves = operator.name in MOVING and node.attribute("reduction", "none") in ("none", b"none")
            is_known = operator.bridge is not None or operator.name in KNOWN or moves
        # Operators of other domains may read bytes as packed integers, such as GatherBlockQuantized.
        if not is_known:
            reason = f"{node.op_type} may depend on the number of bits of {narrow}"
            raise CannotConvert(reason, "type.narrow-integer", subject=narrow, remedy=self.remedy)

    def restrict_cast(self, copy: NodeProto, source: str, result: str, writer: NodeWriter) -> None:
        """Restrict the result of the Cast or CastLike that was written last."""
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
        """Restrict the narrow integers of the QuantizeLinear that was written last."""
        name, values = _rename_output(copy, 0, writer), packed_range(result)
        bounds = [writer.constant(self.wider[result], (), each) for each in (values[0], values[-1])]
        writer.emit("Clip", [copy.output[0], *bounds], name)

    def round_output(self, copy: NodeProto, position: int, result: str, writer: NodeWriter) -> None:
        """Round an output of the node that was written last, which computes in the wider type."""
        name = _rename_output(copy, position, writer)
        emit_rounded(copy.output[position], result, self.wider[result], name, writer, saturates=False)


def _rename_output(copy: NodeProto, position: int, writer: NodeWriter) -> str:
    """Give an output of a node a new name, and return the old one."""
    name = copy.output[position]
    copy.output[position] = writer.names.fresh(name)
    if copy.name == name:  # tract names the unnamed node with the old output after it
        copy.name = copy.output[position]
    return name


def emit_low_bits(value: str, element_type: str, writer: NodeWriter) -> str:
    """Emit the number with the low bits of an int32 value."""
    values = packed_range(element_type)
    shifted = writer.emit("Sub", [value, writer.constant("int32", (), values[0])])
    low = writer.emit("Mod", [shifted, writer.constant("int32", (), len(values))])
    return writer.emit("Add", [low, writer.constant("int32", (), values[0])])
