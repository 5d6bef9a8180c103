"""Accept a proposal into a tree (folder) of operator definitions, and mark a release of a tree as final."""

import ast
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from opshift.analysis.verification.numpy_types import array_element_type
from opshift.analysis.verification.references import OPERATOR_NAME
from opshift.model.atomic_files import destination_below, write_files
from opshift.model.errors import Place, UsageError
from opshift.model.messages import TensorProto
from opshift.model.operator_ids import DEFAULT_DOMAIN, OperatorId
from opshift.model.types import fill_type
from opshift.opsets import OPSETS
from opshift.proposals.check import check_proposal
from opshift.proposals.content.draft import DefinedDraft
from opshift.proposals.content.findings import NotAcceptable
from opshift.proposals.content.folder import (
    ADAPTERS,
    HEADER,
    OPERATOR,
    PROPOSAL,
    REFERENCE,
    SHAPES,
    edited_proposal,
    quote_yaml,
    temporary_file,
    version_block,
    without_questions,
)
from opshift.proposals.content.staged_registry import (
    module_name,
    reference_file,
    registry_for,
    registry_of_tree,
)
from opshift.proposals.evidence.cases import Arrays
from opshift.proposals.evidence.evidence import Evaluated, registered_shape_rules
from opshift.proposals.evidence.node_models import node_model, write_array
from opshift.proposals.page import operator_page
from opshift.registry.definition_files import RELEASES
from opshift.registry.errors import DefinitionError
from opshift.registry.fingerprints import (
    LOCK,
    build_lock,
    load_lock,
    lock_differences,
    lock_text,
    operator_fingerprints,
)
from opshift.registry.loader import load_operator
from opshift.registry.models import Deprecation, Operator
from opshift.registry.registry import Registry
from opshift.registry.releases import Release, Releases
from opshift.registry.yaml_edits import set_value
from opshift.registry.yaml_files import place_of

CHANGELOG_TITLE = "# Changes of the operator sets\n"

RELEASE_REMEDY = "write the release on one line, in braces"

UNRELEASED = re.compile(r"released: false(?=[,}])")


def recorded_files(draft: Evaluated, folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield path and content of the test files of each example, with the layout of ONNX's backend tests.

    Examples that failed and cases converted to other element types are omitted.
    """
    names: set[str] = set()
    for each in draft.evidence.outcomes:
        case = each.case
        if each.outputs is None or case.retyped:
            continue
        # Names come from the proposal: only letters, digits and underscores may become part of a path.
        name = re.sub(r"[^a-z0-9]+", "_", f"test {case.version.name} {case.name}".lower()).strip("_")
        name = f"{name}_{case.position}" if name in names else name
        names.add(name)
        model = node_model(case, each.outputs, case.version.since_version)
        present = (array for array in each.outputs if array is not None)
        for value, array in zip(model.graph.output, present, strict=True):
            # `onnx.checker` requires shapes of inputs and outputs
            fill_type(value.type, array_element_type(array), array.shape)
        yield folder / name / "model.onnx", model.SerializeToString(deterministic=True)
        data = folder / name / "test_data_set_0"
        yield from _tensor_files(data, "input", case.inputs)
        yield from _tensor_files(data, "output", each.outputs)


def _tensor_files(folder: Path, side: str, arrays: Arrays) -> Iterator[tuple[Path, bytes]]:
    """Yield path and serialized TensorProto of each array; the tensor has the value's name in the model."""
    present = ((position, each) for position, each in enumerate(arrays) if each is not None)
    for number, (position, array) in enumerate(present):
        tensor = TensorProto()
        write_array(tensor, array, f"{side}_{position}")
        yield folder / f"{side}_{number}.pb", tensor.SerializeToString(deterministic=True)


CHANGELOG = "CHANGELOG.md"


@dataclass(frozen=True)
class Accepted:
    """Accepted operator version, its opset, and the files that were written or changed."""

    operator: OperatorId
    opset: int
    files: tuple[Path, ...]
    cases: Path
    """Folder of the recorded examples; it has a subfolder with a model and its data for each example."""


def accept(
    path: Path,
    tree: Path,
    *,
    adapters: Path | None = None,
    shapes: Path | None = None,
    cases: Path | None = None,
    trusted: Path | None = None,
) -> Accepted:
    """Append the proposal's definition to a tree, with code, examples, page, fingerprints and change log.

    The state in `proposal.yaml` becomes `accepted`.

    The code of the proposal is executed. The tree has the layout of `opsets/`; a new tree for a custom domain
    may be empty. `trusted` is the folder with `reviewers.yaml`, by default the tree. By default, adapters go
    to `adapters` in the tree, shape rules to the folder of adapters, and examples to `cases` in the tree.

    Raises:
        NotAcceptable: a check reports an error. Nothing is written.
        InvalidProposal: the folder does not contain a proposal.
        DefinitionError: the definitions in the tree are invalid.
        UsageError: a folder is missing, a new file would replace another file or be outside of its folder,
            two new files have the same path, the tree is opshift's own and no folder for code is given, or
            `proposal.yaml` or `releases.yaml` cannot be changed without changing other content.
    """
    registry = registry_for(path, tree)
    checked = check_proposal(path, registry, gate="accept", trusted=trusted)
    draft = checked.draft
    if checked.errors or not isinstance(draft, Evaluated):
        reason = f"number of errors that remain: {len(checked.errors)}"
        raise NotAcceptable(reason, checked.errors, remedy="resolve each of them")
    # All contents are computed before the first file is written, so a failure leaves the tree unchanged.
    name = f"{draft.operator.name}-{draft.opset}"
    recorded = destination_below(cases or tree / "cases", draft.operator.domain, name)
    _require_own(recorded, draft)
    with registered_shape_rules(draft):
        contents = list(_file_contents(draft, tree, adapters, shapes, recorded))
    texts = dict(contents)
    paths = Counter(path.resolve() for path, _ in contents)
    for path in texts:
        if paths[path.resolve()] > 1:
            reason, remedy = "is the path of two files", "use separate folders for adapters and examples"
            raise UsageError(reason, place=str(path), remedy=remedy)
    write_files(texts)
    for test in recorded.glob("test_*"):
        # Remove examples that were recorded for an earlier form of the proposal.
        if test / "model.onnx" not in texts:
            shutil.rmtree(test)
    return Accepted(draft.version.id, draft.opset, tuple(texts), recorded)


def _reference_text(text: str, operator: OperatorId) -> str:
    """Return the text of `reference.py` with a line for `--verify-with` that names the operator version."""
    line = f'{OPERATOR_NAME} = "{operator}"'
    changed, count = re.subn(rf"(?m)^{OPERATOR_NAME} = .*$", line, text)
    return changed if count else f"{text.rstrip()}\n\n\n{line}\n"


def _has_code(code: Path) -> bool:
    """Return whether a Python file has statements other than imports and expressions, such as docstrings."""
    statements = ast.parse(code.read_bytes()).body
    return not all(isinstance(each, ast.Import | ast.ImportFrom | ast.Expr) for each in statements)


def _file_contents(
    draft: Evaluated, tree: Path, adapters: Path | None, shapes: Path | None, recorded: Path
) -> Iterator[tuple[Path, str | bytes]]:
    operator = draft.operator
    definition = destination_below(tree, operator.domain, f"{operator.name}.yaml")
    yield definition, _definition_text(draft, tree)
    releases = releases_with_opset(tree / "releases.yaml", draft.registry, operator.domain, draft.opset)
    if releases is not None:
        yield tree / "releases.yaml", releases
    yield from recorded_files(draft, recorded)
    page = destination_below(tree, "pages", operator.domain, f"{recorded.name}.md")
    _require_own(page, draft)
    yield page, operator_page(draft)
    for name, folder, suffix in ((ADAPTERS, adapters, ""), (SHAPES, shapes, "_shapes")):
        code = draft.folder.file(name)
        if not code.is_file() or not _has_code(code):
            continue
        if folder is None and tree.resolve() == OPSETS.resolve():
            remedy = "name a folder of adapters/ops with --adapters, and registry/shapes with --shapes"
            raise UsageError(f"no folder is given for {name}: {tree} has only definitions", remedy=remedy)
        module = module_name(operator.domain, operator.name, draft.opset).replace(".py", f"{suffix}.py")
        file = destination_below(folder or adapters or tree / "adapters", module)
        _require_own(file, draft)
        yield file, code.read_text("utf-8")
    if draft.retirement is None:
        reference = reference_file(tree, draft.version)
        _require_own(reference, draft)
        yield reference, _reference_text(draft.folder.file(REFERENCE).read_text("utf-8"), draft.version.id)
    if draft.supersedes_preview:
        yield superseded_definition(draft, tree)
    yield tree / LOCK, lock_with_operator(draft, tree)
    changelog = tree / CHANGELOG
    yield changelog, changelog_with_entry(changelog.read_text("utf-8") if changelog.is_file() else "", draft)
    proposal_file = draft.folder.file(PROPOSAL)
    accepted = edited_proposal(
        draft.folder, "state", "accepted", lambda before: set_value(before, "state", "accepted")
    )
    yield proposal_file, accepted


def _require_own(path: Path, draft: DefinedDraft) -> None:
    """Raise UsageError if a path exists although the tree lacks the version: another operator may own it."""
    is_accepted = draft.published is not None and len(draft.published.versions) > draft.position
    if os.path.lexists(path) and not is_accepted:
        reason, remedy = "already exists, and may belong to another operator", "move the file to another name"
        raise UsageError(reason, place=str(path), remedy=remedy)


def _definition_text(draft: DefinedDraft, tree: Path) -> str:
    """Return the text of the tree's definition with the proposed version; earlier versions stay verbatim."""
    operator, name, source = draft.operator, draft.operator.name, draft.folder.file(OPERATOR)
    target = tree / operator.domain / f"{name}.yaml"
    if draft.published is None or (draft.edits_version and draft.previous is None):
        text = HEADER + without_questions(source.read_text("utf-8").removeprefix(HEADER))
    else:
        block = without_questions(version_block(source, draft.position))
        kept = target.read_text("utf-8")
        if len(draft.published.versions) > draft.position:
            kept, _, _ = kept.partition(version_block(target, draft.position).rstrip("\n"))
        text = kept.rstrip("\n") + "\n" + block
    # Only the last version is copied: refuse if earlier versions in the proposal and the tree differ.
    try:
        written = _operator_of_text(text, operator, draft)
    except DefinitionError as error:  # the version inherits descriptions that the tree's definition lacks
        raise _not_appendable(draft, f": {error.reason}") from error
    if written != operator:
        raise _not_appendable(draft, " differs from the proposal's definition")
    return text


def _operator_of_text(text: str, operator: Operator, draft: DefinedDraft) -> Operator:
    """Return the operator that a text defines; raise DefinitionError unless it is valid and has this name."""
    with temporary_file(OPERATOR, text) as path:
        return load_operator(path, draft.registry.types, domain=operator.domain, name=operator.name)


def _not_appendable(draft: DefinedDraft, problem: str) -> DefinitionError:
    return DefinitionError(
        f"the tree's {draft.operator.name} with the new version appended{problem}",
        place=draft.folder.locate(OPERATOR),
        remedy="copy the tree's definition to operator.yaml and only append to it",
    )


def lock_with_operator(draft: DefinedDraft, tree: Path) -> str:
    """Return the text of `fingerprints.yaml` with new fingerprints of the changed operators.

    If the tree has no such file yet, the fingerprints of all its operators are included.
    """
    path = tree / LOCK
    lock = load_lock(path) if path.exists() else build_lock(operators_of_tree(draft.registry, tree))
    superseded = [_superseded_operator(draft)] if draft.supersedes_preview else []
    for operator in (draft.operator, *superseded):
        lock.setdefault(operator.domain, {})[operator.name] = operator_fingerprints(operator)
    return lock_text({domain: dict(sorted(names.items())) for domain, names in sorted(lock.items())})


def operators_of_tree(registry: Registry, tree: Path) -> list[Operator]:
    """Return the operators of a registry that have a definition file in the tree."""
    return [each for each in registry.operators() if (tree / each.domain / f"{each.name}.yaml").exists()]


def changelog_with_entry(text: str, draft: DefinedDraft) -> str:
    """Return the change log with an entry for the proposal added; the newest opset comes first."""
    text, entry = text or CHANGELOG_TITLE, _changelog_entry(draft)
    heading = f"## {draft.operator.domain} {draft.opset}\n"
    if heading in text:
        head, _, rest = text.partition(heading)
        # The new entry and the entries after it form one list: remove the empty line between them.
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

    Return `None` if the file stays unchanged: it does not exist, its last release already includes the opset,
    or no release lists the domain, such as a custom one.

    Raises:
        UsageError: other content would change, for example because the release is on several lines.
    """
    releases = registry.releases.onnx
    if not path.is_file() or not any(domain in each.opsets for each in releases.values()):
        return None
    name, newest = list(releases.items())[-1]
    if newest.opsets.get(domain, 0) >= opset:
        return None
    opsets = {**newest.opsets, domain: opset}
    lines = path.read_text("utf-8").splitlines()
    place = place_of(path, ("onnx", name))
    index = place.line - 1
    if newest.released:
        listed = ", ".join(f"{each}: {number}" for each, number in opsets.items())
        entry = f"{{ir_version: {newest.ir_version}, opsets: {{{listed}}}, released: false}}"
        lines.insert(index + 1, f'  "{_next_release(name)}": {entry}')
        changed = {_next_release(name): Release(ir_version=newest.ir_version, opsets=opsets, released=False)}
    else:
        lines[index] = re.sub(rf"(?<=[ {{]){re.escape(domain)}: \d+", f"{domain}: {opset}", lines[index])
        changed = {name: replace(newest, opsets=opsets)}
    text = "\n".join([*lines, ""])
    if _releases_of_text(text) != {**releases, **changed}:
        reason = f"cannot add opset {opset} of {domain} to the releases without changing other content"
        raise UsageError(reason, place=place, remedy=RELEASE_REMEDY)
    return text


def _releases_of_text(text: str) -> Mapping[str, Release]:
    """Return the releases of ONNX in the text of a `releases.yaml`; empty if the text is invalid."""
    with suppress(DefinitionError), temporary_file(RELEASES, text) as path:
        return Releases.load(path).onnx
    return {}


def _next_release(name: str) -> str:
    """Return the next minor release, such as `1.24` for `1.23`."""
    major, minor = name.split(".")[:2]
    return f"{major}.{int(minor) + 1}"


def _superseded_operator(draft: DefinedDraft) -> Operator:
    """Return the promoted experimental operator with a deprecation that names the stable operator.

    The rule `promotion.source` ensures that the operator exists.
    """
    operator_id = OperatorId.parse(draft.proposal.promotes)
    operator = draft.registry.operator(operator_id.op_type, operator_id.domain)
    assert operator is not None
    last = replace(operator.versions[-1], deprecation=_deprecation_of(draft))
    return replace(operator, versions=(*operator.versions[:-1], last))


def superseded_definition(draft: DefinedDraft, tree: Path) -> tuple[Path, str]:
    """Return the path of the experimental operator's definition, and its text with the deprecation.

    Raises:
        DefinitionError: the deprecation cannot be appended to the text.
    """
    operator_id, deprecation = OperatorId.parse(draft.proposal.promotes), _deprecation_of(draft)
    path = tree / operator_id.domain / f"{operator_id.op_type}.yaml"
    mapping = quote_yaml(deprecation.mapping)
    deprecation_line = f"  deprecation: {{replaced_by: {deprecation.replaced_by}, mapping: {mapping}}}"
    text = f"{path.read_text('utf-8').rstrip()}\n{deprecation_line}\n"
    operator = _superseded_operator(draft)
    with suppress(DefinitionError):
        if _operator_of_text(text, operator, draft) == operator:
            return path, text
    remedy = "end the file with the last version of the operator, without indentation of the list"
    raise DefinitionError("cannot append the deprecation", place=Place(str(path)), remedy=remedy)


def _deprecation_of(draft: DefinedDraft) -> Deprecation:
    mapping = " ".join(draft.proposal.mapping.split())
    return Deprecation(replaced_by=f"{draft.operator.domain}.{draft.operator.name}", mapping=mapping)


@dataclass(frozen=True)
class Released:
    """Release that was marked as released, its new operator versions, and the files that were changed."""

    name: str
    versions: tuple[OperatorId, ...]
    files: tuple[Path, ...]


def release(tree: Path, day: date | None = None) -> Released:
    """Mark the oldest unreleased release of a tree as released, and record fingerprints of all operators.

    The operator versions of the release become final: any later change of their definitions is an error.

    Raises:
        UsageError: the tree has no unreleased release, the release is not on one line, or a definition
            differs from its fingerprint.
        DefinitionError: the definitions in the tree are invalid.
    """
    path, registry = tree / RELEASES, registry_of_tree(tree, DEFAULT_DOMAIN)
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
        reason = "the release has no `released: false` on one line"
        raise UsageError(reason, place=Place(str(path), index + 1), remedy=RELEASE_REMEDY)
    files = {path: "\n".join([*lines, ""]), tree / LOCK: lock_text(build_lock(operators))}
    write_files(files)
    return Released(name, tuple(_new_versions(registry, name)), tuple(files))


def _new_versions(registry: Registry, name: str) -> list[OperatorId]:
    """Return the operator versions that a release adds; in `registry`, the release is still unreleased."""
    opsets = registry.releases.onnx[name].opsets
    listed = registry.get_all_schemas_with_history()
    released = {domain: registry.releases.released_opset(domain) or 0 for domain in opsets}
    return [
        each.id
        for each in listed
        if released.get(each.domain, each.since_version) < each.since_version <= opsets[each.domain]
    ]
