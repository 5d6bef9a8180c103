"""Entries of tensors with external data."""

from __future__ import annotations

import pytest

from opshift.model.messages import StringStringEntryProto, TensorProto
from opshift.model.offloaded_tensors import ExternalData, byte_count, read_external_data


def _tensor(*entries: tuple[str, str]) -> TensorProto:
    return TensorProto(external_data=[StringStringEntryProto(key=key, value=value) for key, value in entries])


def test_reads_entries() -> None:
    tensor = _tensor(("location", "w.bin"), ("offset", "4096"), ("length", "8"), ("checksum", "ab"))
    assert read_external_data(tensor) == ExternalData("w.bin", "4096", "8", "ab")


def test_missing_entries_are_empty_and_unknown_ones_ignored() -> None:
    assert read_external_data(_tensor(("basepath", "/"))) == ExternalData()


def test_last_entry_for_a_key_wins() -> None:
    assert read_external_data(_tensor(("location", "a"), ("location", "b"))).location == "b"


def test_refuses_text_that_is_not_utf_8() -> None:
    data = _tensor(("location", "PLACE")).SerializeToString().replace(b"PLACE", b"\xff\xfeACE")
    with pytest.raises(UnicodeDecodeError):
        read_external_data(TensorProto.FromString(data))


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("4096", 4096), ("9" * 18, 10**18 - 1)])
def test_parses_byte_count(text: str, number: int) -> None:
    assert byte_count(text) == number


@pytest.mark.parametrize("text", ["", "-1", "1.5", " 1", "1_0", "٣", "9" * 19, "9" * 5000])
def test_rejects_byte_count(text: str) -> None:
    assert byte_count(text) is None
