"""Who has to consent."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date

from opshift.proposals.draft import Written
from opshift.proposals.findings import Level
from opshift.proposals.fingerprint import fingerprint
from opshift.proposals.rules.table import Flaw, rule
from opshift.proposals.signing import NEEDED, same_person, valid_sign_offs

APPROVED = 92
"""How many days an approval of an experiment lasts."""
REVIEW = "ONNX, Adding New Operator: review"


@rule("sign-off.author", Level.ERROR, source=REVIEW, remedy="take it out; others sign off")
def the_author_does_not_sign_off(draft: Written) -> Iterator[Flaw]:
    """Nobody signs off a proposal of their own."""
    for position, each in enumerate(draft.proposal.sign_offs):
        if same_person(each.name, draft.proposal.author.name):
            yield Flaw(f"{each.name} is the author", keys=("sign_offs", position))


@rule(
    "sign-off.void",
    Level.WARNING,
    source="docs/proposals.md",
    remedy="ask for a new one, or take back the change",
)
def sign_offs_are_of_this_content(draft: Written) -> Iterator[Flaw]:
    """A sign-off is of the content as it is.

    It holds the content's fingerprint; every later change of what was reviewed makes it void.
    """
    current = fingerprint(draft.folder)
    valid = {each.name for each in valid_sign_offs(draft.folder)}
    for position, each in enumerate(draft.proposal.sign_offs):
        if each.fingerprint != current and each.name not in valid:
            yield Flaw(f"{each.name} signed off other content", keys=("sign_offs", position))


@rule("sign-off.twice", Level.WARNING, source=REVIEW, remedy="take one of them out")
def nobody_signs_off_twice(draft: Written) -> Iterator[Flaw]:
    """Everybody signs off a content once."""
    seen: list[tuple[str, str]] = []
    for position, each in enumerate(draft.proposal.sign_offs):
        if any(same_person(each.name, name) and each.fingerprint == of for name, of in seen):
            yield Flaw(f"{each.name} signed off twice", keys=("sign_offs", position))
        seen.append((each.name, each.fingerprint))


@rule(
    "sign-off.count", Level.ERROR, source=REVIEW, remedy="`opshift proposal sign --name ...`", gate="accept"
)
def two_have_signed_off(draft: Written) -> Iterator[Flaw]:
    """At least two others than the author sign off the content before it is accepted."""
    count = len(valid_sign_offs(draft.folder))
    if count < NEEDED:
        yield Flaw(f"it has {count} valid sign-offs, and needs {NEEDED}", keys=("sign_offs",))


@rule(
    "preview.approval",
    Level.ERROR,
    source="ONNX, Experimental and preview operators",
    remedy="ask for new sign-offs",
    gate="accept",
)
def preview_approvals_are_recent(draft: Written) -> Iterator[Flaw]:
    """What enters a preview domain was signed off within the last three months.

    An experiment that nobody has looked at for so long is no longer one that anybody waits for.
    """
    if "preview" not in draft.proposal.operator.domain.split("."):
        return
    for each in valid_sign_offs(draft.folder):
        if _days_since(each.date) > APPROVED:
            position = draft.proposal.sign_offs.index(each)
            yield Flaw(f"{each.name} signed off on {each.date}", keys=("sign_offs", position))


def _days_since(day: str) -> float:
    """How long ago a date is; forever if it is none."""
    try:
        return (date.today() - date.fromisoformat(day)).days
    except ValueError:
        return math.inf


@rule("proposal.open", Level.ERROR, source="docs/proposals.md", remedy="make a new proposal", gate="accept")
def it_is_open(draft: Written) -> Iterator[Flaw]:
    """What is accepted or withdrawn is not accepted again."""
    if draft.proposal.state in ("accepted", "withdrawn"):
        yield Flaw(f"the proposal is {draft.proposal.state}", keys=("state",))
