"""Operators with weights quantized in blocks, such as MatMulNBits: dequantize the weights by arithmetic.

A byte holds one, two or four numbers; each block of numbers has a scale.
"""

from opshift.adapters import CannotConvert, Node, Rewriter, adapter
from opshift.adapters.emit.expression import Expression, cast_between
from opshift.adapters.emit.shapes import (
    Dimension,
    computed_dimension,
    dimension_tensor,
    index_range,
    product_of_dimensions,
    reshape,
)

PACKED_BITS = (2, 4, 8)
"""Supported sizes of packed numbers, in bits: a byte holds 4, 2 or 1 of them."""


def require_packed_bits(bits: int) -> int:
    """Return `bits`, the size of packed numbers; refuse sizes other than 2, 4 and 8."""
    if bits not in PACKED_BITS:
        reason = f"the size of packed numbers is {bits} bits, expected 2, 4 or 8"
        raise CannotConvert(reason, "value.unsupported", remedy="quantize to 2, 4 or 8 bits")
    return bits


def unpack(
    packed: str,
    bits: int,
    rank: int,
    element_type: str,
    out: Rewriter,
    *,
    high_first: bool = False,
    row: int | None = -1,
) -> str:
    """Unpack the numbers in bytes, of rank `rank`, to a floating-point type; the last dimension grows.

    `row` is the number of bytes in the last dimension; `None` computes the number, -1 lets Reshape infer the
    new size, which requires nonempty data. The lowest bits of a byte are the first number, with `high_first`
    the last. Arithmetic is in floating point, which is exact, for runtimes that cannot shift bytes.
    """
    rest = Expression(out.cast(packed, element_type), element_type, out)
    if bits == 8:
        return rest.name
    columns: list[Expression] = []
    for _ in range(8 // bits - 1):
        quotient = (rest * 0.5**bits).apply("Floor")
        columns.append(rest - quotient * 2.0**bits)
        rest = quotient
    last = out.int64([rank])
    columns.append(rest)
    if high_first:
        columns.reverse()
    split = [out.emit("Unsqueeze", [each.name, last]) for each in columns]
    joined = out.emit("Concat", split, axis=rank)
    count = None if row is None else max(row * 8 // bits, -1)
    length: Dimension = product_of_dimensions(joined, (rank - 1, rank), out) if count is None else count
    return reshape(joined, [*[0] * (rank - 1), length], out)


def block_indices(count: Dimension, block_size: int, out: Rewriter) -> str:
    """Return a 1-D int64 tensor with the block index `i // block_size` of each number `i` below `count`."""
    if isinstance(count, int):
        out.require_elements(count)
        return out.int64([index // block_size for index in range(count)])
    return out.emit("Div", [index_range(dimension_tensor(count, out), out), out.int64(block_size)])


def first_columns(value: str, count: Dimension, axis: int, out: Rewriter) -> str:
    """Return the first `count` elements along `axis`, without the padding of packed rows to whole bytes."""
    return out.emit("Slice", [value, out.int64([0]), dimension_tensor(count, out), out.int64([axis])])


OPSET, INT4_OPSET = 13, 21
"""Opset of the emitted nodes, and the first opset with 4-bit integers."""

FLOAT4 = (0.0, 1 / 192, 2 / 3, 1.0, 1 / 3, 1 / 2, 1 / 6, 1 / 4)

FOUR_BIT_NUMBERS = {
    0: (*FLOAT4, *(-number for number in FLOAT4)),
    1: (
        -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453,
        -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0,
        0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
        0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
    ),
}  # fmt: skip
"""Numbers of the 4-bit codes by `quant_type`: 0 is FP4, 1 is NF4 (quantiles of a normal distribution)."""


@adapter("MatMulNBits", 1, 0, domain="com.microsoft")
def expand_matmul_nbits(node: Node, out: Rewriter) -> None:
    """Rewrite as MatMul with weights that are unpacked and dequantized by arithmetic."""
    out = out.for_opset(OPSET, "")
    bits, block_size = require_packed_bits(node.attribute("bits", 4)), node.attribute("block_size")
    if node.attribute("weight_prepacked", 0):
        reason = "weight_prepacked is set, but the prepacked layout is specific to one kernel"
        raise CannotConvert(reason, "attribute.unsupported", subject="weight_prepacked")
    zero_type = node.input(3) and out.element_type(node.input(3))
    has_integers = zero_type == "uint8"
    if node.input(4) and (has_integers or bits == 2):
        what = "decode 2-bit weights incorrectly" if bits == 2 else "ignore integer zero points"
        reason = f"with g_idx, kernels of onnxruntime {what}, unlike the definition"
        remedy = "reorder the rows of the weights and omit g_idx"
        remedy += "" if bits == 2 else ", or pass zero points of the type of A"
        raise CannotConvert(reason, "result.runtime-dependent", remedy=remedy)
    columns, length = node.attribute("N"), node.attribute("K")
    blocks, element_type = -(-length // block_size), out.element_type(node.inputs[0])
    # The type of A may not represent zero points of another floating-point type.
    wide = element_type if zero_type in ("", "uint8", element_type) else "float"
    numbers = unpack(reshape(node.inputs[1], (columns, blocks, -1), out), bits, 3, wide, out)
    scales = reshape(node.inputs[2], (columns, blocks, 1), out)
    zeros = _matmul_zero_points(node, bits, columns, blocks, wide, out)
    order = node.input(4)
    if order:
        numbers = first_columns(reshape(numbers, (columns, -1, 1), out), length, 1, out)
        scales, zeros = (each and out.emit("Gather", [each, order], axis=1) for each in (scales, zeros))
    zeros = zeros or out.constant(2.0 ** (bits - 1), element_type)
    differences = cast_between(out.emit("Sub", [numbers, zeros]), wide, element_type, out)
    weights = out.emit("Mul", [differences, scales])
    weights = reshape(weights, (columns, -1), out)
    if length % block_size and not order:
        weights = first_columns(weights, length, 1, out)
    factors = [node.inputs[0], out.emit("Transpose", [weights], perm=(1, 0))]
    if node.input(5):
        out.emit("Add", [out.emit("MatMul", factors), node.input(5)], node.outputs)
    else:
        out.emit("MatMul", factors, node.outputs)


def _matmul_zero_points(
    node: Node, bits: int, columns: int, blocks: int, element_type: str, out: Rewriter
) -> str:
    """Return one zero point for each block of each column, or `""` for the default."""
    zeros = node.input(3)
    if not zeros:
        return ""
    source = out.element_type(zeros)
    if source == "uint8":
        zeros = unpack(reshape(zeros, (columns, -1), out), bits, 2, element_type, out)
        if blocks * bits % 8:
            zeros = first_columns(zeros, blocks, 1, out)
    else:
        zeros = cast_between(zeros, source, element_type, out)
    return reshape(zeros, (columns, blocks, 1), out)


@adapter("MatMulBnb4", 1, 0, domain="com.microsoft")
def expand_matmul_bnb4(node: Node, out: Rewriter) -> None:
    """Rewrite as MatMul with weights that are unpacked, looked up and scaled."""
    out = out.for_opset(OPSET, "")
    for name in ("transB", "training_mode"):
        if node.attribute(name, default := int(name == "transB")) != default:
            reason = f"{name} is {node.attribute(name)}, which the CPU kernel ignores"
            raise CannotConvert(reason, "attribute.unsupported", subject=name)
    columns, length, block_size = (node.attribute(name) for name in ("N", "K", "block_size"))
    data, packed, largest = node.inputs
    count, element_type = columns * length, out.element_type(data)
    table = out.constant(FOUR_BIT_NUMBERS[node.attribute("quant_type")], element_type)
    codes = unpack(reshape(packed, (-1,), out), 4, 1, "float", out, high_first=True)
    numbers = out.emit("Gather", [table, out.cast(codes, "int64")], axis=0)
    blocks = out.emit("Expand", [reshape(largest, (-1, 1), out), out.int64([1, block_size])])
    factors = [first_columns(each, count, 0, out) for each in (numbers, reshape(blocks, (-1,), out))]
    weights = reshape(out.emit("Mul", factors), (columns, length), out)
    out.emit("MatMul", [data, out.emit("Transpose", [weights], perm=(1, 0))], node.outputs)


@adapter("GatherBlockQuantized", 1, 0, domain="com.microsoft")
def expand_gather_block_quantized(node: Node, out: Rewriter) -> None:
    """Rewrite as Gather from data, scales and zero points, and arithmetic that dequantizes the result."""
    out = out.for_opset(OPSET, "")
    data, indices, scales = node.inputs[:3]
    rank, bits, element_type = (
        out.rank(data),
        require_packed_bits(node.attribute("bits", 4)),
        out.element_type(scales),
    )
    gather_axis, axis = (
        node.attribute(name, default) % rank for name, default in (("gather_axis", 0), ("quantize_axis", 1))
    )
    is_packed = out.element_type(data) == "uint8"
    per_byte = 8 // bits if is_packed and axis == rank - 1 else 1
    known = out.known_dimension(data, axis)
    parts = packed = [data, *filter(None, [node.input(3)])]
    if not is_packed:
        # Gather does not support 4-bit integers.
        parts = [out.cast(each, element_type, opset=INT4_OPSET) for each in parts]
    parts = [*parts, scales]
    is_gathered_first = gather_axis != axis
    if is_gathered_first:
        parts = [out.emit("Gather", [each, indices], axis=gather_axis) for each in parts]
        added = out.rank(indices) - 1
        axis, rank = axis + added * (axis > gather_axis), rank + added
    if is_packed:
        rows = [out.known_dimension(each, -1) if is_gathered_first else -1 for each in packed]
        parts[:-1] = [
            unpack(each, bits, rank, element_type, out, row=row)
            for each, row in zip(parts[:-1], rows, strict=True)
        ]
    numbers, *zeros, scales = parts
    count = computed_dimension(numbers, axis, out) if known is None else known * per_byte
    blocks = block_indices(count, node.attribute("block_size", 128), out)
    scales, *zeros = (out.emit("Gather", [each, blocks], axis=axis) for each in (scales, *zeros))
    default = 2.0 ** (bits - 1) if is_packed else 0.0
    zero = zeros[0] if zeros else out.constant(default, element_type)
    factors = [out.emit("Sub", [numbers, zero]), scales]
    if is_gathered_first:
        out.emit("Mul", factors, node.outputs)
    else:
        out.emit("Gather", [out.emit("Mul", factors), indices], node.outputs, axis=gather_axis)
