"""Load a YAML file as an `Operator`, and report all mistakes in the file with their lines."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from pydantic import ValidationError

from opshift.model.errors import Place
from opshift.model.plain_data import Json
from opshift.model.shared_data import ReadOnlyDict
from opshift.registry.descriptions import GROUPS, Texts, flatten, set_texts, texts_of
from opshift.registry.errors import DefinitionError, DefinitionFinding, InvalidDefinition
from opshift.registry.lint.apply import DRAFT_RULES, Problems, operator_problems, version_problems
from opshift.registry.lint.format import format_problems
from opshift.registry.lint.rule_table import Keys, LintProblem, nearest
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.record import Descriptions, from_plain_data
from opshift.registry.releases import Releases
from opshift.registry.step_rules import compatible_steps
from opshift.registry.type_sets import TypeSets
from opshift.registry.yaml_files import MAX_FINDINGS, Positions, load_yaml


class _Mistakes(Exception):
    """Violations of lint rules in a definition: rule ids, and problems with keys from the top of the file."""

    def __init__(self, problems: Iterable[tuple[str, LintProblem]]) -> None:
        self._problems = list(islice(problems, MAX_FINDINGS))
        super().__init__()

    def error(self, place_of: Callable[[Keys], Place]) -> InvalidDefinition:
        """Return the error with these problems as findings, sorted by line and column."""
        findings = []
        for rule, (reason, keys, remedy) in self._problems:
            where = ".".join(map(str, keys))
            text = f"{where}: {reason}" if where else reason
            findings.append(DefinitionFinding.of_rule(rule, place_of(keys), text, remedy))
        return InvalidDefinition(sorted(findings, key=lambda each: (each.place.line, each.place.column)))


def load_operator(
    path: Path, types: TypeSets, *, domain: str = "", name: str = "", draft: bool = False
) -> Operator:
    """Read and lint the file of an operator; a `draft` may violate `DRAFT_RULES`.

    `domain` and `name` in the file must equal the arguments, or by default the path `<domain>/<name>.yaml`.

    Raises:
        DefinitionError: the file is not YAML, has the wrong format, defines a different operator, or violates
            a lint rule.
    """
    data = load_yaml(path)
    try:
        identity = {"domain": domain or path.parent.name, "name": name or path.stem}
        return _operator_from_fields(data, identity, types, DRAFT_RULES if draft else ())
    except _Mistakes as mistakes:
        raise mistakes.error(Positions(path).locate) from None


def require_known_opsets(operator: Operator, path: Path, releases: Releases) -> Operator:
    """Return the operator; raise `DefinitionError` if a version or removal is newer than any ONNX release."""
    newest = releases.newest_opset(operator.domain)
    problems = []
    for position, version in enumerate(operator.versions if newest is not None else ()):
        opset = version.removal.removed_in if version.removal else version.since_version
        if newest is not None and opset > newest:
            reason = f"no release of ONNX has opset {opset} of {operator.domain}; the newest is {newest}"
            problems.append(("version.opset", LintProblem(reason, ("versions", position))))
    if problems:
        raise _Mistakes(problems).error(Positions(path).locate)
    return operator


def with_compatible_steps(operator: Operator) -> Operator:
    """Compute `compatible_steps`, set it in place on the frozen operator, and return the operator."""
    object.__setattr__(operator, "compatible_steps", ReadOnlyDict(compatible_steps(operator)))
    return operator


def operator_from_data(data: object, types: TypeSets) -> Operator:
    """Return the operator defined by data in the format of an operator file.

    Raises:
        DefinitionError: the data are invalid; the place is the name of the operator.
    """
    identity = {key: data.get(key) if isinstance(data, dict) else None for key in ("domain", "name")}
    place = f"{identity['domain']}.{identity['name']}"
    if not all(isinstance(text, str) for text in identity.values()):
        raise DefinitionError("the definition has no domain or no name", place=place)
    try:
        return _operator_from_fields(data, {}, types)
    except _Mistakes as mistakes:
        raise mistakes.error(lambda _: Place(node=place)) from None


def _operator_from_fields(
    data: object, expected: Mapping[str, str], types: TypeSets, skipped: Collection[str] = ()
) -> Operator:
    if not isinstance(data, dict):
        raise _Mistakes([("format.type", LintProblem("is not an operator definition"))])
    problems: list[tuple[str, LintProblem]] = []
    for key, value in expected.items():
        if data.get(key) != value:
            problems.append(("file.identity", LintProblem(f"must be {value} to match the path", (key,))))
    complete = _with_complete_versions({**data, **expected}, types, problems)
    try:
        operator = from_plain_data(Operator, complete)
    except ValidationError as error:
        problems += islice(format_problems(error, {**data, **expected}), MAX_FINDINGS)
        problems += version_problems(_valid_versions(complete))
        raise _Mistakes(problems) from None
    problems += [each for each in operator_problems(operator) if each[0] not in skipped]
    # texts are assigned by name, so names must be unique
    if not any(rule == "parameter.repeated" for rule, _ in problems):
        problems += _set_descriptions(operator, data["versions"])
    if problems:
        raise _Mistakes(problems)
    return operator


def _valid_versions(data: Mapping[str, Json]) -> dict[int, OperatorVersion]:
    """Return the versions with a valid format by position, to apply all other lint rules to these."""
    versions = data.get("versions")
    found = {}
    for position, each in enumerate(versions if isinstance(versions, list) else ()):
        with suppress(ValidationError):
            found[position] = from_plain_data(OperatorVersion, each)
    return found


def _set_descriptions(operator: Operator, versions: Sequence[Mapping[str, Json]]) -> Problems:
    """Set the texts of each version, and yield problems; a version inherits the texts that it lacks.

    If a version describes an input, output, attribute or type variable, it and later versions need all texts.
    """
    is_complete = False
    inherited: Texts = {}
    for position, (version, data) in enumerate(zip(operator.versions, versions, strict=True)):
        keys: Keys = ("versions", position, "descriptions")
        try:
            own = flatten(from_plain_data(Descriptions, data.get("descriptions", {})))
        except ValidationError as error:
            yield from format_problems(error, data["descriptions"], keys)
            return
        names = texts_of(version)
        for group, name in sorted(own.keys() - names.keys()):
            known = [other for each, other in names if each == group]
            reason = f"unknown {GROUPS[group]}; the version has {', '.join(known) or 'none'}"
            yield "text.unknown", LintProblem(reason, (*keys, group, name), nearest(name, known))
        is_complete = is_complete or any(text for (_, name), text in own.items() if name)
        inherited = {key: own.get(key) or inherited.get(key, "") for key in names}
        for group, name in [key for key, text in inherited.items() if is_complete and not text]:
            yield "text.missing", LintProblem("missing", (*keys, group, name) if name else (*keys, group))
        set_texts(version, inherited.values())


def _with_complete_versions(
    data: dict[str, Json], types: TypeSets, problems: list[tuple[str, LintProblem]]
) -> dict[str, Json]:
    versions = data.get("versions")
    if not isinstance(versions, list):
        return data
    complete = [
        _complete_version(each, position, data, types, problems) for position, each in enumerate(versions)
    ]
    return {**data, "versions": complete}


def _complete_version(
    version: Json,
    position: int,
    operator: dict[str, Json],
    types: TypeSets,
    problems: list[tuple[str, LintProblem]],
) -> Json:
    """Make a version self-contained: add domain, name and inherited keys, and expand its types."""
    if not isinstance(version, dict):
        return version
    for key in ("domain", "name"):
        if key in version:
            problem = LintProblem(
                "belongs at the top of the file, not in a version", ("versions", position, key)
            )
            problems.append(("format.unknown-key", problem))
    keys = ("versions", position, "type_constraints")
    return {
        "shape": operator.get("shape", ""),
        "bridge": operator.get("bridge"),
        "axes": operator.get("axes"),
        "one_of": operator.get("one_of", []),
        "requires": operator.get("requires", []),
        **{key: value for key, value in version.items() if key != "descriptions"},
        "domain": operator["domain"],
        "name": operator["name"],
        "type_constraints": _expanded_constraints(version.get("type_constraints"), keys, types, problems),
    }


def _expanded_constraints(
    constraints: Json, keys: Keys, types: TypeSets, problems: list[tuple[str, LintProblem]]
) -> Json:
    if not isinstance(constraints, dict):
        return {} if constraints is None else constraints
    expanded: dict[str, Json] = {}
    for name, entries in constraints.items():
        listed = [entries] if isinstance(entries, str) else entries
        names = [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []
        is_list = names == listed
        expanded[name] = _expanded_types(names, (*keys, name), types, problems) if is_list else entries
    return expanded


def _expanded_types(
    names: list[str], keys: Keys, types: TypeSets, problems: list[tuple[str, LintProblem]]
) -> Sequence[str]:
    try:
        return types.expand(names)
    except InvalidDefinition:  # Expand the names one by one, to report all unknown names.
        expanded: list[str] = []
    for name in names:
        try:
            expanded += types.expand(name)
        except InvalidDefinition as error:
            # An error inside types.yaml already has a place.
            if error.place.file:
                raise
            expanded.append(name)
            problems += [(each.rule, LintProblem(each.reason, keys, each.remedy)) for each in error.findings]
    return expanded
