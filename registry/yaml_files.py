"""Read and write YAML files, without some conversions of YAML 1.1.

Repeated keys are errors, and `off`, `013` and `12:30` are strings.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from opshift.model.errors import Place
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


for _tag, _pattern, _first in (
    ("bool", r"true|false", "tf"),
    ("int", r"-?(?:0|[1-9][0-9]*)", "-0123456789"),
    ("float", r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|-?\.inf|\.nan", "-.0123456789"),
    ("null", r"null|~|", "n~\0"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}",
        re.compile(rf"^(?:{_pattern})$"),
        ["" if c == "\0" else c for c in _first],
    )


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[str, object]:
    loader.flatten_mapping(node)
    mapping: dict[str, object] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str) or key in mapping:
            problem = f"key {key!r} is {'repeated' if isinstance(key, str) else 'not a string'}"
            raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
        mapping[key] = loader.construct_object(value_node, deep=True)
    return mapping


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def load_yaml(path: Path) -> Any:
    """Return plain data; raise `DefinitionError` if a file cannot be read, is not YAML, or repeats a key."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DefinitionError(f"cannot be read: {error.strerror}", place=Place(str(path))) from error
    try:
        return yaml.load(content, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise DefinitionError(str(error.problem), place=Place(str(path), line)) from error
    except yaml.reader.ReaderError as error:
        line = content[: error.position].count(b"\n") + 1
        raise DefinitionError(f"is not YAML: {error.reason}", place=Place(str(path), line)) from error
    except ValueError as error:
        reason = f"contains a value that does not match its tag: {error}"
        raise DefinitionError(reason, place=Place(str(path))) from error


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
    node, line = yaml.compose(path.read_bytes(), Loader=_Loader), 1
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
