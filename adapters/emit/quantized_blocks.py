"""Weights quantized in blocks: several numbers in each byte, with a scale for each block of numbers."""

from opshift.adapters import CannotConvert, Rewriter
from opshift.adapters.emit.expression import Expression
from opshift.adapters.emit.shapes import (
    Dimension,
    dimension_tensor,
    index_range,
    product_of_dimensions,
    reshape,
)

PACKED_BITS = (2, 4, 8)
"""Numbers of bits that divide a byte."""


def require_packed_bits(bits: int) -> int:
    """Return the number of bits of packed numbers; refuse numbers that bytes divide."""
    if bits not in PACKED_BITS:
        reason = f"numbers of {bits} bits are spread over bytes"
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
    """Return the numbers of bytes as a floating-point type; the last dimension grows.

    `row` is the number of bytes in the last dimension, `None` if it is unknown; -1 if there are bytes.
    The lowest bits of a byte hold its first number, or its last with `high_first`. Floating-point
    arithmetic is exact on bytes, and runtimes without shifts of bytes support it.
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
    """Return the block of each of `count` numbers."""
    if isinstance(count, int):
        out.require_elements(count)
        return out.int64([index // block_size for index in range(count)])
    return out.emit("Div", [index_range(dimension_tensor(count, out), out), out.int64(block_size)])


def first_columns(value: str, count: Dimension, axis: int, out: Rewriter) -> str:
    """Return the first elements of a dimension; packed rows are padded to whole bytes."""
    return out.emit("Slice", [value, out.int64([0]), dimension_tensor(count, out), out.int64([axis])])
