"""Fingerprint of the content of a proposal."""

from __future__ import annotations

import hashlib
import json

from opshift.proposals.folder import FILES, PROPOSAL, Folder


def fingerprint(folder: Folder) -> str:
    """Return a digest of the reviewed content: every file, without the state and the sign-offs.

    The layout and comments of `proposal.yaml` and the line endings of all files do not affect it.

    Returns:
        The first 32 hexadecimal digits of a SHA-256 digest.
    """
    digest = hashlib.sha256()
    answers = folder.proposal.model_dump(mode="json", exclude={"state", "sign_offs"})
    digest.update(json.dumps(answers, sort_keys=True).encode())
    for name in FILES:
        path = folder.file(name)
        if name != PROPOSAL and path.is_file():
            # Git may check files out with either line ending.
            content = path.read_bytes().replace(b"\r\n", b"\n")
            # Name and length delimit the content, so that bytes cannot move between files unnoticed.
            digest.update(f"\n{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:32]
