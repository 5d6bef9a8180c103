"""Model versions: packed, unpacked, and by how much they rise."""

from __future__ import annotations

import onnx
import pytest

from opshift import UsageError, pack_version, unpack_version
from opshift.analysis.comparison.model_version import VersionBump, next_version, version_bump_between

VERSIONS = {
    "the example of ONNX": ("1.2.345", 0x0001000200000159),
    "only a major": ("1.0.0", 1 << 48),
    "only a minor": ("0.1.0", 1 << 32),
    "the largest parts that are positive": ("32767.65535.4294967295", (1 << 63) - 1),
    "the first negative one": ("32768.0.0", -(1 << 63)),
    "the largest": ("65535.65535.4294967295", -1),
    "no version": ("0", 0),
    "a simple number": ("7", 7),
    "the largest simple number": ("4294967295", 0xFFFFFFFF),
}


@pytest.mark.parametrize(("text", "packed"), VERSIONS.values(), ids=VERSIONS)
def test_a_version_is_packed_and_unpacked(text: str, packed: int) -> None:
    assert pack_version(text) == packed
    assert unpack_version(packed) == text


@pytest.mark.parametrize(("text", "packed"), VERSIONS.values(), ids=VERSIONS)
def test_a_model_can_hold_it(text: str, packed: int) -> None:
    model = onnx.ModelProto(model_version=pack_version(text))
    assert unpack_version(model.model_version) == text


def test_the_bits_may_be_read_without_a_sign() -> None:
    assert unpack_version(0xFFFF_FFFF_FFFF_FFFF) == "65535.65535.4294967295"
    assert unpack_version(1 << 63) == "32768.0.0"


NO_VERSIONS = {
    "nothing": "",
    "text": "new",
    "two parts": "1.2",
    "four parts": "1.2.3.4",
    "a pre-release": "1.2.3-rc.1",
    "build metadata": "1.2.3+5",
    "a leading v": "v1.2.3",
    "a leading zero": "1.02.3",
    "a negative part": "1.-2.3",
    "white space": " 1.2.3",
    "another script": "\u0661.\u0662.\u0663",
    "a major that is too large": "65536.0.0",
    "a minor that is too large": "1.65536.0",
    "a patch that is too large": "1.0.4294967296",
    "a simple number that is too large": "4294967296",
    "what a simple number could be": "0.0.5",
}


@pytest.mark.parametrize("text", NO_VERSIONS.values(), ids=NO_VERSIONS)
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as error:
        pack_version(text)
    assert repr(text) in error.value.reason
    assert error.value.remedy


@pytest.mark.parametrize("packed", [1 << 64, -(1 << 63) - 1])
def test_more_than_64_bits_are_refused(packed: int) -> None:
    with pytest.raises(UsageError, match="more than 64 bits"):
        unpack_version(packed)


RISES = {
    "no change": ("1.2.3", "1.2.3", VersionBump.NONE),
    "a patch": ("1.2.3", "1.2.4", VersionBump.PATCH),
    "a minor": ("1.2.3", "1.3.0", VersionBump.MINOR),
    "a major": ("1.2.3", "2.0.0", VersionBump.MAJOR),
    "a minor with a lower patch": ("1.2.3", "1.3.1", VersionBump.MINOR),
    "a major beyond the sign": ("32767.0.0", "32768.0.0", VersionBump.MAJOR),
    "down": ("1.2.3", "1.2.2", None),
    "down in the major, up in the minor": ("2.0.0", "1.9.0", None),
    "a simple number": ("3", "4", VersionBump.MAJOR),
    "the same simple number": ("3", "3", VersionBump.NONE),
    "a simple number down": ("3", "2", None),
    "from a simple number": ("3", "0.1.0", VersionBump.MAJOR),
    "to a simple number": ("0.1.0", "3", None),
    "the first version": ("0", "1.0.0", VersionBump.MAJOR),
}


@pytest.mark.parametrize(("old", "new", "rise"), RISES.values(), ids=RISES)
def test_by_how_much_a_version_rises(old: str, new: str, rise: VersionBump | None) -> None:
    assert version_bump_between(pack_version(old), pack_version(new)) == rise


@pytest.mark.parametrize(
    ("old", "rise", "lowest"),
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
def test_the_lowest_version_that_is_enough(old: str, rise: VersionBump, lowest: str) -> None:
    assert next_version(pack_version(old), rise) == lowest
    found = version_bump_between(pack_version(old), pack_version(lowest))
    assert found is not None
    assert found >= rise
