"""Rules for sign-offs and acceptance."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date

from opshift.checker.findings import Level
from opshift.proposals.content.draft import Written
from opshift.proposals.content.folder import fingerprint
from opshift.proposals.content.sign_off import NEEDED, same_person, valid_sign_offs
from opshift.proposals.rules.rule_table import Flaw, rule

APPROVED = 92
"""Days after which a sign-off of a preview operator expires: three months."""

REVIEW = "ONNX, Adding New Operator: review"


@rule("sign-off.author", Level.ERROR, source=REVIEW, remedy="remove it, and ask other people to sign off")
def the_author_does_not_sign_off(draft: Written) -> Iterator[Flaw]:
    """The author does not sign off the proposal."""
    for position, each in enumerate(draft.proposal.sign_offs):
        if same_person(each.name, draft.proposal.author.name):
            yield Flaw(f"{each.name} is the author", keys=("sign_offs", position))


@rule(
    "sign-off.void",
    Level.WARNING,
    source="docs/proposals.md",
    remedy="request a new sign-off, or revert the change",
)
def sign_offs_are_of_this_content(draft: Written) -> Iterator[Flaw]:
    """Every sign-off refers to the current content.

    A sign-off contains the fingerprint of the content, so every later change invalidates it.
    """
    current = fingerprint(draft.folder)
    valid = {each.name for each in valid_sign_offs(draft.folder)}
    for position, each in enumerate(draft.proposal.sign_offs):
        if each.fingerprint != current and each.name not in valid:
            yield Flaw(
                f"{each.name} signed off a different version of the content", keys=("sign_offs", position)
            )


@rule("sign-off.twice", Level.WARNING, source=REVIEW, remedy="remove one of the two sign-offs")
def nobody_signs_off_twice(draft: Written) -> Iterator[Flaw]:
    """A person signs off the same content once."""
    earlier: list[tuple[str, str]] = []
    for position, each in enumerate(draft.proposal.sign_offs):
        if any(
            same_person(each.name, name) and each.fingerprint == signed_fingerprint
            for name, signed_fingerprint in earlier
        ):
            yield Flaw(f"{each.name} signed off the same content twice", keys=("sign_offs", position))
        earlier.append((each.name, each.fingerprint))


@rule(
    "sign-off.count",
    Level.ERROR,
    source=REVIEW,
    remedy="run `opshift proposal sign --name ...`",
    gate="accept",
)
def two_have_signed_off(draft: Written) -> Iterator[Flaw]:
    """At least two people other than the author sign off the content before it is accepted."""
    count = len(valid_sign_offs(draft.folder))
    if count < NEEDED:
        yield Flaw(f"expected {NEEDED} valid sign-offs, got {count}", keys=("sign_offs",))


@rule(
    "preview.approval",
    Level.ERROR,
    source="ONNX, Experimental and preview operators",
    remedy="request new sign-offs",
    gate="accept",
)
def preview_approvals_are_recent(draft: Written) -> Iterator[Flaw]:
    """Operators of preview domains were signed off within the last three months.

    An older approval suggests that the experiment is no longer pursued.
    """
    if "preview" not in draft.proposal.operator.domain.split("."):
        return
    for each in valid_sign_offs(draft.folder):
        if _days_since(each.date) > APPROVED:
            position = draft.proposal.sign_offs.index(each)
            yield Flaw(
                f"{each.name} signed off on {each.date}, not within the last {APPROVED} days",
                keys=("sign_offs", position),
            )


def _days_since(day: str) -> float:
    """Return the number of days since a date; infinity if the text is not a date."""
    try:
        return (date.today() - date.fromisoformat(day)).days
    except ValueError:
        return math.inf


@rule("proposal.open", Level.ERROR, source="docs/proposals.md", remedy="start a new proposal", gate="accept")
def it_is_open(draft: Written) -> Iterator[Flaw]:
    """Accepted and withdrawn proposals are not accepted again."""
    if draft.proposal.state in ("accepted", "withdrawn"):
        yield Flaw(f"the proposal is already {draft.proposal.state}", keys=("state",))
