"""Read the files of a proposal's folder, and edit their text, without executing the proposal's code."""

import hashlib
import json
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from opshift.model.errors import Place, UsageError
from opshift.proposals.content.findings import InvalidProposal
from opshift.proposals.content.models import Example, ExampleFile, Proposal
from opshift.registry.errors import DefinitionError
from opshift.registry.loader import load_operator
from opshift.registry.models import Operator
from opshift.registry.record import from_file_content
from opshift.registry.type_sets import TypeSets
from opshift.registry.yaml_files import load_yaml, place_of

PROPOSAL, OPERATOR, EXAMPLES = "proposal.yaml", "operator.yaml", "examples.yaml"
REFERENCE, ADAPTERS, SHAPES = "reference.py", "adapters.py", "shapes.py"

PROPOSAL_FILES = (PROPOSAL, OPERATOR, EXAMPLES, REFERENCE, ADAPTERS, SHAPES)
"""Files that make up a proposal. Other files in the folder are ignored."""


HEADER = "# yaml-language-server: $schema=../schema.json\n"
"""Schema comment for editors, the first line of operator files."""

TEMPLATES = Path(__file__).parents[1] / "templates"
"""Folder of the templates for new proposals."""


@dataclass(frozen=True)
class ProposalFolder:
    """Folder of a proposal."""

    path: Path

    def file(self, name: str) -> Path:
        """Return the path of a file of the proposal, whether or not it exists."""
        return self.path / name

    def locate(self, name: str, *keys: int | str) -> Place:
        """Return the place of the item at the path `keys` in a YAML file.

        The line is that of the innermost existing item on the path; it is 1 for any other file.
        """
        path = self.file(name)
        is_readable = path.exists() and path.suffix == ".yaml"
        try:
            return Place(str(path), place_of(path, keys).line if is_readable else 1)
        except Exception:  # the rule that reads the file reports invalid YAML
            return Place(str(path), 1)

    @cached_property
    def proposal(self) -> Proposal:
        """Content of `proposal.yaml`.

        Raises:
            DefinitionError: the file is invalid.
            InvalidProposal: the file does not exist.
            UsageError: the folder does not exist.
        """
        if not self.path.is_dir():
            remedy = "correct the path, or create a proposal with `opshift proposal new`"
            raise UsageError("folder does not exist", place=str(self.path), remedy=remedy)
        if not self.file(PROPOSAL).is_file():
            raise InvalidProposal(
                "the folder is not a proposal: proposal.yaml is missing",
                place=str(self.path),
                remedy="create a proposal with `opshift proposal new`",
            )
        return from_file_content(Proposal, load_yaml(self.file(PROPOSAL)), self.file(PROPOSAL))

    @cached_property
    def examples(self) -> tuple[Example, ...]:
        """Examples of `examples.yaml`; empty if the file does not exist.

        Raises:
            DefinitionError: the file is invalid.
        """
        path = self.file(EXAMPLES)
        return read_examples(path) if path.is_file() else ()

    def operator(self, types: TypeSets) -> Operator:
        """Read `operator.yaml`, which has the format of the registry's definitions.

        Raises:
            DefinitionError: the file is missing, invalid, or defines a different operator.
        """
        named = self.proposal.operator
        return load_operator(self.file(OPERATOR), types, domain=named.domain, name=named.name, draft=True)


def read_examples(path: Path) -> tuple[Example, ...]:
    """Read a file of examples; raise a DefinitionError if it is invalid."""
    return from_file_content(ExampleFile, load_yaml(path), path).examples


def fingerprint(folder: ProposalFolder) -> str:
    """Return 32 hexadecimal digits of a SHA-256 digest of all files, without the state and the sign-offs.

    The layout and comments of `proposal.yaml`, and the line endings of all files, do not change the digest.
    """
    digest = hashlib.sha256()
    answers = folder.proposal.model_dump(mode="json", exclude={"state", "sign_offs"})
    digest.update(json.dumps(answers, sort_keys=True).encode())
    for name in PROPOSAL_FILES:
        path = folder.file(name)
        if name != PROPOSAL and path.is_file():
            # git may check files out with either line ending
            content = path.read_bytes().replace(b"\r\n", b"\n")
            # Name and length precede the content, so that bytes cannot move between files unnoticed.
            digest.update(f"\n{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:32]


def without_questions(text: str) -> str:
    """Return the text of a definition without comments from the templates, which address the author."""
    templates = (path.read_text("utf-8") for path in TEMPLATES.glob("*.yaml.template"))
    lines = (line.strip() for template in templates for line in template.splitlines())
    questions = {line for line in lines if line.startswith("#")}
    return "".join(line for line in text.splitlines(keepends=True) if line.strip() not in questions)


def version_block(path: Path, position: int) -> str:
    """Return the text of the version at index `position` in an operator file."""
    lines = path.read_text("utf-8").splitlines()
    start = place_of(path, ("versions", position)).line - 1
    end = start + 1
    while end < len(lines) and (lines[end].startswith("  ") or not lines[end].strip()):
        end += 1
    return "\n".join(lines[start:end]).rstrip() + "\n"


def without_key(block: str, key: str) -> str:
    """Return the text of a version, as from `version_block`, without a key and its value."""
    # The value may be a list at the indentation of its key, or a text with empty lines.
    return re.sub(rf"^  {key}:.*\n(?:(?:   |  -).*\n|[ \t]*\n)*", "", block, flags=re.MULTILINE)


def quote_yaml(text: str) -> str:
    """Return a text as a single-quoted YAML scalar."""
    return "'" + text.replace("'", "''") + "'"


@contextmanager
def temporary_file(name: str, text: str) -> Iterator[Path]:
    """Write a text to a file in a new folder, and remove the folder afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(text.encode())
        yield path


def edited_proposal(folder: ProposalFolder, field: str, value: object, edit: Callable[[str], str]) -> str:
    """Return the text of `proposal.yaml` after an edit that only sets a field to a value.

    Raises:
        UsageError: the edited file would be invalid or have other content.
    """
    expected = folder.proposal.model_copy(update={field: value})
    with suppress(UnicodeDecodeError, DefinitionError):
        text = edit(folder.file(PROPOSAL).read_bytes().decode())
        with temporary_file(PROPOSAL, text) as path:
            if ProposalFolder(path.parent).proposal == expected:
                return text
    remedy = f"start `{field}` on a new line, without anchors, and save the file as UTF-8"
    reason = f"cannot change {field!r} in proposal.yaml without changing other content"
    raise UsageError(reason, place=folder.locate(PROPOSAL, field), remedy=remedy)
