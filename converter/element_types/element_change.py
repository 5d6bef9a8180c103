"""Conversion of the elements of tensors from one type to another, block by block."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import copysign

from opshift.converter.internal_types.float_formats import widened_floats
from opshift.model.element_types import BY_NAME, element_bits
from opshift.model.errors import CannotConvert
from opshift.model.shared_data import FrozenRecord

LIMITS = {"float16": 65504.0, "float": 3.4028234663852886e38}
"""Largest finite number of each type to which a conversion narrows."""

SMALLEST = {"float16": 2.0**-24, "float": 2.0**-149}
"""Smallest positive number of each such type."""

SMALL_HEADS = bytes(byte for byte in range(256) if byte & 0x7F < 0x47)
"""First bytes, that is the last ones in memory, of numbers that fit in the next narrower type.

They have the sign and seven bits of the exponent: below 0x47, float and bfloat16 numbers are below 2 ** 15,
and double ones below 2 ** 113.
"""


def out_of_range(value: float, old: str, new: str) -> CannotConvert:
    """Return the error about a number out of the range of the new type."""
    reason = f"a constant has the value {value:.9g}, which {new} cannot represent"
    remedy = f"keep {old}, or allow clamp: the nearest number of {new} replaces it"
    return CannotConvert(reason, "value.overflow", subject=new, remedy=remedy)


class ElementChange(FrozenRecord):
    """Conversion of elements in the form of `raw_data`, half to even.

    Infinity and NaN stay. A number other than zero stays different from zero: it may be a divisor. A number
    out of the range of the new type becomes the nearest one with `clamps`, else an error.
    """

    old: str
    new: str
    clamps: bool = False

    @property
    def sizes(self) -> tuple[int, int]:
        """Bytes of an element before and after."""
        before, after = (element_bits(BY_NAME[each]) // 8 for each in (self.old, self.new))
        return before, after

    def new_size(self, size: int) -> int:
        """Return the number of bytes after the conversion of a number of bytes."""
        before, after = self.sizes
        return size // before * after

    def convert(self, data: bytes) -> bytes:
        """Return converted elements.

        Raises:
            CannotConvert: a number is out of the range of the new type.
        """
        if (self.old, self.new) == ("bfloat16", "float"):
            return widened_floats(data, len(data) // 2, "bfloat16", "float") or b""
        numbers = self._numbers(data)
        layout = f"<{len(numbers)}{BY_NAME[self.new].code}"
        try:
            converted = struct.pack(layout, *numbers)
        except (OverflowError, struct.error):
            converted = struct.pack(layout, *map(self._in_range, numbers))
        return self._without_new_zeros(numbers, converted) if self.new in SMALLEST else converted

    def require_range(self, data: bytes) -> None:
        """Raise the error of `convert`."""
        if self.clamps or self.new not in LIMITS:
            return
        width = self.sizes[0]
        if (self.old, self.new) == ("double", "float16") or data[width - 1 :: width].translate(
            None, SMALL_HEADS
        ):
            self.convert(data)

    def _numbers(self, data: bytes) -> Sequence[float]:
        old = self.old
        if old == "bfloat16":
            data, old = widened_floats(data, len(data) // 2, "bfloat16", "float") or b"", "float"
        kind = BY_NAME[old]
        return struct.unpack(f"<{len(data) // (element_bits(kind) // 8)}{kind.code}", data)

    def _in_range(self, number: float) -> float:
        """Return a number, or the nearest one in the range of the new type."""
        try:
            struct.pack(f"<{BY_NAME[self.new].code}", number)
        except OverflowError:
            if not self.clamps:
                raise out_of_range(number, self.old, self.new) from None
            return copysign(LIMITS[self.new], number)
        return number

    def _without_new_zeros(self, numbers: Sequence[float], converted: bytes) -> bytes:
        """Replace zeros that were other numbers by the smallest numbers."""
        zero = bytes(self.sizes[1] - 1)
        if zero + b"\0" not in converted and zero + b"\x80" not in converted:  # of most blocks
            return converted
        code = BY_NAME[self.new].code
        found = struct.unpack(f"<{len(numbers)}{code}", converted)
        if found.count(0) == numbers.count(0):
            return converted
        smallest = SMALLEST[self.new]
        pairs = zip(numbers, found, strict=True)
        fixed = [copysign(smallest, old) if old and not new else new for old, new in pairs]
        return struct.pack(f"<{len(fixed)}{code}", *fixed)
