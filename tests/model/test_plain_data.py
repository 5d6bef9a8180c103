"""JSON of unknown origin: limits, and one kind of error."""

from __future__ import annotations

import json
import math

import pytest

from opshift.model import plain_data
from opshift.model.plain_data import PlainDataError, json_text, parse_json

INVALID = {
    "deep list": ("[" * 100_000, "levels deep"),
    "deep mapping": ('{"a":' * 100_000, "levels deep"),
    "deep and complete": ("[" * 65 + "]" * 65, "levels deep"),
    "deep in mapping": ('{"a":' * 65 + "1" + "}" * 65, "levels deep"),
    "large integer": ("1" + "0" * 30, "out of the range of 64 bits"),
    "long integer": ("9" * 1_000_000, "out of the range of 64 bits"),
    "negative integer": (str(-(2**63) - 1), "out of the range of 64 bits"),
    "NaN": ('{"a": NaN}', "NaN is not a number"),
    "Infinity": ("[-Infinity]", "-Infinity is not a number"),
    "repeated key": ('{"a": 1, "b": 2, "a": 3}', "key 'a' is repeated"),
    "half of a surrogate pair": (r'["\ud800"]', "not valid Unicode"),
    "half of a surrogate pair in a key": (r'{"\udfff": 1}', "not valid Unicode"),
    "text": ("nothing", "is not JSON"),
    "empty": ("", "is not JSON"),
}


@pytest.mark.parametrize(("text", "reason"), INVALID.values(), ids=INVALID)
def test_refuses_invalid_json(text: str, reason: str) -> None:
    with pytest.raises(PlainDataError, match=reason):
        parse_json(text.encode())


def test_refuses_bytes_that_are_no_text() -> None:
    with pytest.raises(PlainDataError, match="is not JSON"):
        parse_json(b'["\xff"]')


def test_refuses_large_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_data, "MAX_FILE_BYTES", 3)
    with pytest.raises(PlainDataError, match="more than 3 bytes"):
        parse_json(b"[1,2]")


@pytest.mark.parametrize("data", [[-(2**63), 2**64 - 1], {"a": [[1.5, None, True]]}, "é𝒳", []], ids=str)
def test_reads_json(data: object) -> None:
    assert parse_json(json.dumps(data).encode()) == data


@pytest.mark.parametrize(
    "data",
    [
        ["\ue0001e999", "\ue000-1e999", math.inf, -math.inf],
        {"Infinity": "-Infinity", 'a"Infinity': [math.inf, '\\"NaN', "NaN"]},
        ["\\", math.inf, "\\\\"],
    ],
    ids=["private-use characters", "names of numbers", "backslashes"],
)
@pytest.mark.parametrize("indent", [None, 1])
def test_writes_infinity_and_any_text(data: object, indent: int | None) -> None:
    text = json_text(data, indent)  # type: ignore[arg-type]
    assert parse_json(text.encode()) == data
    assert "1e999" in text


def test_refuses_to_write_nan() -> None:
    with pytest.raises(ValueError, match="contains NaN, which JSON cannot express"):
        json_text([math.nan])
