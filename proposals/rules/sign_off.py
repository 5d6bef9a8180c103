"""Rules for sign-offs and acceptance."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date

from opshift.checker.findings import Level
from opshift.proposals.content.draft import Draft
from opshift.proposals.content.folder import fingerprint
from opshift.proposals.content.sign_off import REQUIRED_SIGN_OFFS, is_same_person, valid_sign_offs
from opshift.proposals.rules.rule_table import ProposalProblem, rule

APPROVAL_DAYS = 92
"""Days after which a sign-off of a preview operator expires: three months."""

REVIEW = "ONNX, Adding New Operator: review"


@rule("sign-off.author", Level.ERROR, source=REVIEW, remedy="remove it, and ask other people to sign off")
def check_sign_off_author(draft: Draft) -> Iterator[ProposalProblem]:
    """The author does not sign off the proposal."""
    for position, each in enumerate(draft.proposal.sign_offs):
        if is_same_person(each.name, draft.proposal.author.name):
            yield ProposalProblem(f"{each.name} is the author", keys=("sign_offs", position))


@rule(
    "sign-off.void",
    Level.WARNING,
    source="docs/proposals.md",
    remedy="request a new sign-off, or revert the change",
)
def check_sign_off_void(draft: Draft) -> Iterator[ProposalProblem]:
    """Every sign-off refers to the current content.

    A sign-off contains the fingerprint of the content, so every later change invalidates it.
    """
    current = fingerprint(draft.folder)
    valid = {each.name for each in valid_sign_offs(draft.folder)}
    for position, each in enumerate(draft.proposal.sign_offs):
        if each.fingerprint != current and each.name not in valid:
            yield ProposalProblem(
                f"{each.name} signed off a different version of the content", keys=("sign_offs", position)
            )


@rule("sign-off.twice", Level.WARNING, source=REVIEW, remedy="remove one of the two sign-offs")
def check_sign_off_twice(draft: Draft) -> Iterator[ProposalProblem]:
    """A person signs off the same content once."""
    earlier: list[tuple[str, str]] = []
    for position, each in enumerate(draft.proposal.sign_offs):
        if any(
            is_same_person(each.name, name) and each.fingerprint == signed_fingerprint
            for name, signed_fingerprint in earlier
        ):
            yield ProposalProblem(
                f"{each.name} signed off the same content twice", keys=("sign_offs", position)
            )
        earlier.append((each.name, each.fingerprint))


@rule(
    "sign-off.count",
    Level.ERROR,
    source=REVIEW,
    remedy="run `opshift proposal sign --name ...`",
    gate="accept",
)
def check_sign_off_count(draft: Draft) -> Iterator[ProposalProblem]:
    """At least two people other than the author sign off the content before it is accepted."""
    count = len(valid_sign_offs(draft.folder))
    if count < REQUIRED_SIGN_OFFS:
        yield ProposalProblem(
            f"expected {REQUIRED_SIGN_OFFS} valid sign-offs, got {count}", keys=("sign_offs",)
        )


@rule(
    "preview.approval",
    Level.ERROR,
    source="ONNX, Experimental and preview operators",
    remedy="request new sign-offs",
    gate="accept",
)
def check_preview_approval(draft: Draft) -> Iterator[ProposalProblem]:
    """Operators of preview domains were signed off within the last three months.

    An older approval suggests that the experiment is no longer pursued.
    """
    if "preview" not in draft.proposal.operator.domain.split("."):
        return
    for each in valid_sign_offs(draft.folder):
        if _days_since(each.date) > APPROVAL_DAYS:
            position = draft.proposal.sign_offs.index(each)
            yield ProposalProblem(
                f"{each.name} signed off on {each.date}, not within the last {APPROVAL_DAYS} days",
                keys=("sign_offs", position),
            )


def _days_since(day: str) -> float:
    """Return the number of days since a date; infinity if the text is not a date."""
    try:
        return (date.today() - date.fromisoformat(day)).days
    except ValueError:
        return math.inf


@rule("proposal.open", Level.ERROR, source="docs/proposals.md", remedy="start a new proposal", gate="accept")
def check_proposal_open(draft: Draft) -> Iterator[ProposalProblem]:
    """Accepted and withdrawn proposals are not accepted again."""
    if draft.proposal.state in ("accepted", "withdrawn"):
        yield ProposalProblem(f"the proposal is already {draft.proposal.state}", keys=("state",))
