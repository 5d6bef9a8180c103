"""Credentials in URLs, which nothing shows."""

import json

import pytest

from opshift.model.errors import OpshiftError, Place
from opshift.model.locations import json_without_secrets, without_secrets

SHOWN = {
    "http://host/m.onnx": "http://host/m.onnx",
    "https://bob:pass@host:8080/a@b.onnx": "https://***@host:8080/a@b.onnx",
    "https://token@host/m.onnx": "https://***@host/m.onnx",
    "https://bob:pa/ss@host/m.onnx": "https://***@host/m.onnx",
    "http:/bob:pass@host/m.onnx": "http:/***@host/m.onnx",
    "s3://bucket/a@b.onnx": "s3://bucket/a@b.onnx",
    "http://[::1]:80/m.onnx": "http://[::1]:80/m.onnx",
    "https://h/m?v=2&X-Amz-Signature=abcdef&key=1": "https://h/m?v=2&X-Amz-Signature=***&key=***",
    "https://h/m?se=2026-01-01T00%3A00Z&sig=x": "https://h/m?se=***&sig=***",
    "s3://b/k?versionId=3HL4kqtJvjVBH40Nrjfkd": "s3://b/k?versionId=3HL4kqtJvjVBH40Nrjfkd",
    "https://h/m?0123456789abcdef": "https://h/m?***",
    "cannot read 'http://a:b@h/m': refused": "cannot read 'http://***@h/m': refused",
    '{"input": "http://a:b@h/m", "x": 1}': '{"input": "http://***@h/m", "x": 1}',
    "C:/models/a@b.onnx": "C:/models/a@b.onnx",
    "a: b@c": "a: b@c",
}


@pytest.mark.parametrize(("text", "expected"), SHOWN.items(), ids=SHOWN)
def test_hides_credentials(text: str, expected: str) -> None:
    assert without_secrets(text) == expected
    assert without_secrets(expected) == expected


DATA: dict[str, tuple[object, object]] = {
    "quoted URL": ('"https://h/m?sig=x"', '"https://h/m?sig=***"'),
    "quote in a password": ('http://a:b"c@h', "http://***@h"),
    "backslash": ("https://h/m?sig=x\\", "https://h/m?sig=***"),
    "key": ({"http://a:b@h": 1}, {"http://***@h": 1}),
    "nested values": (
        {"a": [("http://a:b@h", 1.5), {"b": "s3://a@h"}]},
        {"a": [["http://***@h", 1.5], {"b": "s3://***@h"}]},
    ),
    "password and address in two strings": (["http://h:x", "c@d"], ["http://h:x", "c@d"]),
    "other values": ({"a": None, "b": True, "c": [1, "ü"]}, {"a": None, "b": True, "c": [1, "ü"]}),
}


@pytest.mark.parametrize(("data", "expected"), DATA.values(), ids=DATA)
def test_hides_credentials_in_json(data: object, expected: object) -> None:
    for indent in (None, 2):
        text = json_without_secrets(data, indent=indent)
        assert text.isascii()
        assert json.loads(text) == expected


def test_takes_linear_time() -> None:
    urls = ("a@", "http://"), ("&", "http://h?"), ("a:b", "http://"), ("", "http://a:'b")
    parts = ("a", ":/"), ("a:/", ""), ("http://a:", "b"), ("http://a:b ", ""), ("a:/b:", "x")
    for text in (f"{start}{part * 100_000}" for part, start in (*urls, *parts)):
        without_secrets(text)  # quadratic time would take minutes


def test_errors_hide_credentials() -> None:
    url = "http://bob:secret@host/m.onnx"
    error = OpshiftError(f"cannot read {url}", place=Place(file=url), remedy=f"open {url}")
    for text in (str(error), repr(error.as_dict())):
        assert "secret" not in text
        assert text.count("***@host") == 3
