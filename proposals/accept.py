"""Move a proposal into a tree of definitions, once nothing stands in its way."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from opshift.proposals.changelog import logged
from opshift.proposals.check import check_proposal
from opshift.proposals.draft import Defined
from opshift.proposals.errors import NotAcceptable
from opshift.proposals.evidence.evidence import Evidence
from opshift.proposals.folder import ADAPTERS, OPERATOR, PROPOSAL
from opshift.proposals.lock import locked_with
from opshift.proposals.promotion import superseded_file
from opshift.proposals.recorded import recorded
from opshift.proposals.releases import with_opset
from opshift.proposals.texts import HEADER, up_to_version, version_block, without_header
from opshift.proposals.trees import tree_registry
from opshift.proposals.writing import write_files
from opshift.registry.errors import DefinitionError
from opshift.registry.fingerprints import LOCK
from opshift.registry.loader import read_operator
from opshift.registry.names import OperatorId

CHANGES = "CHANGELOG.md"


@dataclass(frozen=True)
class Accepted:
    """What was accepted, and the files that were written or changed."""

    operator: OperatorId
    opset: int
    files: tuple[Path, ...]


def accept(path: Path, tree: Path, *, adapters: Path | None = None, cases: Path | None = None) -> Accepted:
    """Append the proposal's definition to a tree of definitions, with all that belongs to it.

    Args:
        path: the proposal's folder. Its code is run.
        tree: a folder as `opsets/`, or one for a domain of one's own, which may be empty.
        adapters: where its adapters go; by default `adapters` in the tree.
        cases: where its examples go; by default `cases` in the tree.

    Raises:
        NotAcceptable: something is open; nothing was written.
        InvalidProposal: the folder holds no proposal.
        DefinitionError: the tree's definitions are wrong.
    """
    registry = tree_registry(tree)
    checked = check_proposal(path, registry, gate="accept")
    draft, evidence = checked.draft, checked.evidence
    if checked.errors or not isinstance(draft, Defined) or evidence is None:
        raise NotAcceptable(
            f"{len(checked.errors)} findings are open", checked.errors, remedy="settle each of them"
        )
    texts = dict(_texts(draft, evidence, tree, adapters or tree / "adapters", cases or tree / "cases"))
    write_files(texts)
    return Accepted(draft.version.id, draft.opset, tuple(texts))


def _texts(
    draft: Defined, evidence: Evidence, tree: Path, adapters: Path, cases: Path
) -> Iterator[tuple[Path, str]]:
    """Every file and its content."""
    operator = draft.operator
    yield tree / operator.domain / f"{operator.name}.yaml", _definition(draft, tree)
    releases = with_opset(tree / "releases.yaml", draft.registry, operator.domain, draft.opset)
    if releases is not None:
        yield tree / "releases.yaml", releases
    yield cases / operator.domain / f"{operator.name}-{draft.opset}.yaml", recorded(evidence)
    code = draft.folder.file(ADAPTERS)
    if code.is_file():
        yield adapters / f"{_snake(operator.name)}_{draft.opset}.py", code.read_text("utf-8")
    if draft.proposal.kind == "promotion":
        yield superseded_file(draft, tree)
    yield tree / LOCK, locked_with(draft, tree)
    changes = tree / CHANGES
    yield changes, logged(changes.read_text("utf-8") if changes.is_file() else "", draft)
    stated = draft.folder.file(PROPOSAL)
    yield stated, _closed(stated.read_text("utf-8"))


def _closed(text: str) -> str:
    """A `proposal.yaml` whose state is that it is accepted."""
    closed, count = re.subn(r"(?m)^state:.*$", "state: accepted", text)
    return closed if count else f"state: accepted\n{text}"


def _definition(draft: Defined, tree: Path) -> str:
    """The tree's file with the version in it; what is there already stays as it is written."""
    operator, source = draft.operator, draft.folder.file(OPERATOR)
    target = tree / operator.domain / f"{operator.name}.yaml"
    if draft.published is None:
        text = HEADER + without_header(source.read_text("utf-8"))
    else:
        block = version_block(source, draft.position)
        is_replaced = len(draft.published.versions) > draft.position
        kept = up_to_version(target, draft.position) if is_replaced else target.read_text("utf-8")
        text = kept.rstrip("\n") + "\n" + block
    _require_same(text, draft)
    return text


def _require_same(text: str, draft: Defined) -> None:
    """What is written is what was reviewed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "operator.yaml"
        path.write_text(text, "utf-8")
        name = draft.operator.name
        found = read_operator(path, draft.registry.types, domain=draft.operator.domain, name=name)
    if found != draft.operator:
        raise DefinitionError(
            f"the tree's {name} with the new version is not what the proposal says",
            place=draft.folder.place(OPERATOR),
            remedy="let operator.yaml begin as the tree's file does, and only append",
        )


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
