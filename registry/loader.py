"""From one YAML file to one `Operator`; whatever is wrong is said with its file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from opshift.registry.errors import DefinitionError, Place
from opshift.registry.models import Operator
from opshift.registry.type_sets import TypeSets
from opshift.registry.yaml_files import line_of, load_yaml


def load_operator(path: Path, types: TypeSets) -> Operator:
    """Read `<domain>/<name>.yaml`.

    Raises:
        DefinitionError: the file is not YAML, breaks the format, or does not hold what its path says.
    """
    data = load_yaml(path)
    if not isinstance(data, dict):
        raise DefinitionError("is not an operator definition", place=Place(str(path), 1))
    stated = (data.get("domain"), data.get("name"))
    if stated != (path.parent.name, path.stem):
        wanted = f"{path.parent.name} and {path.stem}"
        raise DefinitionError(
            f"domain and name must be {wanted}, as the path says", place=Place(str(path), 1)
        )
    try:
        return Operator.model_validate(_whole(data, types))
    except ValidationError as error:
        first = error.errors()[0]
        keys = first["loc"]
        where = ".".join(str(key) for key in keys)
        reason = f"{where}: {first['msg'].removeprefix('Value error, ')}"
        raise DefinitionError(reason, place=Place(str(path), line_of(path, keys))) from error


def _whole(data: dict[str, Any], types: TypeSets) -> dict[str, Any]:
    versions = [_version(version, data, types) for version in data.get("versions") or ()]
    return {**data, "versions": versions}


def _version(version: dict[str, Any], operator: dict[str, Any], types: TypeSets) -> dict[str, Any]:
    """The version as a model of its own: with the operator's name, and types spelled out."""
    constraints = version.get("type_constraints") or {}
    return {
        "description": operator.get("description", ""),
        "shape": operator.get("shape", ""),
        **version,
        "domain": operator["domain"],
        "name": operator["name"],
        "type_constraints": {variable: types.expand(entries) for variable, entries in constraints.items()},
    }
