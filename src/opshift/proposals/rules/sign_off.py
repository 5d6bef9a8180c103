"""Rules for sign-offs and acceptance."""

import math
from datetime import date

from opshift.checker.findings import ERROR, WARNING
from opshift.proposals.content.draft import Draft
from opshift.proposals.content.folder import fingerprint
from opshift.proposals.content.reviewers import ReviewerList, is_same_person
from opshift.proposals.content.sign_off import REQUIRED_SIGN_OFFS
from opshift.proposals.rules.rule_table import ADDING, GUIDE, PREVIEW, Problems, rule
from opshift.registry.definition_files import REVIEWERS

APPROVAL_DAYS = 92
"""Days after which a sign-off of a preview operator expires: three months."""

REVIEW = f"{ADDING}: review"


@rule("sign-off.author", ERROR, REVIEW, "remove it, and ask other people to sign off")
def check_sign_off_author(draft: Draft) -> Problems:
    """The author does not sign off the proposal."""
    for position, each in enumerate(draft.proposal.sign_offs):
        if draft.reviewers.is_author(each, draft.proposal.author):
            yield draft.at_answer(f"{each.name} is the author", "sign_offs", position)


@rule("sign-off.void", WARNING, GUIDE, "request a new sign-off, or revert the change")
def check_sign_off_void(draft: Draft) -> Problems:
    """Every sign-off refers to the current content.

    A sign-off contains the fingerprint of the content, so every later change invalidates it.
    """
    current = fingerprint(draft.folder)
    valid = {each.name for each in draft.sign_offs}
    for position, each in enumerate(draft.proposal.sign_offs):
        if each.fingerprint != current and each.name not in valid:
            reason = f"{each.name} signed off a different version of the content"
            yield draft.at_answer(reason, "sign_offs", position)


@rule("sign-off.twice", WARNING, REVIEW, "remove one of the two sign-offs")
def check_sign_off_twice(draft: Draft) -> Problems:
    """A person signs off the same content once."""
    sign_offs = draft.proposal.sign_offs
    for position, each in enumerate(sign_offs):
        same_content = [one for one in sign_offs[:position] if one.fingerprint == each.fingerprint]
        if any(is_same_person(each.name, one.name) for one in same_content):
            yield draft.at_answer(f"{each.name} signed off the same content twice", "sign_offs", position)


@rule("sign-off.reviewer", ERROR, GUIDE, "remove it, or add the person to reviewers.yaml")
def check_sign_off_reviewer(draft: Draft) -> Problems:
    """If the tree has a list of reviewers, only they sign off."""
    for position, each in enumerate(draft.proposal.sign_offs):
        if problem := draft.reviewers.name_problem(each.name):
            yield draft.at_answer(problem, "sign_offs", position)


@rule("sign-off.signature", ERROR, GUIDE, "remove it, and sign off again with `--key`")
def check_sign_off_signature(draft: Draft) -> Problems:
    """If the tree has a list of allowed signers, every sign-off carries the signature of its reviewer.

    Everyone can write a name into a file; only the owner of a key can sign.
    """
    for position, each in enumerate(draft.proposal.sign_offs):
        if not draft.reviewers.name_problem(each.name) and (
            problem := draft.reviewers.signature_problem(each)
        ):
            yield draft.at_answer(problem, "sign_offs", position)


@rule("sign-off.trust", WARNING, GUIDE, "accept the change of the reviewers first, on its own")
def check_sign_off_trust(draft: Draft) -> Problems:
    """The proposal does not change who may sign it off.

    The reviewers and their keys are read from the revision or folder that `--trust` names.
    """
    tree = draft.registry.folders[-1]
    if draft.trusted is not None and not draft.reviewers.has_same_rules(ReviewerList(tree)):
        reason = f"{REVIEWERS} or its keys differ from the trusted copy, which applies"
        yield draft.at_answer(reason, "sign_offs")


@rule("sign-off.count", ERROR, REVIEW, "run `opshift proposal sign --name ...`", gate="accept")
def check_sign_off_count(draft: Draft) -> Problems:
    """At least two people other than the author sign off the content before it is accepted."""
    count = len(draft.sign_offs)
    if count < REQUIRED_SIGN_OFFS:
        yield draft.at_answer(f"expected {REQUIRED_SIGN_OFFS} valid sign-offs, got {count}", "sign_offs")


@rule("preview.approval", ERROR, PREVIEW, "request new sign-offs", gate="accept")
def check_preview_approval(draft: Draft) -> Problems:
    """Operators of preview domains were signed off within the last three months.

    An older approval suggests that the experiment is no longer pursued.
    """
    for each in draft.sign_offs if draft.is_preview else ():
        if _days_since(each.date) > APPROVAL_DAYS:
            reason = f"{each.name} signed off on {each.date}, not within the last {APPROVAL_DAYS} days"
            yield draft.at_answer(reason, "sign_offs", draft.proposal.sign_offs.index(each))


def _days_since(day: str) -> float:
    """Return the number of days since a date; infinity if the text is not a date."""
    try:
        return (date.today() - date.fromisoformat(day)).days
    except ValueError:
        return math.inf


@rule("proposal.open", ERROR, GUIDE, "start a new proposal", gate="accept")
def check_proposal_open(draft: Draft) -> Problems:
    """Accepted and withdrawn proposals are not accepted again."""
    if draft.proposal.state in ("accepted", "withdrawn"):
        yield draft.at_answer(f"the proposal is already {draft.proposal.state}", "state")
