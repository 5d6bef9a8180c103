"""Compile source files to JSON, so that a conversion imports no pydantic, YAML parser or networkx.

The build hook in `hatch_build.py` adds the compiled files to a wheel. In a checkout, each text is compiled on
first use and stored in the user's cache (`$XDG_CACHE_HOME/opshift` or `~/.cache/opshift`), in a file that is
named after a digest of the sources.
"""

import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from opshift.model.errors import CannotWrite
from opshift.model.shared_data import ReadOnlyDict
from opshift.opsets import OPSETS
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.record import DETAILS, DETAILS_LOADER, Record

CLASS_KEY: Final = ""
"""JSON key of a record's class name; empty, so that it is not the name of a field or attribute."""

_SEPARATOR: Final = ",\t"
"""Separator of an operator and its details: valid between JSON items, but in strings tabs are escaped."""

MAX_CACHED_STATES: Final = 8
"""Maximum number of cached files per text: several checkouts with different sources may share a cache."""

Content = TypeVar("Content")


class CompiledFile:
    """JSON texts that are compiled from source files; a text is compiled again if a source changes.

    A wheel has a file with one line per text at `path`. In a checkout, all texts also depend on the files and
    folders in `dependencies`, and on the dependencies of `base`; in a wheel, these files do not change. With
    `by_content`, a slower comparison of file contents lets several checkouts share the cached texts.
    """

    def __init__(
        self,
        path: Path,
        dependencies: Iterable[Path],
        base: "CompiledFile | None" = None,
        *,
        by_content: bool = False,
    ) -> None:
        self._path = path
        self._dependencies = tuple(dependencies)
        self._base = base
        self._state_of_file = _content_state if by_content else _file_state
        self._recorded: dict[str, str] | None = None

    def text(self, name: str, sources: Sequence[Path], build: Callable[[], str]) -> str:
        """Return the compiled text of some sources, or the result of `build`, which a checkout caches."""
        if self._packaged:
            return self._packaged_text(_key(name, sources)) or build()
        path = self._cached_path(name, sources)
        text = _read_cached(path) if path else None
        if text is None:
            text = build()
            if path:
                _write_cached(Path(path), text)
        if self._recorded is not None:
            self._recorded[_key(name, sources)] = text
        return text

    def record(self) -> dict[str, str]:
        """Return a mapping to which later calls of `text` add their results, for `packaged_file`."""
        self._recorded = {}
        return self._recorded

    @property
    def is_packaged(self) -> bool:
        """Whether the file `path` exists, as in a wheel: then compilation is unnecessary."""
        return self._path.exists()

    @cached_property
    def _packaged(self) -> str:
        return self._path.read_text("ascii") if self.is_packaged else ""

    def _packaged_text(self, key: str) -> str:
        # Each text is on a separate line, so `find` locates it without parsing the whole file.
        start = self._packaged.find(f"\n{json.dumps(key)}: ")
        if start < 0:
            return ""
        line = self._packaged[start + 1 : self._packaged.find("\n", start + 1)]
        return line[len(json.dumps(key)) + len(": ") :].rstrip(",")

    def _cached_path(self, name: str, sources: Iterable[Path]) -> str | None:
        folder = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        if not os.path.isabs(folder):
            return None  # the process has no home folder
        state = _digest([self._state, *map(self._state_of_file, sources)])
        return os.path.join(folder, "opshift", name, f"{state}.json")

    @cached_property
    def _state(self) -> str:
        return self._state_by(self._state_of_file)

    def _state_by(self, state_of_file: Callable[[str], str]) -> str:
        own = (state_of_file(file) for each in self._dependencies for file in _files_below(each))
        return _digest([*own, self._base._state_by(state_of_file) if self._base else ""])


def _digest(states: Iterable[str]) -> str:
    # Checksums of zlib: importing hashlib takes as long as reading the definitions of ten operators.
    text = "\n".join(states).encode("utf-8", "surrogateescape")
    return f"{zlib.crc32(text):08x}{zlib.adler32(text):08x}"


def _files_below(folder: Path) -> list[str]:
    if folder.is_file():
        return [str(folder)]
    # pathlib would take five times as long, and the first conversion of each process waits for this.
    walk = ((parent, names) for parent, _, names in os.walk(folder))
    files = (os.path.join(parent, each) for parent, names in walk for each in names)
    return sorted(each for each in files if each.endswith((".py", ".yaml")))


def _file_state(path: Path | str) -> str:
    """Return the path, size and times of a file, which are faster to read than the content."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return f"{path} is missing"
    # Tools that unpack or copy files may restore the modification time, but not `st_ctime`.
    return f"{path} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"


def _content_state(path: Path | str) -> str:
    """Return the name, size and checksum of a file, which are equal in all checkouts with this content."""
    name = os.path.basename(path)
    if not os.path.exists(path):
        return f"{name} is missing"
    content = Path(path).read_bytes()
    return f"{name} {len(content)} {zlib.crc32(content):08x}"


def _read_cached(path: str) -> str | None:
    with suppress(OSError, UnicodeDecodeError), open(path, encoding="ascii") as file:
        text = file.read()
        # Without the final newline, ignore the file: a crash cut it off.
        return text[:-1] if text.endswith("\n") else None
    return None


def _write_cached(path: Path, text: str) -> None:
    """Write a cached file if possible, and remove the oldest files beyond `MAX_CACHED_STATES`."""
    from opshift.model.atomic_files import AtomicFiles, write_all  # imported here: rarely needed

    with suppress(OSError, CannotWrite), AtomicFiles() as files, files.new(path) as (file, _):
        write_all(file, f"{text}\n".encode("ascii"))
    with suppress(OSError):
        newest_first = sorted(path.parent.glob("*.json"), key=lambda each: -each.stat().st_mtime_ns)
        for each in newest_first[MAX_CACHED_STATES:]:
            each.unlink(missing_ok=True)


_PROJECT: Final = os.path.join(OPSETS, "")
"""Prefix of the paths in `opsets/`: comparing strings is faster than `Path.is_relative_to`."""

DEFINITIONS: Final = CompiledFile(Path(__file__).with_name("compiled.json"), [Path(__file__).parent])
DESCRIPTIONS: Final = CompiledFile(Path(__file__).with_name("descriptions.json"), [Path(__file__).parent])
"""The description texts of definitions, in a separate file, because conversions do not need them."""


def load_precompiled(
    path: Path, sources: Iterable[Path], read: Callable[[], Content], compiled: CompiledFile = DEFINITIONS
) -> Content:
    """Return the result of `read` for a file; for a file in `opsets/`, decode its compiled copy instead.

    `sources` are the other files that `read` depends on, except for the dependencies of `compiled`.
    """
    if not is_precompiled(path):
        return read()
    text = compiled.text(_name(path), (path, *sources), lambda: _encode(read()))
    content: Content = _decode(text)
    return content


def packaged_entry(path: Path, sources: Iterable[Path], content: object) -> tuple[str, str]:
    """Return the key and the text of a file in `opsets/` for `packaged_file`."""
    return _key(_name(path), (path, *sources)), _encode(content)


def is_precompiled(path: Path) -> bool:
    """Return whether a file belongs to the project's `opsets` folder, whose files have compiled copies."""
    return str(path).startswith(_PROJECT)


def load_texts(path: Path, read: Callable[[], list[list[str]]]) -> list[list[str]]:
    """Return the texts of each version of a precompiled operator: compiled ones, or the result of `read`."""
    name = f"descriptions/{_name(path)}"
    texts: list[list[str]] = json.loads(DESCRIPTIONS.text(name, [path], lambda: compact_json(read())))
    return texts


def _name(path: Path) -> str:
    return str(path).removeprefix(_PROJECT).replace(os.sep, "/")


def _key(name: str, sources: Iterable[Path]) -> str:
    """Return the key of a text in a wheel: its name and a checksum of its sources."""
    content = b"\0".join(each.read_bytes() for each in sources if each.exists())
    return f"{name} {zlib.crc32(content):08x}"


def packaged_file(texts: Mapping[str, str]) -> str:
    """Return the content of the compiled file in a wheel; `texts` maps keys to compiled texts."""
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {text}" for key, text in texts.items()) + "\n}\n"


def compact_json(content: object) -> str:
    """Return data in JSON without spaces; a `Record` becomes an object with its class name."""
    return json.dumps(content, default=_encode_record, separators=(",", ":"))


def _encode(content: object) -> str:
    """Return data in JSON; an operator becomes a list of the operator and the `DETAILS` of each version."""
    if not isinstance(content, Operator):
        return compact_json(content)
    details = ({name: getattr(version, name) for name in DETAILS} for version in content.versions)
    return f"[{_SEPARATOR.join(map(compact_json, (content, *details)))}]"


SHARED_ENTRIES: Final = {"Runtime": ("internal_operators", "operators", "restrictions", "schemas", "wrong")}
"""Mapping fields, by class, whose entries are often equal in several records, such as runtime versions."""


def _encode_record(record: Record) -> dict[str, object]:
    """Return a record as a JSON object: its class name and the fields that differ from their defaults.

    Texts (fields with `compare=False`) and `DETAILS` are omitted; facts such as `holds_graphs` are added.
    """
    values = {each: getattr(record, each.name) for each in fields(record) if each.compare}
    content = {f.name: v for f, v in values.items() if v not in (f.default, {})}
    if isinstance(record, OperatorVersion):
        content = {name: value for name, value in content.items() if name not in DETAILS}
        content["holds_graphs"] = record.holds_graphs
    elif isinstance(record, Operator):
        content["compatible_steps"] = record.compatible_steps
    for name in SHARED_ENTRIES.get(type(record).__name__, ()):
        entries: Mapping[str, object] = content.get(name, {})
        content[name] = {key: compact_json(each) for key, each in entries.items()}
    return {CLASS_KEY: type(record).__name__, **content}


def _decode(text: str) -> Any:
    """Decode the result of `_encode`; the details of a version are decoded when they are first read."""
    first, *details = text.split(_SEPARATOR)
    if not details:
        return _DECODER.decode(text)
    operator: Operator = _DECODER.decode(first[1:])
    for version, each in zip(operator.versions, details, strict=True):
        version.__dict__[DETAILS_LOADER] = partial(_DECODER.decode, each.removesuffix("]"))
    return operator


def _decode_object(data: dict[str, object]) -> object:
    """Return the record that `_encode_record` encoded, or a read-only mapping; lists become tuples."""
    for key, value in data.items():
        if type(value) is list:
            data[key] = _as_tuple(value)
    class_name = data.pop(CLASS_KEY, None)
    for name in SHARED_ENTRIES.get(str(class_name), ()):
        entries = cast("dict[str, str]", data[name])
        data[name] = _SharedEntries(entries)
    return ReadOnlyDict(data) if class_name is None else Record.classes[str(class_name)].from_valid(data)


class _SharedEntries(Mapping[str, object]):
    """Mapping whose entries are decoded when they are first read: few models use most operators."""

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts
        self._decoded: dict[str, object] = {}

    def __getitem__(self, key: str) -> object:
        if key not in self._decoded:
            self._decoded[key] = _decode_shared(self._texts[key])
        return self._decoded[key]

    def get(self, key: str, default: object = None) -> object:  # `Mapping.get` is slow for missing keys
        return self[key] if key in self._texts else default

    def __contains__(self, key: object) -> bool:
        return key in self._texts

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


@cache
def _decode_shared(text: str) -> object:
    """Decode an entry of a mapping; cached, so that records with equal entries share the result."""
    found = _DECODER.decode(text)
    return _as_tuple(found) if isinstance(found, list) else found


def _as_tuple(values: list[object]) -> tuple[object, ...]:
    # Recursion only for lists in lists, which are rare.
    nested = (_as_tuple(each) if isinstance(each, list) else each for each in values)
    return tuple(nested if list in map(type, values) else values)


_DECODER: Final = json.JSONDecoder(object_hook=_decode_object)
