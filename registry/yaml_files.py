"""Read and write YAML files, without some conversions of YAML 1.1.

Repeated keys are errors, and `013` and `12:30` are strings. `yes` and `off` are errors: readers of YAML 1.1
read booleans, other readers strings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import yaml

from opshift.model.errors import Place
from opshift.model.plain_data import MAX_DEPTH, MAX_FILE_BYTES, MAX_ITEMS, PlainDataError, parse_integer
from opshift.registry.errors import DefinitionError, DefinitionFinding, InvalidDefinition

Keys = tuple[int | str, ...]
"""Path of keys and list positions from the top of a file to a value."""

MAX_FINDINGS = 100
"""Maximum number of findings in one file: the search for similar names takes time."""

# The libyaml parser is much faster than the parser in Python, but PyYAML may be built without it.
if TYPE_CHECKING:
    from yaml import SafeDumper as _BaseDumper
    from yaml import SafeLoader as _Parser
else:
    _BaseDumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    _Parser = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

SCALARS = {
    "bool": (r"true|false", "tf"),
    "int": (r"-?(?:0|[1-9][0-9]*)", "-0123456789"),
    "float": (r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|-?\.inf|\.nan", "-.0123456789"),
    "null": (r"null|~|", "n~\0"),
    "ambiguous": (
        r"yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF|True|TRUE|False|FALSE|Null|NULL",
        "yYnNoOtTfF",
    ),
}
"""Pattern of each type of unquoted scalars, and the possible first characters of its values.

A null character represents the empty text.
"""

TAG = "tag:yaml.org,2002:"


class _Dumper(_BaseDumper):
    """Dumper that quotes only the texts that match a pattern of `SCALARS`."""

    # An empty table drops the YAML 1.1 rules, by which `013` and `12:30` are numbers.
    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # name defined by PyYAML


for _type, (_pattern, _first) in SCALARS.items():
    _Dumper.add_implicit_resolver(
        TAG + _type, re.compile(rf"(?:{_pattern})\Z"), ["" if c == "\0" else c for c in _first]
    )


_RESOLVERS = _Dumper.yaml_implicit_resolvers


class Mark(Protocol):
    """A position in a file, as both the libyaml parser and the parser in Python return it."""

    line: int
    column: int


class _YamlError(Exception):
    """A violation of a lint rule by the text of a file."""

    def __init__(self, rule: str, reason: str, mark: Mark | None) -> None:
        self.rule, self.reason, self.mark = rule, reason, mark
        super().__init__(reason)


class _TooDeep(Exception):
    """Too many levels of nesting, found at a line.

    The column is unknown: newer versions of libyaml have their own limit, and reach it while they read ahead.
    """

    def __init__(self, mark: Mark | None) -> None:
        self.line = mark.line + 1 if mark else 0
        super().__init__(self.line)


class _AmbiguousWords(Exception):
    """All ambiguous words of a file, reported together: authors who write one usually write several."""

    def __init__(self, errors: list[_YamlError]) -> None:
        self.errors = errors
        super().__init__()


def load_yaml(path: Path) -> Any:
    """Return the data of a YAML file; raise `DefinitionError` if it is unreadable or breaks a `yaml` rule."""
    content = _read_text(path)
    with _reporting(path, content):
        return _Builder().build(content)


def _read_text(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        reason, remedy = f"cannot be read: {error.strerror}", "correct the path, or its permissions"
        raise DefinitionError(reason, place=Place(str(path)), remedy=remedy) from error
    if len(content) > MAX_FILE_BYTES:
        raise DefinitionError(f"has more than {MAX_FILE_BYTES:,} bytes", place=Place(str(path)))
    return content


@contextmanager
def _reporting(path: Path, content: bytes) -> Iterator[None]:
    """Context manager that turns errors of the parser into an `InvalidDefinition` with a line."""
    try:
        yield
    except _YamlError as error:
        raise _invalid_definition(path, error.rule, error.reason, error.mark) from error
    except _AmbiguousWords as words:
        found = [
            _invalid_definition(path, each.rule, each.reason, each.mark)
            for each in words.errors[:MAX_FINDINGS]
        ]
        raise InvalidDefinition([each.findings[0] for each in found]) from words
    except _TooDeep as error:
        raise _too_deep(path, error.line) from error
    except yaml.MarkedYAMLError as error:
        # report the nesting limit of libyaml like `MAX_DEPTH`
        if "nesting depth" in str(error.problem) and error.problem_mark:
            raise _too_deep(path, error.problem_mark.line + 1) from error
        raise _invalid_definition(path, "yaml.syntax", str(error.problem), error.problem_mark) from error
    except yaml.reader.ReaderError as error:
        line = content[: error.position].count(b"\n") + 1
        raise _invalid_definition(path, "yaml.syntax", f"is not YAML: {error.reason}", None, line) from error
    except ValueError as error:
        raise _invalid_definition(path, "yaml.syntax", f"is not YAML: {error}", None) from error


def _too_deep(path: Path, line: int) -> InvalidDefinition:
    return _invalid_definition(
        path, "yaml.limits", f"has more than {MAX_DEPTH} levels of nesting", None, line
    )


def _invalid_definition(
    path: Path, rule: str, reason: str, mark: Mark | None, line: int = 0
) -> InvalidDefinition:
    place = Place(str(path), mark.line + 1, column=mark.column + 1) if mark else Place(str(path), line)
    return InvalidDefinition([DefinitionFinding.of_rule(rule, place, reason)])


class _Collection:
    """A list or mapping whose end the parser has not reached."""

    __slots__ = ("anchor", "items", "key", "mark", "start")

    def __init__(self, items: Any, event: yaml.CollectionStartEvent | None = None, start: int = 0) -> None:
        self.items = items
        self.key: str | None = None
        """The key of a mapping whose value has not been read yet."""
        self.anchor = event.anchor if event else None
        self.mark = event.start_mark if event else None
        self.start = start
        """The number of values in the file before this collection."""


class _Builder:
    """Builder of the data of a file from the parser's events, with limits of depth and size.

    libyaml composes nested values recursively, which can overflow the stack; events need no recursion.
    An alias counts as all values that it repeats.
    """

    def __init__(self) -> None:
        self._documents: list[object] = []
        self._open = [_Collection(self._documents)]
        self._count = 0
        self._anchored: dict[str, tuple[object, int]] = {}
        self._ambiguous: list[_YamlError] = []

    def build(self, content: bytes) -> object:
        """Return the data of the only document."""
        for event in yaml.parse(content, Loader=_Parser):
            if isinstance(event, yaml.ScalarEvent):
                self._count += 1
                self._add(self._scalar(event), event.start_mark, event.anchor, 1)
            elif isinstance(event, yaml.CollectionStartEvent):
                self._start_collection(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                done = self._open.pop()
                self._add(done.items, done.mark, done.anchor, self._count - done.start)
            elif isinstance(event, yaml.AliasEvent):
                self._repeat_anchor(event)
            elif isinstance(event, yaml.DocumentStartEvent) and self._documents:
                reason = "expected one document, but found another document"
                raise _YamlError("yaml.syntax", reason, event.start_mark)
        if self._ambiguous:
            raise _AmbiguousWords(self._ambiguous)
        return self._documents[0] if self._documents else None

    def _scalar(self, event: yaml.ScalarEvent) -> object:
        """Return the value of a scalar; collect the error for a value that YAML versions read differently."""
        try:
            return _scalar(event)
        except _YamlError as error:
            if error.rule != "yaml.ambiguous":
                raise
            self._ambiguous.append(error)
            return event.value

    def _start_collection(self, event: yaml.CollectionStartEvent) -> None:
        is_list = isinstance(event, yaml.SequenceStartEvent)
        if event.tag not in (None, "!", TAG + ("seq" if is_list else "map")):
            raise _YamlError("yaml.syntax", f"unknown tag {event.tag!r} of a collection", event.start_mark)
        self._open.append(_Collection([] if is_list else {}, event, self._count))
        self._count += 1
        if len(self._open) > MAX_DEPTH + 1:
            raise _TooDeep(event.start_mark)

    def _repeat_anchor(self, event: yaml.AliasEvent) -> None:
        # an alias inside the anchored value counts as undefined, too
        if event.anchor not in self._anchored:
            raise _YamlError("yaml.syntax", f"found undefined alias {event.anchor!r}", event.start_mark)
        value, size = self._anchored[event.anchor]
        self._count += size
        self._add(value, event.start_mark, None, size)

    def _add(self, value: object, mark: Mark | None, anchor: str | None, size: int) -> None:
        """Add a complete value to the innermost open collection."""
        if self._count > MAX_ITEMS:
            raise _YamlError("yaml.limits", f"has more than {MAX_ITEMS:,} values", mark)
        if anchor is not None:
            self._anchored[anchor] = value, size
        parent = self._open[-1]
        if parent.key is not None:
            parent.items[parent.key], parent.key = value, None
        elif isinstance(parent.items, list):
            parent.items.append(value)
        elif not isinstance(value, str):
            raise _YamlError("yaml.key", f"key {value!r} is not a string", mark)
        elif value in parent.items:
            raise _YamlError("yaml.repeated-key", f"key {value!r} is repeated", mark)
        else:
            parent.key = value


def _scalar(event: yaml.ScalarEvent) -> object:
    """Return the value of a scalar; raise `_YamlError` if its text is ambiguous, or does not fit its tag."""
    text, tag = event.value, event.tag
    # shortcut: most scalars are quoted, or are words without a special meaning in YAML
    if tag is None and not (event.implicit[0] and text[:1] in _RESOLVERS):
        return text
    kind = _scalar_type(text) if tag in (None, "!") else tag.removeprefix(TAG)
    if kind == "str":
        return text
    if kind == "ambiguous":
        reason = f"{text} is a boolean or null for some readers of YAML"
        raise _YamlError("yaml.ambiguous", reason, event.start_mark)
    if kind not in SCALARS:
        raise _YamlError("yaml.syntax", f"unknown tag {tag!r}", event.start_mark)
    if not re.fullmatch(SCALARS[kind][0], text):
        raise _YamlError("yaml.syntax", f"{text!r} is not of type {kind}", event.start_mark)
    try:
        return _VALUES[kind](text)
    except PlainDataError as error:
        raise _YamlError("yaml.syntax", str(error), event.start_mark) from error


def _scalar_type(text: str) -> str:
    resolvers = _RESOLVERS.get(text[:1], ())
    return next((tag.removeprefix(TAG) for tag, pattern in resolvers if pattern.match(text)), "str")


_VALUES: dict[str, Callable[[str], object]] = {
    "bool": lambda text: text == "true",
    "int": parse_integer,
    "float": lambda text: float(text.replace(".inf", "inf").replace(".nan", "nan")),
    "null": lambda _: None,
}


def dump_yaml(data: object) -> str:
    """Return plain data as YAML that `load_yaml` reads back unchanged."""
    text: str = yaml.dump(
        data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110
    )
    return text


def error_at(path: Path, keys: Keys, reason: str, remedy: str = "") -> DefinitionError:
    """Return an error with the line of the key or item at the end of `keys`."""
    return DefinitionError(reason, place=place_of(path, keys), remedy=remedy)


def place_of(path: Path, keys: Keys) -> Place:
    """Return the place of the key or item at the end of `keys`, or of the nearest existing parent."""
    return Positions(path).locate(keys)


class Positions:
    """Lines and columns of the keys and items of a file, for errors only: the file is parsed again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        content = _read_text(path)
        with _reporting(path, content):
            _Builder().build(content)  # check the limits first, because the recursive composer has none
            self._root = yaml.compose(content, Loader=_Parser)

    def locate(self, keys: Keys) -> Place:
        """Return the place of the key or item at the end of `keys`, or of the nearest existing parent."""
        node, line, column = self._root, 1, 1
        for key in keys:
            child = _child(node, key)
            if child is None:
                break
            marked, node = child
            line, column = marked.start_mark.line + 1, marked.start_mark.column + 1
        return Place(str(self._path), line, column=column)


def _child(node: yaml.Node | None, key: int | str) -> tuple[yaml.Node, yaml.Node] | None:
    """Return the node that marks the position of a child (its key, or the child itself), and the child.

    Return `None` if the child does not exist.
    """
    if isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
        return node.value[key], node.value[key]
    if isinstance(node, yaml.MappingNode):
        return next(((name, value) for name, value in node.value if name.value == key), None)
    return None
