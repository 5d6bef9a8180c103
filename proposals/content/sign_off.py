"""Sign-offs of a proposal's current content."""

from datetime import date

from opshift.model.atomic_files import write_files
from opshift.model.errors import UsageError
from opshift.proposals.content.folder import PROPOSAL, ProposalFolder, fingerprint
from opshift.proposals.content.models import Proposal, SignOff
from opshift.proposals.content.text_files import quote_yaml

REQUIRED_SIGN_OFFS = 2
"""Number of required sign-offs by people other than the author."""


def is_same_person(one: str, other: str) -> bool:
    """Return whether two names are equal, ignoring case and repeated spaces."""
    return " ".join(one.casefold().split()) == " ".join(other.casefold().split())


def valid_sign_offs(folder: ProposalFolder) -> tuple[SignOff, ...]:
    """Return the sign-offs of the current content by people other than the author, one per person."""
    current, author = fingerprint(folder), folder.proposal.author.name
    valid: list[SignOff] = []
    for each in folder.proposal.sign_offs:
        is_new = not any(is_same_person(each.name, other.name) for other in valid)
        if each.fingerprint == current and is_new and not is_same_person(each.name, author):
            valid.append(each)
    return tuple(valid)


def sign(folder: ProposalFolder, name: str, day: date | None = None) -> SignOff:
    """Append a sign-off to `proposal.yaml`; the rest of the file stays unchanged.

    Raises:
        UsageError: the name is empty, that of the author, or that of a person who signed this content off.
    """
    proposal = folder.proposal
    if not name.strip():
        raise UsageError("a sign-off needs a name", remedy="pass it with --name")
    if is_same_person(name, proposal.author.name):
        raise UsageError(f"{name} is the author of the proposal", remedy="ask another person to sign off")
    if any(is_same_person(name, each.name) for each in valid_sign_offs(folder)):
        reason = f"{name} has already signed off this content"
        raise UsageError(reason, remedy="ask another person to sign off")
    signed = SignOff(name=name.strip(), date=str(day or date.today()), fingerprint=fingerprint(folder))
    path = folder.file(PROPOSAL)
    write_files({path: _append_sign_off(path.read_text("utf-8"), proposal, signed, folder)})
    return signed


def _append_sign_off(text: str, proposal: Proposal, signed: SignOff, folder: ProposalFolder) -> str:
    """Return the file with a sign-off appended to the list.

    The file is edited as lines, because dumping it as YAML would lose comments and layout.
    """
    lines = text.splitlines()
    fields = ", ".join(f"{key}: {quote_yaml(value)}" for key, value in signed.model_dump().items())
    item = f"- {{{fields}}}"
    if "sign_offs" not in proposal.model_fields_set:
        return "\n".join([*lines, "sign_offs:", item, ""])
    start_line = folder.place(PROPOSAL, "sign_offs").line
    lines[start_line - 1] = "sign_offs:"  # an empty list may be written as `[]` on this line
    rest = range(start_line, len(lines))
    end = next((i for i in rest if not lines[i].startswith((" ", "-"))), len(lines))
    return "\n".join([*lines[:end], item, *lines[end:], ""])
