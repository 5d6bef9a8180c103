"""Emit the arithmetic that defines QuantizeLinear and DequantizeLinear.

`Float32` rounds each result to float32, as kernels do, and computes operations of numbers without nodes,
except divisions by 0.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from opshift.adapters import CannotConvert, Node, Rewriter
from opshift.adapters.core.rewriter import rename_output
from opshift.adapters.emit.expression import Arithmetic
from opshift.adapters.emit.shapes import reshape
from opshift.model.element_types import BY_NAME, round_to_float32

INTEGER_RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "uint16": (0, 65535)}
"""Smallest and largest number of each integer type to which results are quantized with saturation."""

FIRST_OPSET = {
    "float8e4m3fn": 19, "float8e4m3fnuz": 19, "float8e5m2": 19, "float8e5m2fnuz": 19, "int4": 21, "uint4": 21,
    "float4e2m1": 23, "float8e8m0": 24, "int2": 25, "uint2": 25, "float6e2m3": 28, "float6e3m2": 28,
}  # fmt: skip
"""Opset that introduced each narrow type; a model of an older opset cannot contain it."""

ROUND_OPSET, CLIP_OPSET, ARITHMETIC_OPSET = 11, 6, 7
"""Opsets of the emitted nodes: Round exists since 11; the bounds of Clip are attributes before 11; arithmetic
broadcasts since 7."""


class QuantizationScheme(NamedTuple):
    """Inputs of QuantizeLinear or DequantizeLinear, and the granularity of scale and zero point.

    `zero_point` is `""` if there is none, and `block_size` is 0 unless quantization is blocked.
    """

    data: str
    scale: str
    zero_point: str
    axis: int
    block_size: int


def scheme_of(node: Node) -> QuantizationScheme:
    """Return the scheme of a node of any version, with defaults for absent attributes."""
    data, scale = node.inputs[:2]
    axis, block_size = node.attribute("axis", 1), node.attribute("block_size", 0)
    return QuantizationScheme(data, scale, node.input(2), axis, block_size)


def quantized_type(scheme: QuantizationScheme, out: Rewriter) -> str:
    """Return the element type of the quantized data, which is also the type of the zero point.

    Raises:
        CannotConvert: the types of the data and of the zero point are unknown.
    """
    known = out.known_element_type(scheme.data) or out.known_element_type(scheme.zero_point)
    return known or out.element_type(scheme.data)


def require_available_type(element_type: str, name: str, out: Rewriter) -> None:
    """Refuse an element type that does not exist in the target opset."""
    if FIRST_OPSET.get(element_type, 1) > out.opset:
        reason = f"{name!r} is tensor({element_type}), which opset {FIRST_OPSET[element_type]} introduced"
        remedy = "quantize to a type that the target opset supports, such as int8"
        raise CannotConvert(reason, "type.unsupported", subject=element_type, remedy=remedy)


def cast_if_needed(name: str, source: str | None, target: str, out: Rewriter) -> str:
    """Return `name`, or its Cast to `target` unless `source` equals `target`; `None` is an unknown type."""
    if source == target:
        return name
    # Casts of newer types are emitted for the target opset, because Cast-6 does not support these types.
    is_new = {source, target} & {"bfloat16", *FIRST_OPSET}
    return out.cast(name, target, opset=out.opset if is_new else CLIP_OPSET)


def emit_quantize(node: Node, scheme: QuantizationScheme, precision: str, result: str, out: Rewriter) -> None:
    """Emit QuantizeLinear as arithmetic: divide, round (integer results only), add the zero point, saturate.

    Operands are rounded to the type `precision`; float16, bfloat16 and int32 operands are divided in float.
    The output has the element type `result`.
    """
    out = out.for_opset(ARITHMETIC_OPSET)
    compute = "float" if precision in ("float16", "bfloat16", "int32") else precision
    operands = []
    for name in (scheme.data, scheme.scale):
        # The first cast rounds to the declared precision; the second cast selects a type that Div supports.
        rounded = cast_if_needed(name, out.known_element_type(name), precision, out)
        operands.append(cast_if_needed(rounded, precision, compute, out))
    value = out.emit("Div", [operands[0], broadcast_to_data(operands[1], scheme, out)])
    limits = INTEGER_RANGES.get(result)
    if limits:
        value = out.emit("Round", [value], opset=ROUND_OPSET)
    if _has_effective_zero_point(scheme, out):
        zero = broadcast_to_data(cast_if_needed(scheme.zero_point, result, compute, out), scheme, out)
        value = out.emit("Add", [value, zero])
    if limits:
        value = out.emit("Clip", [value], opset=CLIP_OPSET, min=float(limits[0]), max=float(limits[1]))
        out.cast(value, result, node.outputs, opset=CLIP_OPSET)
    else:
        number, saturate = BY_NAME[result].number, node.attribute("saturate", 1)
        out.emit("Cast", [value], node.outputs, opset=out.opset, to=number, saturate=saturate)


def _has_effective_zero_point(scheme: QuantizationScheme, out: Rewriter) -> bool:
    constant = out.constant_value(scheme.zero_point)
    return bool(scheme.zero_point) and (constant is None or any(constant.values))


def broadcast_to_data(name: str, scheme: QuantizationScheme, out: Rewriter) -> str:
    """Reshape or repeat scales or zero points so that they broadcast with the data.

    Raises:
        CannotConvert: the scale or zero point has a wrong rank (see `_require_valid_ranks`), or a required
            rank or blocked dimension is unknown.
    """
    if not scheme.block_size and is_per_tensor(scheme, out):
        return name if out.known_rank(scheme.data) else as_scalar(name, out)
    rank = out.rank(scheme.data)
    axis = scheme.axis % rank
    _require_valid_ranks(scheme, rank, out)
    if scheme.block_size:
        # The last block may be shorter than the others, so the exact dimension is needed.
        size = out.require_elements(out.dimension(scheme.data, axis))
        blocks = [position // scheme.block_size for position in range(size)]
        return out.emit("Gather", [name, out.int64(blocks)], opset=ARITHMETIC_OPSET, axis=axis)
    trailing = rank - 1 - axis
    return reshape(name, (-1, *[1] * trailing), out, opset=ARITHMETIC_OPSET) if trailing else name


def _require_valid_ranks(scheme: QuantizationScheme, rank: int, out: Rewriter) -> None:
    """Refuse scales and zero points of a known wrong rank: broadcasting could use a wrong axis."""
    for each in filter(None, (scheme.scale, scheme.zero_point)):
        found = out.known_rank(each)
        if scheme.block_size and found not in (None, rank):
            reason = f"{each!r} has rank {found}, but blocks of {scheme.data!r} require rank {rank}"
            raise CannotConvert(reason, "node.invalid", remedy="correct the shape, or remove block_size")
        if not scheme.block_size and found not in (None, 0, 1):
            reason = f"{each!r} has rank {found}, but without block_size the rank is 0 or 1"
            raise CannotConvert(reason, "node.invalid", remedy="correct the shape, or set block_size")


def is_per_tensor(scheme: QuantizationScheme, out: Rewriter) -> bool:
    """Return whether quantization is per tensor: one scale for all elements, or scalar data; no blocks.

    Raises:
        CannotConvert: the rank of the scale is unknown, and the data is not known to be a scalar.
    """
    shape = out.shape(scheme.scale)
    is_single = shape in ((), (1,)) or out.known_rank(scheme.data) == 0
    if shape is None and not is_single:
        out.rank(scheme.scale)  # raises CannotConvert: the rank is unknown
    return is_single and not scheme.block_size


def as_scalar(name: str, out: Rewriter) -> str:
    """Return a value with one element as a scalar."""
    if out.shape(name) == ():
        return name
    constant = out.constant_value(name)
    if constant is not None:
        return out.tensor(constant._replace(dims=()))
    return reshape(name, (), out, opset=ARITHMETIC_OPSET)


def emit_dequantize(node: Node, scheme: QuantizationScheme, result: str, out: Rewriter) -> None:
    """Emit DequantizeLinear as arithmetic: subtract the zero point and multiply by the scale."""
    out = out.for_opset(ARITHMETIC_OPSET)
    value, source = scheme.data, quantized_type(scheme, out)
    compute = "float" if result in ("float16", "bfloat16") else result
    scale = cast_if_needed(scheme.scale, out.element_type(scheme.scale), compute, out)
    scale = broadcast_to_data(scale, scheme, out)
    if _has_effective_zero_point(scheme, out):
        # int32 is subtracted as int32, because float represents all integers only up to 2**24.
        exact = "int32" if source == "int32" else compute
        zero = broadcast_to_data(cast_if_needed(scheme.zero_point, source, exact, out), scheme, out)
        value = out.emit("Sub", [cast_if_needed(value, source, exact, out), zero])
        source = exact
    product = out.emit("Mul", [cast_if_needed(value, source, compute, out), scale])
    rename_output(cast_if_needed(product, compute, result, out), node, out)


OPERATIONS: Mapping[str, Callable[[float, float], float]] = {
    "Add": operator.add, "Sub": operator.sub, "Mul": operator.mul, "Div": operator.truediv,
}  # fmt: skip


class Float32(Arithmetic[float | str]):
    """A float32 number, or the name of a float32 value."""

    __slots__ = ("_out",)

    def __init__(self, content: float | str, out: Rewriter) -> None:
        super().__init__(content)
        self._out = out

    @property
    def name(self) -> str:
        """The name of the value; a number becomes a constant."""
        return self._named(self.content, "float")

    def multiply_add(self, factor: "Float32", addend: "Float32") -> "Float32":
        """Return `self * factor + addend`, computed in double and then rounded to float32."""
        operands = self.content, factor.content, addend.content
        if not any(isinstance(each, str) for each in operands):
            first, second, third = map(float, operands)
            return Float32(round_to_float32(first * second + third), self._out)
        # The product of two float32 numbers is exact in double.
        first_name, second_name, third_name = (self._named(each, "double") for each in operands)
        product = self._out.emit("Mul", [first_name, second_name])
        return Float32(self._out.cast(self._out.emit("Add", [product, third_name]), "float"), self._out)

    def _named(self, content: float | str, element_type: str) -> str:
        """Return the name of a number or value, cast to an element type."""
        if not isinstance(content, str):
            return self._out.constant(content, element_type)
        return content if element_type == "float" else self._out.cast(content, element_type)

    def _emit(self, op_type: str, operands: Sequence[float | str], opset: int | None) -> float | str:
        first, second = operands
        if isinstance(first, str) or isinstance(second, str) or (op_type == "Div" and not second):
            return self._out.emit(op_type, [self._named(each, "float") for each in operands], opset=opset)
        return round_to_float32(OPERATIONS[op_type](first, second))

    def _with(self, content: float | str) -> "Float32":
        return Float32(content, self._out)


def float32_scalar(name: str, out: Rewriter) -> Float32:
    """Return a value with one element as a float32 scalar, or 0 if `name` is empty."""
    constant = out.constant_value(name) if name else None
    if not name or (constant and len(constant.values) == 1):
        return Float32(float(constant.scalar) if constant else 0.0, out)
    return Float32(out.cast(as_scalar(name, out), "float"), out)
