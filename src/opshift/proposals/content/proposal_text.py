"""Edit the text of `proposal.yaml`, and check that all other content stays."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from opshift.model.errors import UsageError
from opshift.proposals.content.folder import PROPOSAL, ProposalFolder
from opshift.registry.errors import DefinitionError


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
