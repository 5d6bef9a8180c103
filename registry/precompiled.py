"""Read operator definitions that were parsed and validated in advance.

`tools/generate.py` writes `compiled.json`, which saves a conversion the import of pydantic and of a YAML
parser. An entry is keyed by a checksum of its source files: if they differ, the files themselves are read.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Final, TypeVar

from opshift.opsets import OPSETS
from opshift.registry.record import Record

PRECOMPILED_FILE: Final = Path(__file__).with_name("compiled.json")

CLASS_KEY: Final = ""
"""JSON key of a record's class name; empty, so it cannot collide with a field or an attribute name."""

Content = TypeVar("Content")


def load_precompiled(path: Path, sources: Iterable[Path], read: Callable[[], Content]) -> Content:
    """Return the precompiled content of a file, or the result of `read` if there is no entry for it.

    Args:
        path: the file.
        sources: other files that `read` depends on.
        read: reads and validates the file.
    """
    text = _entry(entry_key(path, sources)) if path.is_relative_to(OPSETS) else None
    if text is None:
        return read()
    classes = {kind.__name__: kind for kind in _record_classes(Record)}
    content: Content = json.loads(text, object_hook=lambda data: _decode(data, classes))
    return content


def entry_key(path: Path, sources: Iterable[Path]) -> str:
    """Return the key of an entry: the file's path and a checksum of the file and its sources."""
    content = b"\0".join(file.read_bytes() for file in (path, *sources) if file.exists())
    return f"{path.relative_to(OPSETS).as_posix()} {zlib.crc32(content):08x}"


def encode_record(record: Record) -> dict[str, object]:
    """Return a record as a JSON object: its class name and the fields that differ from their defaults."""
    values = {field: getattr(record, field.name) for field in fields(record)}
    return {
        CLASS_KEY: type(record).__name__,
        **{f.name: v for f, v in values.items() if v not in (f.default, {})},
    }


def _decode(data: dict[str, object], classes: dict[str, type[Record]]) -> object:
    """Decode an object that `encode_record` encoded, and turn lists into tuples."""
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}
    class_name = values.pop(CLASS_KEY, None)
    return values if class_name is None else classes[str(class_name)](**values)


def _record_classes(base: type[Record]) -> Iterator[type[Record]]:
    for each in base.__subclasses__():
        yield each
        yield from _record_classes(each)


def _entry(name: str) -> str | None:
    """Return the JSON text of an entry, or `None`."""
    # Each entry has a line of its own, so one entry is found without parsing the whole file.
    key = f'\n "{name}": '
    start = _text().find(key)
    return None if start < 0 else _text()[start + len(key) : _text().find("\n", start + 1)].rstrip(",")


@cache
def _text() -> str:
    return PRECOMPILED_FILE.read_text("ascii") if PRECOMPILED_FILE.exists() else ""
