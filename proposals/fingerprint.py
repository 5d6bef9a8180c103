"""What identifies the content of a proposal."""

from __future__ import annotations

import hashlib
import json

from opshift.proposals.folder import FILES, PROPOSAL, Folder


def fingerprint(folder: Folder) -> str:
    """A digest of all that reviewers consent to: every file but for the state and the sign-offs.

    The layout and comments of `proposal.yaml` do not count, nor how lines end.
    """
    digest = hashlib.sha256()
    stated = folder.proposal.model_dump(mode="json", exclude={"state", "sign_offs"})
    digest.update(json.dumps(stated, sort_keys=True).encode())
    for name in FILES:
        path = folder.file(name)
        if name != PROPOSAL and path.is_file():
            content = path.read_bytes().replace(b"\r\n", b"\n")
            digest.update(f"\n{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:32]
