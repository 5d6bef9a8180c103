"""Read and write YAML files, without some conversions of YAML 1.1.

Repeated keys are errors, and `off`, `013` and `12:30` are strings.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from opshift.model.errors import Place
from opshift.model.plain_data import MAX_DEPTH, MAX_FILE_BYTES, MAX_ITEMS, PlainDataError, parse_integer
from opshift.registry.errors import DefinitionError

Keys = tuple[int | str, ...]
"""The keys and positions that lead to a part of a file, from its top."""

# The libyaml parser is much faster than the one in Python, but PyYAML may be built without it.
if TYPE_CHECKING:
    from yaml import SafeDumper as _BaseDumper
    from yaml import SafeLoader as _BaseLoader
else:
    _BaseDumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    _BaseLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_BaseLoader):
    # An empty table drops the YAML 1.1 rules, by which `off` is a boolean and `013` and `12:30` are numbers.
    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # name defined by PyYAML


SCALARS = {
    "bool": (r"true|false", "tf"),
    "int": (r"-?(?:0|[1-9][0-9]*)", "-0123456789"),
    "float": (r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|-?\.inf|\.nan", "-.0123456789"),
    "null": (r"null|~|", "n~\0"),
}
"""Pattern of each scalar type, and the first characters of its values (a null character for no text)."""

TAG = "tag:yaml.org,2002:"

for _type, (_pattern, _first) in SCALARS.items():
    _Loader.add_implicit_resolver(
        TAG + _type, re.compile(rf"^(?:{_pattern})$"), ["" if c == "\0" else c for c in _first]
    )


def _scalar(loader: _Loader, node: yaml.Node) -> object:
    """Return the value of a scalar; an explicit tag does not make a type of a text that has another one."""
    kind, text = node.tag.removeprefix(TAG), node.value
    if not isinstance(text, str) or not re.fullmatch(SCALARS[kind][0], text):
        raise yaml.constructor.ConstructorError(
            None, None, f"{text!r} is not of type {kind}", node.start_mark
        )
    if kind == "int":
        try:
            return parse_integer(text)
        except PlainDataError as error:
            raise yaml.constructor.ConstructorError(None, None, str(error), node.start_mark) from error
    if kind == "float":
        return float(text.replace(".inf", "inf").replace(".nan", "nan"))
    return text == "true" if kind == "bool" else None


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[str, object]:
    mapping: dict[str, object] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str) or key in mapping:
            problem = f"key {key!r} is {'repeated' if isinstance(key, str) else 'not a string'}"
            raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
        mapping[key] = loader.construct_object(value_node, deep=True)
    return mapping


def _undefined(_: _Loader, node: yaml.Node) -> object:
    raise yaml.constructor.ConstructorError(None, None, f"unknown tag {node.tag!r}", node.start_mark)


# Only plain data: PyYAML's other types, such as dates and sets, are in no format that opshift reads.
_Loader.yaml_constructors = {
    **dict.fromkeys((TAG + each for each in SCALARS), _scalar),
    TAG + "str": _Loader.construct_scalar,
    TAG + "seq": lambda loader, node: loader.construct_sequence(node, deep=True),
    TAG + "map": _mapping,
    None: _undefined,
}


def load_yaml(path: Path) -> Any:
    """Return plain data; raise `DefinitionError` if a file cannot be read, is not YAML, or repeats a key."""
    content = _read(path)
    with _reporting(path, content):
        _require_limits(path, content)
        return yaml.load(content, Loader=_Loader)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise DefinitionError(f"cannot be read: {error.strerror}", place=Place(str(path))) from error
    if len(content) > MAX_FILE_BYTES:
        raise DefinitionError(f"has more than {MAX_FILE_BYTES:,} bytes", place=Place(str(path)))
    return content


@contextmanager
def _reporting(path: Path, content: bytes) -> Iterator[None]:
    """Report errors of the parser as a `DefinitionError` with a line."""
    try:
        yield
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise DefinitionError(str(error.problem), place=Place(str(path), line)) from error
    except yaml.reader.ReaderError as error:
        line = content[: error.position].count(b"\n") + 1
        raise DefinitionError(f"is not YAML: {error.reason}", place=Place(str(path), line)) from error
    except ValueError as error:
        raise DefinitionError(f"is not YAML: {error}", place=Place(str(path))) from error


def _require_limits(path: Path, content: bytes) -> None:
    """Raise DefinitionError for a file with too many or too deeply nested values.

    libyaml composes nested values by recursion and overflows the stack, but it emits their events without.
    An alias counts as all values that it repeats.
    """
    counts, names = [0], [""]
    sizes: dict[str, int] = {}
    for event in yaml.parse(content, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            counts.append(1)
            names.append(event.anchor or "")
        elif isinstance(event, yaml.ScalarEvent):
            counts[-1] += 1
            sizes[event.anchor or ""] = 1
        elif isinstance(event, yaml.AliasEvent):
            # an alias inside of its own anchor has no size yet, and is an error of the constructor
            counts[-1] += sizes.get(event.anchor or "", 1)
        elif isinstance(event, yaml.CollectionEndEvent):
            count = counts.pop()
            sizes[names.pop()] = count
            counts[-1] += count
        if len(counts) > MAX_DEPTH + 1 or counts[-1] > MAX_ITEMS:
            limit = (
                f"{MAX_DEPTH} levels of nesting" if len(counts) > MAX_DEPTH + 1 else f"{MAX_ITEMS:,} values"
            )
            line = event.start_mark.line + 1 if event.start_mark else 0
            raise DefinitionError(f"has more than {limit}", place=Place(str(path), line))


class _Dumper(_BaseDumper):
    yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers


def dump_yaml(data: object) -> str:
    """Return plain data as YAML that `load_yaml` reads back unchanged."""
    text: str = yaml.dump(
        data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110
    )
    return text


def error_at(path: Path, keys: Keys, reason: str, remedy: str = "") -> DefinitionError:
    """Return an error with the line of the key or item at the end of `keys`."""
    return DefinitionError(reason, place=Place(str(path), line_of(path, keys)), remedy=remedy)


def line_of(path: Path, keys: Keys) -> int:
    """Return the line of the key or item at the end of `keys`, or of the nearest existing parent."""
    content = _read(path)
    with _reporting(path, content):
        _require_limits(path, content)
        node, line = yaml.compose(content, Loader=_Loader), 1
    for key in keys:
        child = _child(node, key)
        if child is None:
            break
        marked, node = child
        line = marked.start_mark.line + 1
    return line


def _child(node: yaml.Node | None, key: int | str) -> tuple[yaml.Node, yaml.Node] | None:
    """Return the node with the child's position (its key, or the child itself) and the child."""
    if isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
        return node.value[key], node.value[key]
    if isinstance(node, yaml.MappingNode):
        return next(((name, value) for name, value in node.value if name.value == key), None)
    return None
