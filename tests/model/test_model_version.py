"""Model versions: packing, unpacking, and the size of an increase."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from opshift import UsageError, pack_version, unpack_version
from opshift.model.model_version import VersionBump, next_version, version_bump_between

VERSIONS = {
    "example of ONNX": ("1.2.345", 0x0001000200000159),
    "major only": ("1.0.0", 1 << 48),
    "minor only": ("0.1.0", 1 << 32),
    "largest positive value": ("32767.65535.4294967295", (1 << 63) - 1),
    "first negative value": ("32768.0.0", -(1 << 63)),
    "largest value": ("65535.65535.4294967295", -1),
    "no version": ("0", 0),
    "a simple number": ("7", 7),
    "the largest simple number": ("4294967295", 0xFFFFFFFF),
}


@pytest.mark.parametrize(("text", "packed"), VERSIONS.values(), ids=VERSIONS)
def test_packs_and_unpacks_versions(text: str, packed: int) -> None:
    assert pack_version(text) == packed
    assert unpack_version(packed) == text
    assert unpack_version(np.int64(packed)) == text  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "packed"), VERSIONS.values(), ids=VERSIONS)
def test_packed_version_fits_into_a_model(text: str, packed: int) -> None:
    model = onnx.ModelProto(model_version=pack_version(text))
    assert unpack_version(model.model_version) == text


def test_unpacks_unsigned_values() -> None:
    assert unpack_version(0xFFFF_FFFF_FFFF_FFFF) == "65535.65535.4294967295"
    assert unpack_version(1 << 63) == "32768.0.0"


INVALID_VERSIONS = {
    "empty": "",
    "text": "new",
    "two parts": "1.2",
    "four parts": "1.2.3.4",
    "pre-release": "1.2.3-rc.1",
    "build metadata": "1.2.3+5",
    "leading v": "v1.2.3",
    "leading zero": "1.02.3",
    "negative part": "1.-2.3",
    "white space": " 1.2.3",
    "digits of another script": "\u0661.\u0662.\u0663",
    "major too large": "65536.0.0",
    "minor too large": "1.65536.0",
    "patch too large": "1.0.4294967296",
    "simple number too large": "4294967296",
    "simple number in three parts": "0.0.5",
}


@pytest.mark.parametrize("text", INVALID_VERSIONS.values(), ids=INVALID_VERSIONS)
def test_rejects_invalid_versions(text: str) -> None:
    with pytest.raises(UsageError) as error:
        pack_version(text)
    assert repr(text) in error.value.reason
    assert error.value.remedy


@pytest.mark.parametrize("packed", [1 << 64, -(1 << 63) - 1])
def test_rejects_values_above_64_bits(packed: int) -> None:
    with pytest.raises(UsageError, match="more than 64 bits"):
        unpack_version(packed)


BUMPS = {
    "no change": ("1.2.3", "1.2.3", VersionBump.NONE),
    "patch": ("1.2.3", "1.2.4", VersionBump.PATCH),
    "minor": ("1.2.3", "1.3.0", VersionBump.MINOR),
    "major": ("1.2.3", "2.0.0", VersionBump.MAJOR),
    "minor with a lower patch": ("1.2.3", "1.3.1", VersionBump.MINOR),
    "major beyond the sign bit": ("32767.0.0", "32768.0.0", VersionBump.MAJOR),
    "lower patch": ("1.2.3", "1.2.2", None),
    "lower major, higher minor": ("2.0.0", "1.9.0", None),
    "a simple number": ("3", "4", VersionBump.MAJOR),
    "same simple number": ("3", "3", VersionBump.NONE),
    "lower simple number": ("3", "2", None),
    "simple number to three parts": ("3", "0.1.0", VersionBump.MAJOR),
    "three parts to simple number": ("0.1.0", "3", None),
    "first version": ("0", "1.0.0", VersionBump.MAJOR),
}


@pytest.mark.parametrize(("old", "new", "bump"), BUMPS.values(), ids=BUMPS)
def test_classifies_version_bumps(old: str, new: str, bump: VersionBump | None) -> None:
    assert version_bump_between(pack_version(old), pack_version(new)) == bump


@pytest.mark.parametrize(
    ("old", "bump", "lowest"),
    [
        ("1.2.3", VersionBump.NONE, "1.2.3"),
        ("1.2.3", VersionBump.PATCH, "1.2.4"),
        ("1.2.3", VersionBump.MINOR, "1.3.0"),
        ("1.2.3", VersionBump.MAJOR, "2.0.0"),
        ("3", VersionBump.NONE, "3"),
        ("3", VersionBump.PATCH, "4"),
        ("0", VersionBump.MAJOR, "1"),
    ],
)
def test_returns_the_lowest_sufficient_version(old: str, bump: VersionBump, lowest: str) -> None:
    assert next_version(pack_version(old), bump) == lowest
    actual = version_bump_between(pack_version(old), pack_version(lowest))
    assert actual is not None
    assert actual >= bump
