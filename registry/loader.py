"""From one YAML file to one `Operator`; whatever is wrong is said with its file and line."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from opshift.registry.errors import DefinitionError, Place
from opshift.registry.models import Operator
from opshift.registry.steps import answer_of
from opshift.registry.type_sets import TypeSets
from opshift.registry.yaml_files import line_of, load_yaml

Keys = tuple[int | str, ...]


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
    data = load_yaml(path)
    try:
        return _operator(data, path, types)
    except _Fault as fault:
        place = Place(str(path), line_of(path, fault.keys))
        raise DefinitionError(fault.reason, place=place) from fault.__cause__


def _operator(data: Any, path: Path, types: TypeSets) -> Operator:
    if not isinstance(data, dict):
        raise _Fault((), "is not an operator definition")
    for key, wanted in (("domain", path.parent.name), ("name", path.stem)):
        if data.get(key) != wanted:
            raise _Fault((key,), f"{key} must be {wanted}, as the path says")
    try:
        return Operator.model_validate(_whole(data, types))
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
    """The first of pydantic's errors; where a union failed, that of the alternative that came closest."""
    errors = error.errors()
    above = _present(errors[0]["loc"], data)
    closest = max((e for e in errors if _present(e["loc"], data)[: len(above)] == above), key=_depth)
    keys, reason = _present(closest["loc"], data), closest["msg"].removeprefix("Value error, ")
    keys, reason = next(_culprits(data, keys), (keys, reason))
    if closest["type"] == "missing":
        keys = (*keys, closest["loc"][-1])
    where = ".".join(str(key) for key in keys)
    return _Fault(keys, f"{where}: {reason}" if where else reason)


def _depth(error: Any) -> int:
    return len(error["loc"])


def _present(location: Keys, data: Any) -> Keys:
    """The keys of a location that the file has: pydantic puts the alternatives of unions between them."""
    keys: list[int | str] = []
    for key in location:
        found = _below(data, key)
        if found is not None:
            keys.append(key)
            data = found[0]
    return tuple(keys)


def _below(data: Any, key: int | str) -> tuple[Any] | None:
    if isinstance(data, dict):
        return (data[key],) if key in data else None
    return (data[key],) if isinstance(data, list) and isinstance(key, int) and key < len(data) else None


def _culprits(data: dict[str, Any], keys: Keys) -> Iterator[tuple[Keys, str]]:
    """What exactly breaks a rule over several keys, which pydantic places above all of them."""
    value = data
    for key in keys:
        value = value[key]  # type: ignore[index]  # `keys` lead through lists too
    ...
