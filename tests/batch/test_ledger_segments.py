"""Ledgers in stores: segments that are read in order, and replaced after a complete run."""

from __future__ import annotations

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from opshift.batch import ledger as ledger_module
from opshift.batch.file_states import FileState, are_unchanged, full_name, states_of
from opshift.batch.ledger import LedgerSegments
from opshift.stores.list_objects import objects_below
from opshift.stores.uploads import remove_object, write_object

LEDGER = "memory://out/opshift-ledger"


@pytest.fixture(autouse=True)
def _empty_store() -> None:
    MemoryFileSystem.store.clear()


def stored_lines(*lines: bytes) -> list[bytes]:
    """Append lines in one run, and return those that the next run reads."""
    ledger = LedgerSegments(LEDGER)
    assert not list(ledger.read()) or lines
    for line in lines:
        ledger.append(line)
    ledger.close()
    return list(LedgerSegments(LEDGER).read())


def test_lines_of_runs_are_read_in_their_order() -> None:
    assert stored_lines() == []
    assert stored_lines(b"1\n", b"2\n") == [b"1\n", b"2\n"]
    assert stored_lines(b"3\n") == [b"1\n", b"2\n", b"3\n"]
    assert len(list(objects_below(LEDGER))) == 2


def test_segments_are_written_by_time_and_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "MAX_SEGMENT", 4)
    ledger = LedgerSegments(LEDGER)
    ledger.append(b"1\n")
    assert not list(LedgerSegments(LEDGER).read())
    ledger.append(b"2\n")
    assert list(LedgerSegments(LEDGER).read()) == [b"1\n", b"2\n"]
    monkeypatch.setattr(ledger_module, "SEGMENT_SECONDS", 0.0)
    ledger.append(b"3\n")
    assert list(LedgerSegments(LEDGER).read())[2:] == [b"3\n"]


def test_replaced_lines_are_removed_but_not_those_of_another_run() -> None:
    stored_lines(b"1\n")
    ledger, other = LedgerSegments(LEDGER), LedgerSegments(LEDGER)
    assert list(ledger.read()) == [b"1\n"]
    other.append(b"other\n")
    other.close()
    ledger.append(b"2\n")
    ledger.replace([b"2\n"])
    ledger.close()
    assert sorted(LedgerSegments(LEDGER).read()) == [b"2\n", b"other\n"]


def test_other_objects_in_the_folder_are_ignored() -> None:
    write_object(f"{LEDGER}/notes.txt", b"mine\n")
    assert stored_lines(b"1\n") == [b"1\n"]


def test_state_of_an_object_changes_with_its_content() -> None:
    location = "memory://zoo/model.onnx"
    write_object(location, b"1")
    states = states_of([location])
    assert full_name(location) == location
    assert are_unchanged(states)
    write_object(location, b"22")
    assert not are_unchanged(states)
    remove_object(location)
    remove_object(location)
    assert not are_unchanged(states)
    assert not are_unchanged({"unknown://host": FileState("", "")})
    with pytest.raises(FileNotFoundError, match="No such file"):
        states_of([location])
