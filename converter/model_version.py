"""`ModelProto.model_version`: a semantic version packed into 64 bits, or a simple number (Versioning).

MAJOR takes the upper 16 bits, MINOR the next 16 and PATCH the lower 32: 1.2.345 is 0x0001000200000159. A
number whose upper 32 bits are zero is a simple one, so no semantic version starts with 0.0.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import NamedTuple

from opshift.converter.errors import UsageError

HIGHEST_PART = 0xFFFF
HIGHEST_PATCH = 0xFFFFFFFF
SIGN = 1 << 63
WHOLE = 1 << 64
_SEMANTIC = re.compile(r"(0|[1-9]\d{0,4})\.(0|[1-9]\d{0,4})\.(0|[1-9]\d{0,9})", re.ASCII)
_SIMPLE = re.compile(r"0|[1-9]\d{0,9}", re.ASCII)
_EXAMPLE = "write it as 1.2.345, with up to 65535.65535.4294967295, or as a simple number up to 4294967295"


class Rise(IntEnum):
    """By how much a version rises."""

    NONE = 0
    PATCH = 1
    MINOR = 2
    MAJOR = 3


class SemVer(NamedTuple):
    """MAJOR, MINOR and PATCH."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


def pack_version(text: str) -> int:
    """The number that `model_version` holds for `1.2.345`, or for a simple number such as `7`.

    It is negative from 32768.0.0 on, as the field is signed.

    Raises:
        UsageError: the text is neither, a part is too large, or it starts with 0.0.
    """
    if _SIMPLE.fullmatch(text) and int(text) <= HIGHEST_PATCH:
        return int(text)
    found = _SEMANTIC.fullmatch(text)
    parts = SemVer(*map(int, found.groups())) if found else SemVer(0, 0, 0)
    if max(parts.major, parts.minor) > HIGHEST_PART or parts.patch > HIGHEST_PATCH:
        found = None
    if found is None:
        raise UsageError(f"{text!r} is no model version", remedy=_EXAMPLE)
    if parts.major == parts.minor == 0:
        raise UsageError(f"{text!r} cannot be told from a simple number", remedy="start at 0.1.0")
    packed = parts.major << 48 | parts.minor << 32 | parts.patch
    return packed - WHOLE if packed >= SIGN else packed


def unpack_version(packed: int) -> str:
    """`1.2.345` or `7`, for the number in `model_version`.

    Raises:
        UsageError: it has more than 64 bits.
    """
    if not -SIGN <= packed < WHOLE:
        raise UsageError(f"{packed} has more than 64 bits", remedy="give the number in model_version")
    return str(read_version(packed))


def read_version(packed: int) -> SemVer | int:
    """The semantic version, or the simple number."""
    bits = packed % WHOLE
    if bits <= HIGHEST_PATCH:
        return bits
    return SemVer(bits >> 48, bits >> 32 & HIGHEST_PART, bits & HIGHEST_PATCH)


def rise_between(old: int, new: int) -> Rise | None:
    """By how much one packed version is above another; `None` if it is below.

    A simple number that rises, or that a semantic version follows, rises enough for everything.
    """
    before, after = read_version(old), read_version(new)
    if new % WHOLE < old % WHOLE:
        return None
    if old == new:
        return Rise.NONE
    if isinstance(before, int) or isinstance(after, int):
        return Rise.MAJOR
    if after.major > before.major:
        return Rise.MAJOR
    return Rise.MINOR if after.minor > before.minor else Rise.PATCH


def next_version(packed: int, rise: Rise) -> str:
    """The lowest version that is above another by `rise`."""
    before = read_version(packed)
    if isinstance(before, int):
        return str(before + (rise > Rise.NONE))
    steps = {
        Rise.NONE: before,
        Rise.PATCH: before._replace(patch=before.patch + 1),
        Rise.MINOR: SemVer(before.major, before.minor + 1, 0),
        Rise.MAJOR: SemVer(before.major + 1, 0, 0),
    }
    return str(steps[rise])
