"""Find the violations of lint rules in a tree, which is a folder of definitions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from opshift.model.errors import Place
from opshift.opsets import OPSETS
from opshift.registry.definition_files import REVIEWERS, RUNTIMES, TYPES, definition_files
from opshift.registry.errors import DefinitionError, DefinitionFinding, InvalidDefinition
from opshift.registry.lint.rule_table import rules_for
from opshift.registry.lint.runtimes import runtime_findings
from opshift.registry.lint.tree_rules import TreeOperator
from opshift.registry.loader import load_operator, require_known_opsets
from opshift.registry.models import Operator
from opshift.registry.registry import Registry, load_registry
from opshift.registry.runtimes.files import load_runtime
from opshift.registry.type_sets import TypeSets
from opshift.registry.yaml_files import place_of


def lint_tree(
    folder: Path, adapters: Collection[tuple[str, str, int, int]] = ()
) -> tuple[DefinitionFinding, ...]:
    """Return the violations of lint rules in the definitions and runtimes of a folder, by file and line.

    Args:
        folder: the tree. A tree with a `releases.yaml` replaces the project's definitions.
        adapters: domain, operator name, source version and target version of each registered adapter.
    """
    found = list(_ignored_files(folder))
    try:
        found += _findings_in(load_registry([folder]), folder, adapters)
    except DefinitionError as error:
        found += _findings_of_error(error)
    places = {each: (each.place.file, each.place.line, each.place.column) for each in found}
    return tuple(sorted(places, key=places.__getitem__))


def _findings_in(
    registry: Registry, folder: Path, adapters: Collection[tuple[str, str, int, int]]
) -> Iterable[DefinitionFinding]:
    # Expand every type set of the folder, because an invalid set that no definition uses is an error, too.
    registry.types_of(folder).expand(TypeSets.load(folder / TYPES).names())
    found: list[DefinitionFinding] = []
    for path, operator in dict(_load(registry, folder, found)).items():
        subject = TreeOperator(operator, registry.names, adapters)
        problems = [(rule.id, each) for rule in rules_for(TreeOperator) for each in rule.check(subject)]
        for rule, (reason, keys, remedy) in problems:
            found.append(DefinitionFinding.of_rule(rule, place_of(path, keys), reason, remedy))
    return found + list(_runtime_findings(registry, folder))


def _runtime_findings(registry: Registry, folder: Path) -> Iterator[DefinitionFinding]:
    """Yield the findings in files `runtimes/<runtime>/<version>.yaml`."""
    for path in folder.glob(f"{RUNTIMES}/*/*.yaml"):
        try:
            runtime = load_runtime(path)
        except DefinitionError as error:
            yield from _findings_of_error(error)
            continue
        if (runtime.runtime, runtime.version) != (path.parent.name, path.stem):
            reason = f"the file defines {runtime.name}, which does not match its path"
            place, remedy = place_of(path, ("version",)), "name the file runtimes/<runtime>/<version>.yaml"
            yield DefinitionFinding.of_rule("file.identity", place, reason, remedy)
        yield from runtime_findings(runtime, path, registry)


def _load(
    registry: Registry, folder: Path, found: list[DefinitionFinding]
) -> Iterator[tuple[Path, Operator]]:
    """Yield the valid operators with their files, and add the findings in invalid files to `found`."""
    types, releases = registry.types_of(folder), registry.releases
    for path in [Path(path) for names in definition_files((folder,)).values() for path in names.values()]:
        try:
            yield path, require_known_opsets(load_operator(path, types), path, releases)
        except DefinitionError as error:
            found += _findings_of_error(error)


def _ignored_files(folder: Path) -> Iterator[DefinitionFinding]:
    known = {REVIEWERS, *(path.name for path in OPSETS.glob("*.yaml"))}
    misplaced = (path for path in folder.glob("*.y*ml") if path.name not in known)
    for path in sorted([*misplaced, *folder.glob("*/*.yml")]):
        yield DefinitionFinding.of_rule("file.ignored", Place(str(path)), "the file is not read")


def _findings_of_error(error: DefinitionError) -> Iterable[DefinitionFinding]:
    if isinstance(error, InvalidDefinition):
        return error.findings
    return [DefinitionFinding.of_rule("file.content", error.place, error.reason, error.remedy)]
