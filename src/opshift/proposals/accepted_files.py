"""Contents of the files in a tree of definitions, updated for an accepted proposal."""

import re
from dataclasses import replace
from pathlib import Path

from opshift.model.operator_ids import OperatorId
from opshift.proposals.content.draft import DefinedDraft
from opshift.proposals.content.text_files import quote_yaml
from opshift.registry.fingerprints import LOCK, build_lock, load_lock, lock_text, operator_fingerprints
from opshift.registry.models import Deprecation, Operator
from opshift.registry.registry import Registry
from opshift.registry.yaml_files import place_of


def lock_with_operator(draft: DefinedDraft, tree: Path) -> str:
    """Return the text of `fingerprints.yaml` with the changed operators added.

    If the tree has no such file yet, the fingerprints of all its operators are included.
    """
    path = tree / LOCK
    lock = load_lock(path) if path.exists() else build_lock(operators_of_tree(draft.registry, tree))
    superseded = [_superseded_operator(draft)] if draft.supersedes_preview else []
    for operator in (draft.operator, *superseded):
        lock.setdefault(operator.domain, {})[operator.name] = operator_fingerprints(operator)
    return lock_text({domain: dict(sorted(names.items())) for domain, names in sorted(lock.items())})


def operators_of_tree(registry: Registry, tree: Path) -> list[Operator]:
    """Return the operators that the tree itself defines; the registry may also have those of the project."""
    return [each for each in registry.operators() if (tree / each.domain / f"{each.name}.yaml").exists()]


CHANGELOG_TITLE = "# Changes of the operator sets\n"


def changelog_with_entry(text: str, draft: DefinedDraft) -> str:
    """Return the change log with an entry for the proposal added; the newest opset comes first."""
    text, entry = text or CHANGELOG_TITLE, _changelog_entry(draft)
    heading = f"## {draft.operator.domain} {draft.opset}\n"
    if heading in text:
        head, _, rest = text.partition(heading)
        # No empty line separates the entry from the entries that follow it.
        return f"{head}{heading}\n{entry}" + (rest[1:] if rest.startswith("\n- ") else rest)
    head, found, rest = text.partition("\n## ")
    return f"{head.rstrip()}\n\n{heading}\n{entry}{found}{rest}"


def _changelog_entry(draft: DefinedDraft) -> str:
    proposal, version = draft.proposal, draft.version
    sentences = [f"- **{draft.operator.name}** ({proposal.kind.replace('-', ' ')}): {proposal.title}."]
    if draft.adds_version and version.step and version.step.change:
        sentences.append(" ".join(version.step.change.split()))
    retirement = draft.retirement
    if retirement is not None:
        sentences.append(
            f"Use {' and '.join(retirement.replacements)}: {' '.join(retirement.mapping.split())}"
        )
    names = ", ".join(each.name for each in draft.sign_offs)
    sentences.append(f"By {proposal.author.name}; signed off by {names}.")
    return " ".join(sentences) + "\n"


def releases_with_opset(path: Path, registry: Registry, domain: str, opset: int) -> str | None:
    """Return the text of `releases.yaml` with the opset in an unreleased release.

    Return `None` if the file stays unchanged: it does not exist, a release already includes the opset, or no
    release lists the domain, as for custom domains.
    """
    releases = registry.releases.onnx
    if not path.is_file() or not any(domain in each.opsets for each in releases.values()):
        return None
    name, newest = list(releases.items())[-1]
    if newest.opsets.get(domain, 0) >= opset:
        return None
    lines = path.read_text("utf-8").splitlines()
    index = place_of(path, ("onnx", name)).line - 1
    if not newest.released:
        lines[index] = re.sub(rf"(?<=[ {{]){re.escape(domain)}: \d+", f"{domain}: {opset}", lines[index])
        return "\n".join([*lines, ""])
    opsets = ", ".join(f"{each}: {number}" for each, number in {**newest.opsets, domain: opset}.items())
    entry = f"{{ir_version: {newest.ir_version}, opsets: {{{opsets}}}, released: false}}"
    return "\n".join([*lines[: index + 1], f'  "{_next_release(name)}": {entry}', *lines[index + 1 :], ""])


def _next_release(name: str) -> str:
    """Return the next minor release, such as `1.24` for `1.23`."""
    major, minor = name.split(".")[:2]
    return f"{major}.{int(minor) + 1}"


def _superseded_operator(draft: DefinedDraft) -> Operator:
    """Return the experimental operator, deprecated in favour of the stable one.

    The rule `promotion.source` ensures that the operator exists.
    """
    operator_id = OperatorId.parse(draft.proposal.promotes)
    operator = draft.registry.operator(operator_id.op_type, operator_id.domain)
    assert operator is not None
    last = replace(operator.versions[-1], deprecation=_deprecation(draft))
    return replace(operator, versions=(*operator.versions[:-1], last))


def superseded_definition(draft: DefinedDraft, tree: Path) -> tuple[Path, str]:
    """Return the definition file of the experimental operator and its content with the deprecation."""
    operator_id, deprecation = OperatorId.parse(draft.proposal.promotes), _deprecation(draft)
    path = tree / operator_id.domain / f"{operator_id.op_type}.yaml"
    mapping = quote_yaml(deprecation.mapping)
    deprecation_line = f"  deprecation: {{replaced_by: {deprecation.replaced_by}, mapping: {mapping}}}"
    return path, f"{path.read_text('utf-8').rstrip()}\n{deprecation_line}\n"


def _deprecation(draft: DefinedDraft) -> Deprecation:
    mapping = " ".join(draft.proposal.mapping.split())
    return Deprecation(replaced_by=f"{draft.operator.domain}.{draft.operator.name}", mapping=mapping)
