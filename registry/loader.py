"""From one YAML file to one `Operator`; whatever is wrong is said with its file and line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from opshift.registry.errors import DefinitionError, Place
from opshift.registry.models import Operator
from opshift.registry.record import adapter
from opshift.registry.steps import answer_of
from opshift.registry.type_sets import TypeSets
from opshift.registry.yaml_files import line_of, load_yaml

Keys = tuple[int | str, ...]
_READER: Final[TypeAdapter[Operator]] = adapter(Operator)
_WORDS: Final = {
    "unexpected_keyword_argument": "there is no such key",
    "dataclass_type": "Input should be a mapping",
}


class _Fault(Exception):
    """What is wrong, and the keys that lead to it from the top of the file."""

    def __init__(self, keys: Keys, reason: str) -> None:
        self.keys = keys
        self.reason = reason
        super().__init__(reason)


def load_operator(path: Path, types: TypeSets) -> Operator:
    """Read `<domain>/<name>.yaml`.

    Raises:
        DefinitionError: the file is not YAML, breaks the format, or does not hold what its path says.
    """
    return read_operator(path, types, domain=path.parent.name, name=path.stem)


def read_operator(path: Path, types: TypeSets, *, domain: str, name: str) -> Operator:
    """Read the definition of an operator from a file of any name.

    Raises:
        DefinitionError: the file is not YAML, breaks the format, or is about another operator.
    """
    data = load_yaml(path)
    try:
        return _operator(data, {"domain": domain, "name": name}, types)
    except _Fault as fault:
        place = Place(str(path), line_of(path, fault.keys))
        raise DefinitionError(fault.reason, place=place) from fault.__cause__


def operator_of(data: Any, types: TypeSets) -> Operator:
    """Read the definition of an operator from plain data, as its file would have it.

    Raises:
        DefinitionError: it breaks the format; the place names the operator.
    """
    named = {key: data.get(key) if isinstance(data, dict) else None for key in ("domain", "name")}
    place = f"{named['domain']}.{named['name']}"
    if not all(isinstance(each, str) for each in named.values()):
        raise DefinitionError("a definition has no domain or no name", place=place)
    try:
        return _operator(data, {}, types)
    except _Fault as fault:
        raise DefinitionError(fault.reason, place=place) from fault.__cause__


def _operator(data: Any, wanted: Mapping[str, str], types: TypeSets) -> Operator:
    if not isinstance(data, dict):
        raise _Fault((), "is not an operator definition")
    for key, value in wanted.items():
        if data.get(key) != value:
            raise _Fault((key,), f"{key} must be {value}, as the path says")
    try:
        return _READER.validate_python(_whole(data, types))
    except ValidationError as error:
        raise _fault(error, data) from error


def _whole(data: dict[str, Any], types: TypeSets) -> dict[str, Any]:
    versions = data.get("versions")
    if not isinstance(versions, list):
        return data
    return {**data, "versions": [_version(version, i, data, types) for i, version in enumerate(versions)]}


def _version(version: Any, position: int, operator: dict[str, Any], types: TypeSets) -> Any:
    """The version as a model of its own: with the operator's name, and types spelled out."""
    if not isinstance(version, dict):
        return version
    for key in ("domain", "name"):
        if key in version:
            raise _Fault(("versions", position, key), f"{key} is stated once, at the top of the file")
    return {
        "description": operator.get("description", ""),
        "shape": operator.get("shape", ""),
        "bridge": operator.get("bridge"),
        **version,
        "domain": operator["domain"],
        "name": operator["name"],
        "type_constraints": _constraints(version, ("versions", position, "type_constraints"), types),
    }


def _constraints(version: dict[str, Any], keys: Keys, types: TypeSets) -> Any:
    constraints = version.get("type_constraints") or {}
    if not isinstance(constraints, dict):
        return constraints
    return {variable: _types(entries, (*keys, variable), types) for variable, entries in constraints.items()}


def _types(entries: Any, keys: Keys, types: TypeSets) -> Any:
    listed = [entries] if isinstance(entries, str) else entries
    if not isinstance(listed, list) or not all(isinstance(entry, str) for entry in listed):
        return entries
    try:
        return types.expand(listed)
    except DefinitionError as error:
        if error.place.file:
            raise
        raise _Fault(keys, error.reason) from error


def _fault(error: ValidationError, data: dict[str, Any]) -> _Fault:
    """The first of the errors; where no alternative of a union fits, that of the one that came closest."""
    errors = error.errors()
    above = _present(errors[0]["loc"], data)
    closest = max((e for e in errors if _present(e["loc"], data)[: len(above)] == above), key=_depth)
    reported = _present(closest["loc"], data)
    reason = _said(closest)
    is_rule = closest["type"] == "value_error"
    keys, reason = next(_culprits(reported, reason, is_rule, data), (reported, reason))
    named = (*keys, closest["loc"][-1]) if closest["type"] == "missing" and keys == reported else keys
    where = ".".join(str(key) for key in named)
    return _Fault(keys, f"{where}: {reason}" if where else reason)


def _said(error: Any) -> str:
    """What is wrong, in words that fit a YAML file."""
    return _WORDS.get(error["type"]) or str(error["msg"]).removeprefix("Value error, ")


def _depth(error: Any) -> int:
    return len(error["loc"])


def _present(location: Keys, data: Any) -> Keys:
    """The keys of a location that the file has: pydantic names the alternatives of a union between them."""
    keys: list[int | str] = []
    for key in location:
        is_there = key in data if isinstance(data, dict) else isinstance(data, list) and isinstance(key, int)
        if is_there:
            keys.append(key)
            data = data[key]
    return tuple(keys)


def _culprits(reported: Keys, reason: str, is_rule: bool, data: Any) -> Iterator[tuple[Keys, str]]:
    """What exactly is at fault where pydantic reports a rule over several keys, or a verb's fields, above."""
    for key in reported:
        data = data[key]
    if reported and reported[-1] in ("step", "up", "down", "before"):
        yield from _bad_verbs(data, reported)
    elif is_rule and not reported:
        yield from ((keys, reason) for keys in _out_of_place(data["versions"]))
    elif is_rule and len(reported) == len(("versions", 0)):
        yield from ((keys, reason) for keys in _untyped(data, reported))


def _out_of_place(versions: list[dict[str, Any]]) -> Iterator[Keys]:
    ages = [float(version["since_version"]) for version in versions]
    yield from (("versions", i, "since_version") for i, (a, b) in enumerate(pairwise(ages), 1) if a >= b)
    if "step" in versions[0]:
        yield ("versions", 0, "step")
    yield from (("versions", i, "before") for i, version in enumerate(versions) if i and "before" in version)


def _untyped(version: dict[str, Any], keys: Keys) -> Iterator[Keys]:
    known = version.get("type_constraints") or ()
    for side in ("inputs", "outputs"):
        for position, parameter in enumerate(version.get(side, ())):
            if parameter["type"] not in known and "(" not in parameter["type"]:
                yield (*keys, side, position, "type")


def _bad_verbs(answers: Any, keys: Keys) -> Iterator[tuple[Keys, str]]:
    if isinstance(answers, dict):
        for direction in ("up", "down"):
            yield from _bad_verbs(answers.get(direction), (*keys, direction))
    for position, verb in enumerate(answers if isinstance(answers, list) else ()):
        try:
            answer_of([verb])
        except ValidationError as error:
            first = error.errors()[0]
            inner = _present((*verb, *first["loc"]), verb)
            lacking = [str(key) for key in first["loc"] if key not in inner]
            yield (*keys, position, *inner), ": ".join([*lacking, _said(first)])
        except ValueError as error:
            yield (*keys, position), str(error)
