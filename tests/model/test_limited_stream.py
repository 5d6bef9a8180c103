"""Streams that are not models, declare huge sizes, or do not end."""

from collections.abc import Iterable
from itertools import repeat

import pytest

from opshift.model import stream_limits
from opshift.model.errors import InvalidModel, UsageError
from opshift.model.messages import ModelProto
from opshift.model.stream_limits import FREE_BYTES, LIMIT_VARIABLE, limited
from opshift.model.wire_format import field_head

BLOCK = 1 << 20


def model(size: int) -> bytes:
    return ModelProto(ir_version=8, doc_string="d" * size).SerializeToString()


def blocks(data: bytes, size: int = 1_000) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


@pytest.mark.parametrize("size", [0, 1, 17, 100_000])
@pytest.mark.parametrize("step", [1, 7, 4_096])
def test_yields_all_of_a_model(size: int, step: int) -> None:
    assert b"".join(limited(blocks(model(size), step), "m")) == model(size)


def test_reads_a_part_of_other_content(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_limits, "MAX_UNREADABLE", 5 * BLOCK)
    assert sum(map(len, limited(repeat(bytes(BLOCK)), "m"))) == 6 * BLOCK


STREAMS = {
    "a field with a huge size": ([field_head(7, 1 << 40) + bytes(100)], None, "has more than 5,000,000"),
    "many blocks": (repeat(model(BLOCK)), None, "has more than 5,000,000"),
    "compressed": (repeat(model(BLOCK)), 1_000, "more than 100 times"),
    "compressed, of unknown size": (repeat(model(BLOCK)), 0, "more than 100 times"),
}


@pytest.mark.parametrize(("stream", "compressed", "message"), STREAMS.values(), ids=STREAMS)
def test_refuses(
    stream: Iterable[bytes], compressed: int | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "5000000")
    with pytest.raises(InvalidModel, match=message):
        sum(map(len, limited(stream, "m", compressed)))


def test_accepts_small_compressed_content() -> None:
    assert b"".join(limited(blocks(model(FREE_BYTES // 2)), "m", 10)) == model(FREE_BYTES // 2)


@pytest.mark.parametrize("text", ["", "-1", "1e9", "9" * 30])
def test_limit_is_a_number(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, text)
    with pytest.raises(UsageError, match="expected a number of bytes"):
        next(limited([b""], "m"))
