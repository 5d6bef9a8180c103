"""Close the unreleased opsets of a tree of definitions."""

import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from opshift.model.atomic_files import write_files
from opshift.model.errors import Place, UsageError
from opshift.model.operator_ids import OperatorId
from opshift.proposals.accepted_files import operators_of_tree
from opshift.proposals.content.staged_registry import registry_of_tree
from opshift.registry.definition_files import RELEASES
from opshift.registry.fingerprints import LOCK, build_lock, load_lock, lock_differences, lock_text
from opshift.registry.registry import Registry
from opshift.registry.yaml_files import place_of

UNRELEASED = re.compile(r"released: false(?=[,}])")


@dataclass(frozen=True)
class Released:
    """Release that was closed, its operator versions, and the files that were changed."""

    name: str
    versions: tuple[OperatorId, ...]
    files: tuple[Path, ...]


def release(tree: Path, day: date | None = None) -> Released:
    """Mark the oldest unreleased release of a tree as released, and record all fingerprints.

    Its versions are then published: every later change of them is an error.

    Raises:
        UsageError: the tree has no unreleased release, or a definition differs from its fingerprint.
        DefinitionError: the definitions in the tree are invalid.
    """
    path, registry = tree / RELEASES, registry_of_tree(tree)
    releases = registry.releases.onnx if path.is_file() else {}
    name = next((each for each, release in releases.items() if not release.released), None)
    if name is None:
        reason = "the tree has no unreleased opset"
        remedy = "accept a proposal first; opsets of domains that releases.yaml does not list need no release"
        raise UsageError(reason, place=Place(str(path)), remedy=remedy)
    operators = operators_of_tree(registry, tree)
    differences = lock_differences(operators, load_lock(tree / LOCK))
    changed = [each for each in differences if each.why != "new"]
    if changed:
        remedy = "restore the definition, or accept the change as a proposal"
        raise UsageError("; ".join(map(str, changed[:3])), place=Place(str(tree / LOCK)), remedy=remedy)
    lines = path.read_text("utf-8").splitlines()
    index = place_of(path, ("onnx", name, "released")).line - 1
    closed = f"released: true, date: {day or date.today():%Y-%m}"
    lines[index], count = UNRELEASED.subn(closed, lines[index])
    if not count:
        place, remedy = Place(str(path), index + 1), "write the release on one line, in braces"
        raise UsageError("cannot change the release", place=place, remedy=remedy)
    files = {path: "\n".join([*lines, ""]), tree / LOCK: lock_text(build_lock(operators))}
    write_files(files)
    return Released(name, tuple(_new_versions(registry, name)), tuple(files))


def _new_versions(registry: Registry, name: str) -> list[OperatorId]:
    """Return the versions in the opsets of a release that is not published in `registry`."""
    opsets = registry.releases.onnx[name].opsets
    listed = registry.get_all_schemas_with_history()
    released = {domain: registry.releases.released_opset(domain) or 0 for domain in opsets}
    return [
        each.id
        for each in listed
        if released.get(each.domain, each.since_version) < each.since_version <= opsets[each.domain]
    ]
