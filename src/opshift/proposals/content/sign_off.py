"""Find the valid sign-offs of a proposal's current content, and append a sign-off."""

from collections.abc import Iterable
from datetime import date
from pathlib import Path

from opshift.model.atomic_files import write_files
from opshift.model.errors import UsageError
from opshift.proposals.content.folder import (
    PROPOSAL,
    ProposalFolder,
    edited_proposal,
    fingerprint,
    quote_yaml,
)
from opshift.proposals.content.models import SignOff
from opshift.proposals.content.reviewers import EVERYONE, ReviewerList, is_same_person, key_of, signature_of
from opshift.registry.yaml_edits import append_item

SIGN_REMEDY = "pass the name of a reviewer with --name, and the file of their SSH key with --key"

REQUIRED_SIGN_OFFS = 2
"""Number of required sign-offs by people other than the author."""


def sign_off_count(valid: int) -> str:
    """Return the number of valid sign-offs, such as `1 of 2`; `3` if there are more than required."""
    return str(valid) if valid > REQUIRED_SIGN_OFFS else f"{valid} of {REQUIRED_SIGN_OFFS}"


def valid_sign_offs(folder: ProposalFolder, reviewers: ReviewerList) -> tuple[SignOff, ...]:
    """Return the sign-offs of the current content by reviewers other than the author, one per person.

    Sign-offs with similar names, the same identity or the same key are by one person.
    """
    current, author = fingerprint(folder), folder.proposal.author
    valid: list[SignOff] = []
    for each in folder.proposal.sign_offs:
        is_current = each.fingerprint == current and not reviewers.is_author(each, author)
        if is_current and not reviewers.problem(each) and not _signer_of(each, valid, reviewers):
            valid.append(each)
    return tuple(valid)


def _signer_of(sign_off: SignOff, others: Iterable[SignOff], reviewers: ReviewerList) -> SignOff | None:
    """Return the sign-off in `others` by the same person, or `None`."""
    key, identity = key_of(sign_off.signature), reviewers.identity_of(sign_off).casefold()
    for each in others:
        has_key = key and key == key_of(each.signature)
        has_identity = identity and identity == reviewers.identity_of(each).casefold()
        if has_key or has_identity or is_same_person(sign_off.name, each.name):
            return each
    return None


def sign(
    folder: ProposalFolder,
    name: str,
    reviewers: ReviewerList = EVERYONE,
    *,
    key: Path | None = None,
    day: date | None = None,
) -> SignOff:
    """Append a sign-off to `proposal.yaml`, signed if an SSH key is given; keep the rest of the file.

    Raises:
        UsageError: the name is empty, the person is the author or has already signed off this content, or
            the sign-off would not count: the person is not a reviewer, or the key is missing or unknown. Or
            the list cannot be changed without changing other content of the file.
    """
    proposal, name = folder.proposal, name.strip()
    if not name:
        raise UsageError("a sign-off needs a name", remedy="pass it with --name")
    signed = SignOff(name=name, date=str(day or date.today()), fingerprint=fingerprint(folder))
    if key is not None:
        signed = signed.model_copy(update={"signature": signature_of(signed, key)})
    if reviewers.is_author(signed, proposal.author):
        raise UsageError(f"{name} is the author of the proposal", remedy="ask another person to sign off")
    if earlier := _signer_of(signed, valid_sign_offs(folder, reviewers), reviewers):
        reason = f"{earlier.name} has already signed off this content"
        reason += f", with the identity or key of {name}" if earlier.name != name else ""
        raise UsageError(reason, remedy="ask another person to sign off")
    if problem := reviewers.problem(signed):
        raise UsageError(problem, remedy=SIGN_REMEDY)
    given = signed.model_dump(exclude_defaults=True)
    item = f"{{{', '.join(f'{field}: {quote_yaml(value)}' for field, value in given.items())}}}"
    signed_off = (*proposal.sign_offs, signed)
    text = edited_proposal(
        folder, "sign_offs", signed_off, lambda before: append_item(before, "sign_offs", item)
    )
    write_files({folder.file(PROPOSAL): text})
    return signed
