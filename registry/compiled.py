"""The project's own definitions as they were read and checked in advance.

`compiled.json` beside this file is written by `tools/generate.py`. It saves a conversion to import pydantic
and a YAML parser. It is a shortcut only: an entry counts for the very bytes that it was made of; where the
files hold others, they are read.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

from opshift.registry.definition_files import OPSETS
from opshift.registry.record import Record

FILE: Final = Path(__file__).with_name("compiled.json")
KIND: Final = ""
"""The key of the name of a record's class; no field and no attribute of an operator is called this."""
Content = TypeVar("Content")


def compiled(path: Path, sources: Iterable[Path], read: Callable[[], Content]) -> Content:
    """What `read` makes of a file and of the others that it looks at; it is called if that is not at hand."""
    text = _entry(name_of(path, sources)) if path.is_relative_to(OPSETS) else None
    if text is None:
        return read()
    kinds = {each.__name__: each for each in _kinds(Record)}
    found: Content = json.loads(text, object_hook=lambda data: _content(data, kinds))
    return found


def name_of(path: Path, sources: Iterable[Path]) -> str:
    """The name of an entry: the file's, and what tells its bytes and those of the others from any others."""
    held = b"\0".join(each.read_bytes() for each in (path, *sources) if each.exists())
    return f"{path.relative_to(OPSETS).as_posix()} {zlib.crc32(held):08x}"


def stated(record: Any) -> dict[str, Any]:
    """A record as JSON holds it: with the name of its class, and without what is at its default."""
    held = {each: getattr(record, each.name) for each in fields(record)}
    return {KIND: type(record).__name__, **{f.name: v for f, v in held.items() if v not in (f.default, {})}}


def _content(data: dict[str, Any], kinds: dict[str, type[Record]]) -> Any:
    """The inverse of `stated`, and lists are tuples again."""
    held: dict[str, Any] = {
        key: tuple(each) if isinstance(each, list) else each for key, each in data.items()
    }
    kind = held.pop(KIND, None)
    return held if kind is None else kinds[kind](**held)


def _kinds(base: type[Record]) -> Iterator[type[Record]]:
    for each in base.__subclasses__():
        yield each
        yield from _kinds(each)


def _entry(name: str) -> str | None:
    """The content of an entry, which has a line of its own."""
    key = f'\n "{name}": '
    start = _text().find(key)
    return None if start < 0 else _text()[start + len(key) : _text().find("\n", start + 1)].rstrip(",")


@cache
def _text() -> str:
    return FILE.read_text("ascii") if FILE.exists() else ""
