"""`ModelProto.model_version`: a semantic version packed into 64 bits, or a simple number (ONNX Versioning).

MAJOR occupies the upper 16 bits, MINOR the next 16 and PATCH the lower 32: 1.2.345 is 0x0001000200000159. If
the upper 32 bits are zero, the value is a simple number, so a semantic version cannot start with 0.0.
"""

import re
from enum import IntEnum
from numbers import Integral
from typing import NamedTuple

from opshift.model.errors import UsageError, require_type

MAX_PART = 0xFFFF
"""Maximum of MAJOR and MINOR."""

MAX_PATCH = 0xFFFFFFFF
"""Maximum of PATCH and of simple numbers."""

SIGN_BIT = 1 << 63
"""Sign bit of the field, which is an int64."""

UINT64_COUNT = 1 << 64
"""Number of 64-bit values, to convert between signed and unsigned numbers."""

_SEMANTIC = re.compile(r"(0|[1-9]\d{0,4})\.(0|[1-9]\d{0,4})\.(0|[1-9]\d{0,9})", re.ASCII)

_SIMPLE = re.compile(r"0|[1-9]\d{0,9}", re.ASCII)

_EXAMPLE = "write it as 1.2.345, with up to 65535.65535.4294967295, or as a simple number up to 4294967295"


class VersionBump(IntEnum):
    """Most significant part of a version that increases; `NONE` for equal versions."""

    NONE = 0
    PATCH = 1
    MINOR = 2
    MAJOR = 3


class SemVer(NamedTuple):
    """Semantic version: MAJOR, MINOR and PATCH."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


def pack_version(text: str) -> int:
    """Return the value of `model_version` for a version such as `1.2.345` or a simple number such as `7`.

    Versions from 32768.0.0 onwards are negative, because the field is signed.

    Raises:
        UsageError: the text is not a version or starts with 0.0, or a part is too large.
    """
    require_type("text", text, str, "a version such as '1.2.3'")
    if _SIMPLE.fullmatch(text) and int(text) <= MAX_PATCH:
        return int(text)
    match = _SEMANTIC.fullmatch(text)
    major, minor, patch = map(int, match.groups()) if match else (MAX_PART + 1, 0, 0)
    if max(major, minor) > MAX_PART or patch > MAX_PATCH:
        raise UsageError(f"{text!r} is not a model version", remedy=_EXAMPLE)
    if major == minor == 0:
        reason = f"{text!r} would be stored as the simple number {patch}"
        raise UsageError(reason, remedy="start at 0.1.0")
    packed = major << 48 | minor << 32 | patch
    return packed - UINT64_COUNT if packed >= SIGN_BIT else packed


def unpack_version(packed: int) -> str:
    """Return the text of a packed version, such as `1.2.345` or `7`.

    Raises:
        UsageError: the argument is not an integer, or has more than 64 bits.
    """
    require_type("packed", packed, Integral, "the value of model_version")
    packed = int(packed)  # numpy integers have fixed widths
    if not -SIGN_BIT <= packed < UINT64_COUNT:
        raise UsageError(f"{packed} has more than 64 bits", remedy="pass the value of model_version")
    return str(_read_version(packed))


def _read_version(packed: int) -> SemVer | int:
    """Return a packed version as a SemVer, or as an integer if it is a simple number."""
    bits = packed % UINT64_COUNT
    if bits <= MAX_PATCH:
        return bits
    return SemVer(bits >> 48, bits >> 32 & MAX_PART, bits & MAX_PATCH)


def version_bump_between(old: int, new: int) -> VersionBump | None:
    """Return the most significant part that increases; `None` if the new packed version is lower.

    A step from a simple number, or to one, counts as a MAJOR increase.
    """
    before, after = _read_version(old), _read_version(new)
    if new % UINT64_COUNT < old % UINT64_COUNT:
        return None
    if old == new:
        return VersionBump.NONE
    if isinstance(before, int) or isinstance(after, int) or after.major > before.major:
        return VersionBump.MAJOR
    return VersionBump.MINOR if after.minor > before.minor else VersionBump.PATCH


def next_version(packed: int, rise: VersionBump) -> str:
    """Return the lowest version that increases `rise`, or `packed` plus 1 for a simple number.

    For `NONE`, return the same version.
    """
    before = _read_version(packed)
    if isinstance(before, int):
        return str(before + (rise > VersionBump.NONE))
    steps = {
        VersionBump.NONE: before,
        VersionBump.PATCH: before._replace(patch=before.patch + 1),
        VersionBump.MINOR: SemVer(before.major, before.minor + 1, 0),
        VersionBump.MAJOR: SemVer(before.major + 1, 0, 0),
    }
    return str(steps[rise])
