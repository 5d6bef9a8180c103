"""Accept a proposal into a tree of definitions once every check passes."""

import ast
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from opshift.analysis.verification.numpy_types import array_element_type
from opshift.analysis.verification.references import OPERATOR_NAME
from opshift.model.atomic_files import destination_below, write_files
from opshift.model.errors import UsageError
from opshift.model.messages import TensorProto
from opshift.model.operator_ids import OperatorId
from opshift.model.types import fill_type
from opshift.opsets import OPSETS
from opshift.proposals.accepted_files import (
    changelog_with_entry,
    lock_with_operator,
    releases_with_opset,
    superseded_definition,
)
from opshift.proposals.check import check_proposal
from opshift.proposals.content.draft import DefinedDraft
from opshift.proposals.content.findings import NotAcceptable
from opshift.proposals.content.folder import ADAPTERS, OPERATOR, PROPOSAL, REFERENCE, SHAPES
from opshift.proposals.content.staged_registry import module_name, reference_file, registry_of_tree
from opshift.proposals.content.text_files import HEADER, version_block, without_questions
from opshift.proposals.evidence.cases import Arrays
from opshift.proposals.evidence.evidence import Evaluated, registered_shape_rules
from opshift.proposals.evidence.node_models import node_model, write_array
from opshift.proposals.page import operator_page
from opshift.registry.errors import DefinitionError
from opshift.registry.fingerprints import LOCK
from opshift.registry.loader import load_operator


def recorded_files(draft: Evaluated, folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield the files of a folder with one test per example.

    Cases that were derived for other element types are omitted.
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
            fill_type(value.type, array_element_type(array), array.shape)  # onnx.checker requires shapes
        yield folder / name / "model.onnx", model.SerializeToString(deterministic=True)
        data = folder / name / "test_data_set_0"
        yield from _tensor_files(data, "input", case.inputs)
        yield from _tensor_files(data, "output", each.outputs)


def _tensor_files(folder: Path, side: str, arrays: Arrays) -> Iterator[tuple[Path, bytes]]:
    """Yield a file for each array; the names in the tensors are those in the model."""
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
    """Folder of the recorded examples, which contains some of the files."""


def accept(
    path: Path,
    tree: Path,
    *,
    adapters: Path | None = None,
    shapes: Path | None = None,
    cases: Path | None = None,
    trusted: Path | None = None,
) -> Accepted:
    """Append the proposal's definition to a tree, with code, examples, page, fingerprints and log entry.

    The code of the proposal is executed. The tree is laid out like `opsets/`; a new one for a custom domain
    may be empty. The folder `trusted` has the reviewers, by default the tree. By default,
    adapters and shape rules go to its folder `adapters`, and examples to `cases`.

    Raises:
        NotAcceptable: a check reports an error. Nothing is written.
        InvalidProposal: the folder does not contain a proposal.
        DefinitionError: the definitions in the tree are invalid.
        UsageError: a new file would replace another one, would be outside of its folder, or no folder for
            code of opshift's own operators is given.
    """
    registry = registry_of_tree(tree)
    checked = check_proposal(path, registry, gate="accept", trusted=trusted)
    draft = checked.draft
    if checked.errors or not isinstance(draft, Evaluated):
        reason = f"{len(checked.errors)} errors remain"
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
        # An earlier form of the proposal had this example.
        if test / "model.onnx" not in texts:
            shutil.rmtree(test)
    return Accepted(draft.version.id, draft.opset, tuple(texts), recorded)


def _reference_text(text: str, operator: OperatorId) -> str:
    """Return the text of a reference with its operator version, which `--verify-with` reads."""
    line = f'{OPERATOR_NAME} = "{operator}"'
    changed, count = re.subn(rf"(?m)^{OPERATOR_NAME} = .*$", line, text)
    return changed if count else f"{text.rstrip()}\n\n\n{line}\n"


def _has_code(code: Path) -> bool:
    """Return whether a file has more than the imports and comments of its template."""
    statements = ast.parse(code.read_bytes()).body
    return not all(isinstance(each, ast.Import | ast.ImportFrom | ast.Expr) for each in statements)


def _file_contents(
    draft: Evaluated, tree: Path, adapters: Path | None, shapes: Path | None, recorded: Path
) -> Iterator[tuple[Path, str | bytes]]:
    """Yield each file to write, with its content."""
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
            raise UsageError(f"opshift's own {name.removesuffix('.py')} are not in its tree", remedy=remedy)
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
    proposal_text = proposal_file.read_text("utf-8")
    accepted_text, count = re.subn(r"(?m)^state:.*$", "state: accepted", proposal_text)
    yield proposal_file, accepted_text if count else f"state: accepted\n{proposal_text}"


def _require_own(path: Path, draft: DefinedDraft) -> None:
    """Raise UsageError if a file exists that another proposal wrote."""
    is_accepted = draft.published is not None and len(draft.published.versions) > draft.position
    if os.path.lexists(path) and not is_accepted:
        reason, remedy = "already exists, and may belong to another operator", "move the file to another name"
        raise UsageError(reason, place=str(path), remedy=remedy)


def _definition_text(draft: DefinedDraft, tree: Path) -> str:
    """Return the tree's definition file with the new version; the existing text is kept verbatim."""
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
    # Only the proposal's last version is copied, so its earlier part could differ from the tree.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / OPERATOR
        path.write_text(text, "utf-8")
        try:
            written = load_operator(path, draft.registry.types, domain=operator.domain, name=name)
        except DefinitionError as error:  # texts that the proposal's version inherits, but the tree lacks
            raise _not_appendable(draft, f": {error.reason}") from error
    if written != operator:
        raise _not_appendable(draft, " differs from the proposal's definition")
    return text


def _not_appendable(draft: DefinedDraft, problem: str) -> DefinitionError:
    return DefinitionError(
        f"the tree's {draft.operator.name} with the new version appended{problem}",
        place=draft.folder.place(OPERATOR),
        remedy="copy the tree's definition to operator.yaml and only append to it",
    )
