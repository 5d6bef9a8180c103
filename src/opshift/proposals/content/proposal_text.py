"""Edit the text of `proposal.yaml`, and check that all other content stays."""

import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from opshift.model.errors import UsageError
from opshift.proposals.content.folder import PROPOSAL, ProposalFolder
from opshift.registry.errors import DefinitionError


def edited_proposal(folder: ProposalFolder, edit: Callable[[str], str], **changes: object) -> str:
    """Return the text of `proposal.yaml` after an edit that changes only the given fields.

    Raises:
        UsageError: the edited file would be invalid or have other content.
    """
    expected = folder.proposal.model_copy(update=changes)
    with (
        tempfile.TemporaryDirectory() as temporary,
        suppress(UnicodeDecodeError, DefinitionError),
    ):
        text = edit(folder.file(PROPOSAL).read_bytes().decode())
        copy = ProposalFolder(Path(temporary))
        copy.file(PROPOSAL).write_bytes(text.encode())
        if copy.proposal == expected:
            return text
    (field,) = changes
    remedy = f"start `{field}` on a new line, without anchors, and save the file as UTF-8"
    reason = f"cannot change {field!r} in proposal.yaml without changing other content"
    raise UsageError(reason, place=folder.locate(PROPOSAL, field), remedy=remedy)
