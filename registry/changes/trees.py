"""Compare two trees (folders of definitions), and find forbidden changes of published versions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from opshift.model.errors import Place
from opshift.model.operator_ids import OperatorId
from opshift.registry.changes.classify import ClassifiedChange, classify, classify_single
from opshift.registry.changes.diff import Change
from opshift.registry.changes.history import ChangeFinding, version_findings
from opshift.registry.changes.policies import Mode, Policy
from opshift.registry.definition_files import RELEASES, TYPES, definition_files
from opshift.registry.loader import load_operator
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.registry import default_registry
from opshift.registry.releases import Releases
from opshift.registry.type_sets import TypeSets
from opshift.registry.yaml_files import load_yaml, place_of


@dataclass(frozen=True)
class Tree:
    """The operators in a folder of definitions, by (domain, name), and the releases with their opsets."""

    operators: Mapping[tuple[str, str], Operator]
    releases: Releases = field(default_factory=Releases)

    def released(self, domain: str) -> int:
        """Return the newest released opset of a domain, or the newest defined opset if it has no releases."""
        published = self.releases.released_opset(domain)
        operators = (each for each in self.operators.values() if each.domain == domain)
        newest = max((each.newest_opset for each in operators), default=0)
        return newest if published is None else published


def read_tree(folder: Path) -> Tree:
    """Read the definitions in a folder; raise `DefinitionError` if there are none, or one is invalid.

    Definitions may also use the project's type sets. If the folder has no `releases.yaml`, the project's
    releases are used. A missing folder raises UsageError.
    """
    own = default_registry()
    types = own.types.merged(TypeSets.load(folder / TYPES))
    paths = (path for paths in definition_files((folder,)).values() for path in paths.values())
    found = (load_operator(Path(path), types, draft=True) for path in paths)
    releases = folder / RELEASES
    return Tree(
        {(each.domain, each.name): each for each in found},
        Releases.load(releases) if releases.exists() else own.releases,
    )


def version_place(folder: Path, operator: str) -> Place:
    """Return the place of an operator version such as `com.acme.Blur:2` in its file.

    If the file lacks the version, because it was deleted or the opset removes the operator, return the place
    of the last version before it, or else the file.
    """
    domain, name, version = OperatorId.parse(operator)
    path = folder / domain / f"{name}.yaml"
    if not path.exists():
        return Place(str(path))
    versions = [each["since_version"] for each in load_yaml(path)["versions"]]
    position = sum(each <= version for each in versions) - 1
    return place_of(path, ("versions", position)) if position >= 0 else Place(str(path))


def compare_trees(old: Tree, new: Tree, policy: Policy, mode: Mode = Mode.NONE) -> Iterator[ChangeFinding]:
    """Yield forbidden changes; the policy applies to versions published in `old`, the mode to new versions.

    A version is published if it is stable and its opset is released. New versions in released opsets are
    forbidden; a removal of the operator in an opset that is not released yet is always allowed.
    """
    for key, operator in old.operators.items():
        later = new.operators.get(key)
        for version in operator.versions:
            if version.status == "STABLE" and version.since_version <= old.released(version.domain):
                yield from _changes_of_published_version(version, later, policy, old.released(version.domain))
    for key, operator in new.operators.items():
        yield from _new_versions(operator, old.operators.get(key), old, mode)


def _changes_of_published_version(
    version: OperatorVersion, later: Operator | None, policy: Policy, released: int
) -> Iterator[ChangeFinding]:
    same = _find_same_version(version, later)
    if same is None:
        deleted = classify_single(Change("version_deleted", version.name, None, None), version)
        remedy = "restore the version; declare a removal with `removed_in`"
        yield ChangeFinding(str(version.id), deleted, "the version is published", remedy)
        return
    for change in classify(version, same):
        if not policy.allows(change) and not _is_future_removal(change, released):
            reason = f"the version is published, and the policy {policy.name} does not allow this change"
            remedy = "restore the published version, and append a new one"
            yield ChangeFinding(str(version.id), change, reason, remedy)


def _is_future_removal(change: ClassifiedChange, released: int) -> bool:
    """Return whether the change is a removal in an opset that is not released yet."""
    is_removal = change.rule == "operator-removed" and change.change.old is None
    return is_removal and int(change.change.new) > released


def _new_versions(
    operator: Operator, before: Operator | None, old: Tree, mode: Mode
) -> Iterator[ChangeFinding]:
    released = old.released(operator.domain)
    for version in operator.versions:
        if _find_same_version(version, before) is not None:
            continue
        if version.since_version <= released:
            inserted = classify_single(Change("version_inserted", version.name, None, None), version)
            remedy = f"use since_version {released + 1} or later"
            yield ChangeFinding(str(version.id), inserted, f"opset {released} is already released", remedy)
        yield from version_findings(operator, version, mode)


def _find_same_version(version: OperatorVersion, operator: Operator | None) -> OperatorVersion | None:
    versions = operator.versions if operator else ()
    return next((each for each in versions if each.since_version == version.since_version), None)
