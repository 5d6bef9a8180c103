"""Load one YAML file as one `Operator`, and report each error with its file and line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from opshift.model.plain_data import Json
from opshift.registry.definition_files import RELEASES
from opshift.registry.described import Descriptions
from opshift.registry.descriptions import GROUPS, Texts, flatten, set_texts, texts_of
from opshift.registry.errors import DefinitionError
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.record import from_plain_data
from opshift.registry.releases import Releases
from opshift.registry.steps import parse_action
from opshift.registry.type_sets import TypeSets
from opshift.registry.yaml_files import Keys, error_at, load_yaml

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

# Pydantic's messages for these errors speak of Python classes and keyword arguments, not of YAML.
_MESSAGES: Final = {
    "unexpected_keyword_argument": "unknown key",
    "dataclass_type": "Input should be a mapping",
}


class _FormatError(Exception):
    """An error in a definition, with the keys that lead to it from the top of the file."""

    def __init__(self, keys: Keys, reason: str) -> None:
        self.keys = keys
        self.reason = reason
        super().__init__(reason)


def load_operator(path: Path, types: TypeSets, *, domain: str = "", name: str = "") -> Operator:
    """Read the operator that the path `<domain>/<name>.yaml` names, or the one with the given name.

    Raises:
        DefinitionError: the file is not YAML, has the wrong format, or defines a different operator.
    """
    data = load_yaml(path)
    try:
        return _operator(data, {"domain": domain or path.parent.name, "name": name or path.stem}, types)
    except _FormatError as problem:
        raise error_at(path, problem.keys, problem.reason) from problem.__cause__


def require_known_opsets(operator: Operator, path: Path, releases: Releases) -> Operator:
    """Return the operator; raise `DefinitionError` if a version names an opset that no ONNX release has."""
    newest = releases.newest_opset(operator.domain)
    for index, version in enumerate(operator.versions if newest is not None else ()):
        opset = version.removal.removed_in if version.removal else version.since_version
        if newest is not None and opset > newest:
            reason = f"no release of ONNX has opset {opset} of {operator.domain}"
            remedy = f"add the release to {RELEASES}, with `released: false` until it is published"
            raise error_at(path, ("versions", index), reason, remedy)
    return operator


def operator_from_data(data: object, types: TypeSets) -> Operator:
    """Return the operator in data with the format of its file; errors have its name as place."""
    identity = {key: data.get(key) if isinstance(data, dict) else None for key in ("domain", "name")}
    place = f"{identity['domain']}.{identity['name']}"
    if not all(isinstance(text, str) for text in identity.values()):
        raise DefinitionError("the definition has no domain or no name", place=place)
    try:
        return _operator(data, {}, types)
    except _FormatError as problem:
        raise DefinitionError(problem.reason, place=place) from problem.__cause__


def _operator(data: object, expected: Mapping[str, str], types: TypeSets) -> Operator:
    if not isinstance(data, dict):
        raise _FormatError((), "is not an operator definition")
    for key, value in expected.items():
        if data.get(key) != value:
            raise _FormatError((key,), f"{key} must be {value} to match the path")
    if "description" in data:
        reason = "description: belongs in the first version, as descriptions.operator"
        raise _FormatError(("description",), reason)
    try:
        operator = from_plain_data(Operator, _with_complete_versions(data, types))
    except ValidationError as error:
        raise _select_error(error, data) from error
    blocks = [_own_texts(each.get("descriptions", {}), i) for i, each in enumerate(data["versions"])]
    _describe(operator, blocks)
    return operator


def _own_texts(block: object, position: int) -> Texts:
    """Return the texts in the block `descriptions` of a version."""
    try:
        return flatten(from_plain_data(Descriptions, block))
    except ValidationError as error:
        first = error.errors()[0]
        keys = ("versions", position, "descriptions", *first["loc"])
        raise _FormatError(keys, f"{'.'.join(map(str, keys))}: {_message(first)}") from error


def _describe(operator: Operator, blocks: Sequence[Texts]) -> None:
    """Set the texts of each version; a text that a version lacks is inherited from the previous one.

    Once a version describes a parameter, it and all later versions must describe each of theirs.
    """
    is_complete = False
    inherited: Texts = {}
    for position, (version, own) in enumerate(zip(operator.versions, blocks, strict=True)):
        _require_unique_names(version, position)
        names = texts_of(version)
        for group, name in sorted(own.keys() - names.keys()):
            known = ", ".join(other for each, other in names if each == group) or "none"
            reason = f"the version has no such {GROUPS[group]}; it has {known}"
            raise _text_error(position, group, name, reason)
        is_complete = is_complete or any(text for (_, name), text in own.items() if name)
        inherited = {key: own.get(key) or inherited.get(key, "") for key in names}
        missing = next((key for key, text in inherited.items() if is_complete and not text), None)
        if missing:
            raise _text_error(position, *missing, "missing; describe the operator and all its parameters")
        set_texts(version, inherited.values())


def _require_unique_names(version: OperatorVersion, position: int) -> None:
    for side, parameters in (("inputs", version.inputs), ("outputs", version.outputs)):
        names = [each.name for each in parameters]
        for index, name in enumerate(names):
            if name in names[:index]:
                keys = ("versions", position, side, index, "name")
                raise _FormatError(keys, f"{'.'.join(map(str, keys))}: {name!r} is repeated")


def _text_error(position: int, group: str, name: str, reason: str) -> _FormatError:
    keys = ("versions", position, "descriptions", group, *([name] if name else ()))
    return _FormatError(keys, f"{'.'.join(map(str, keys))}: {reason}")


def _with_complete_versions(data: dict[str, Json], types: TypeSets) -> dict[str, Json]:
    versions = data.get("versions")
    if not isinstance(versions, list):
        return data
    complete = [_complete_version(each, position, data, types) for position, each in enumerate(versions)]
    return {**data, "versions": complete}


def _complete_version(version: Json, position: int, operator: dict[str, Json], types: TypeSets) -> Json:
    """Make a version self-contained: add domain, name and inherited keys, and expand its types."""
    if not isinstance(version, dict):
        return version
    for key in ("domain", "name"):
        if key in version:
            reason = f"{key} belongs at the top of the file, not in a version"
            raise _FormatError(("versions", position, key), reason)
    return {
        "shape": operator.get("shape", ""),
        "bridge": operator.get("bridge"),
        "axes": operator.get("axes"),
        "one_of": operator.get("one_of", []),
        **{key: value for key, value in version.items() if key != "descriptions"},
        "domain": operator["domain"],
        "name": operator["name"],
        "type_constraints": _expanded_constraints(version, ("versions", position, "type_constraints"), types),
    }


def _expanded_constraints(version: dict[str, Json], keys: Keys, types: TypeSets) -> Json:
    constraints = version.get("type_constraints") or {}
    if not isinstance(constraints, dict):
        return constraints
    return {name: _expanded_types(entries, (*keys, name), types) for name, entries in constraints.items()}


def _expanded_types(entries: Json, keys: Keys, types: TypeSets) -> Json:
    listed = [entries] if isinstance(entries, str) else entries
    names = [entry for entry in listed if isinstance(entry, str)] if isinstance(listed, list) else []
    if names != listed:
        return entries
    try:
        return types.expand(names)
    except DefinitionError as error:
        # An error inside types.yaml already has its place.
        if error.place.file:
            raise
        raise _FormatError(keys, error.reason) from error


def _select_error(error: ValidationError, data: dict[str, Json]) -> _FormatError:
    """Select the error to report.

    For a union, pydantic reports an error for every alternative; the deepest one belongs to the alternative
    that matches best.
    """
    errors = error.errors()
    parent = _existing_keys(errors[0]["loc"], data)
    below = (each for each in errors if _existing_keys(each["loc"], data)[: len(parent)] == parent)
    closest = max(below, key=lambda each: len(each["loc"]))
    reported, reason = _existing_keys(closest["loc"], data), _message(closest)
    is_rule = closest["type"] == "value_error"
    keys, reason = next(_precise_causes(reported, reason, is_rule, data), (reported, reason))
    shown_keys = (*keys, closest["loc"][-1]) if closest["type"] == "missing" and keys == reported else keys
    where = ".".join(map(str, shown_keys))
    return _FormatError(keys, f"{where}: {reason}" if where else reason)


def _message(error: ErrorDetails) -> str:
    return _MESSAGES.get(error["type"]) or str(error["msg"]).removeprefix("Value error, ")


def _existing_keys(location: Keys, data: object) -> Keys:
    """Return the keys of a location that exist in the file.

    Pydantic inserts the names of a union's alternatives between them.
    """
    keys: list[int | str] = []
    for key in location:
        if isinstance(data, dict):
            if key not in data:
                continue
            data = data[key]
        elif isinstance(data, list) and isinstance(key, int):
            data = data[key]
        else:
            continue
        keys.append(key)
    return tuple(keys)


def _precise_causes(reported: Keys, reason: str, is_rule: bool, data: Any) -> Iterator[tuple[Keys, str]]:
    """Yield the precise causes of an error that pydantic reports at a parent key.

    These are rules over several keys, and fields of a verb.
    """
    for key in reported:
        data = data[key]
    if reported and reported[-1] in ("step", "up", "down", "before"):
        yield from _invalid_verbs(data, reported)
    elif is_rule and not reported:
        yield from ((keys, reason) for keys in _misplaced_keys(data["versions"]))
    elif is_rule and len(reported) == len(("versions", 0)):
        yield from ((keys, reason) for keys in _undeclared_types(data, reported))


def _misplaced_keys(versions: list[dict[str, Any]]) -> Iterator[Keys]:
    ages = [float(version["since_version"]) for version in versions]
    yield from (("versions", i, "since_version") for i, (a, b) in enumerate(pairwise(ages), 1) if a >= b)
    if "step" in versions[0]:
        yield ("versions", 0, "step")
    yield from (("versions", i, "before") for i, version in enumerate(versions) if i and "before" in version)


def _undeclared_types(version: dict[str, Any], keys: Keys) -> Iterator[Keys]:
    known = version.get("type_constraints") or ()
    for side in ("inputs", "outputs"):
        for position, parameter in enumerate(version.get(side, ())):
            if parameter["type"] not in known and "(" not in parameter["type"]:
                yield (*keys, side, position, "type")


def _invalid_verbs(answers: Any, keys: Keys) -> Iterator[tuple[Keys, str]]:
    if isinstance(answers, dict):
        for direction in ("up", "down"):
            yield from _invalid_verbs(answers.get(direction), (*keys, direction))
    if not isinstance(answers, list):
        return
    for position, verb in enumerate(answers):
        try:
            parse_action([verb])
        except ValidationError as error:
            first = error.errors()[0]
            existing = _existing_keys((*verb, *first["loc"]), verb)
            missing = [str(key) for key in first["loc"] if key not in existing]
            yield (*keys, position, *existing), ": ".join([*missing, _message(first)])
        except ValueError as error:
            yield (*keys, position), str(error)
