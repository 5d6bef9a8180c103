"""Record that somebody consents to a proposal as it is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from opshift.converter.errors import UsageError
from opshift.proposals.fingerprint import fingerprint
from opshift.proposals.folder import PROPOSAL, Folder
from opshift.proposals.models import Proposal, SignOff
from opshift.proposals.texts import quoted
from opshift.proposals.writing import write_files

NEEDED = 2
"""How many have to sign off, none of them the author."""


def same_person(one: str, other: str) -> bool:
    """Whether two names are written the same, but for case and spaces."""
    return " ".join(one.casefold().split()) == " ".join(other.casefold().split())


def valid_sign_offs(folder: Folder) -> tuple[SignOff, ...]:
    """Those that count: of the content as it is, by others than the author, each person once."""
    current, author = fingerprint(folder), folder.proposal.author.name
    found: list[SignOff] = []
    for each in folder.proposal.sign_offs:
        is_new = not any(same_person(each.name, other.name) for other in found)
        if each.fingerprint == current and is_new and not same_person(each.name, author):
            found.append(each)
    return tuple(found)


def sign(folder: Folder, name: str, day: date | None = None) -> SignOff:
    """Append a sign-off to `proposal.yaml`; nothing else in the file changes.

    Raises:
        UsageError: the name is the author's, empty, or has signed this content.
    """
    proposal = folder.proposal
    if not name.strip():
        raise UsageError("a sign-off needs a name", remedy="give one with --name")
    if same_person(name, proposal.author.name):
        raise UsageError(f"{name} is the author", remedy="somebody else has to sign off")
    if any(same_person(name, each.name) for each in valid_sign_offs(folder)):
        raise UsageError(f"{name} has signed off this content", remedy="somebody else has to sign off")
    signed = SignOff(name=name.strip(), date=str(day or date.today()), fingerprint=fingerprint(folder))
    path = folder.file(PROPOSAL)
    write_files({path: _with(path.read_text("utf-8"), proposal, signed, folder)})
    return signed


def _with(text: str, proposal: Proposal, signed: SignOff, folder: Folder) -> str:
    """The file with one more sign-off behind the others; a list that is empty may be written as `[]`."""
    lines = text.splitlines()
    fields = ", ".join(f"{key}: {quoted(value)}" for key, value in signed.model_dump().items())
    item = f"- {{{fields}}}"
    if "sign_offs" not in proposal.model_fields_set:
        return "\n".join([*lines, "sign_offs:", item, ""])
    at = folder.place(PROPOSAL, "sign_offs").line
    lines[at - 1] = "sign_offs:"
    last = next(_ends(lines, at))
    return "\n".join([*lines[:last], item, *lines[last:], ""])


def _ends(lines: list[str], start: int) -> Iterator[int]:
    """The first line behind the list that begins at `start`."""
    for position in range(start, len(lines)):
        if not lines[position].startswith((" ", "-")):
            yield position
    yield len(lines)
