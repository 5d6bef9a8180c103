"""Rules for `proposal.yaml`."""

import difflib

from opshift.checker.findings import ERROR, INFO, WARNING
from opshift.model.message_text import did_you_mean
from opshift.proposals.content.draft import DefinedDraft, Draft, InvalidFile
from opshift.proposals.content.folder import PROPOSAL
from opshift.proposals.rules.rule_table import ADDING, GUIDE, Problems, rule
from opshift.registry.models import OperatorVersion

MIN_ANSWER_LENGTH = 20
"""Number of characters below which an answer counts as missing."""

MAX_SIMILAR = 5
"""Maximum number of similar operators in a finding."""


@rule("proposal.format", ERROR, GUIDE, "follow the template of `opshift proposal new`")
def check_proposal_format(file: InvalidFile) -> Problems:
    """`proposal.yaml` is valid YAML with the keys of a proposal.

    An unknown key is an error, because the content of a misspelled key would be ignored.
    """
    return file.problems_in(PROPOSAL)


@rule("proposal.motivation", ERROR, ADDING, "describe the users, the purpose, and the current solution")
def check_proposal_motivation(draft: Draft) -> Problems:
    """The motivation describes the purpose of the proposal.

    The operator set stays small only if reviewers can weigh the reason for each operator.
    """
    return _short_answer(draft, "motivation")


@rule("proposal.model", ERROR, ADDING, "link a public model, or a paper about one")
def check_proposal_model(draft: Draft) -> Problems:
    """The proposal links a public model that needs the operator.

    Operators are added for existing models, not for hypothetical ones. Models for private domains need not be
    public.
    """
    if _needs_link(draft, draft.proposal.model):
        yield draft.at_answer("no public model is linked", "model")


@rule("proposal.frameworks", ERROR, ADDING, "name a framework with an equivalent function, and link it")
def check_proposal_frameworks(draft: Draft) -> Problems:
    """At least one well-known framework has an equivalent function, and each named function is linked.

    An implementation in a framework shows demand, and its documentation defines the semantics. Private
    domains need none.
    """
    if draft.adds_standard_operator and not draft.proposal.frameworks:
        yield draft.at_answer("no framework is named", "frameworks")
    for position, each in enumerate(draft.proposal.frameworks):
        if not _is_link(each.link):
            yield draft.at_answer(f"{each.name} is not linked", "frameworks", position)


@rule("proposal.differences", WARNING, ADDING, "describe the differences in `differs`, or write `nothing`")
def check_proposal_differences(draft: Draft) -> Problems:
    """The proposal describes how each framework differs from the operator.

    The definition has to serve all of them; where they disagree, reviewers decide.
    """
    for position, each in enumerate(draft.proposal.frameworks):
        if not each.differs:
            reason = f"the differences to {each.name} are not described"
            yield draft.at_answer(reason, "frameworks", position)


@rule("proposal.formula", ERROR, ADDING, "write the formula, or pseudocode")
def check_proposal_formula(draft: Draft) -> Problems:
    """A new operator has a formula or pseudocode.

    A formula is unambiguous where prose is not.
    """
    if draft.adds_operator and not draft.proposal.formula.strip():
        yield draft.at_answer("the proposal has no formula", "formula")


@rule("proposal.source", ERROR, ADDING, "link the paper, or a framework's documentation")
def check_proposal_source(draft: Draft) -> Problems:
    """The source of a new operator's formula is linked.

    Reviewers compare the formula with its source. Operators of private domains need none.
    """
    if _needs_link(draft, draft.proposal.source):
        yield draft.at_answer("the source of the formula is not linked", "source")


@rule("proposal.alternatives", WARNING, ADDING, "name what else was considered, and why it was rejected")
def check_proposal_alternatives(draft: Draft) -> Problems:
    """The proposal discusses alternatives.

    An alternative may turn out to be the better proposal.
    """
    return _short_answer(draft, "alternatives")


@rule(
    "proposal.certificate",
    ERROR,
    "Developer Certificate of Origin",
    "set certificate to the author's `Name <email>`",
)
def check_proposal_certificate(draft: Draft) -> Problems:
    """The author certifies the origin of the contribution.

    `certificate` contains the author's name and address, like a Signed-off-by line.
    """
    certificate, author = draft.proposal.certificate, draft.proposal.author
    expected = f"{author.name} <{author.email}>"
    if "@" not in author.email:
        yield draft.at_answer(f"the author {author.name!r} has no email address", "author")
    elif certificate != expected:
        yield draft.at_answer(f"expected the certificate {expected!r}, got {certificate!r}", "certificate")


@rule("proposal.numpy", ERROR, ADDING, "name a function of numpy, or leave numpy empty")
def check_proposal_numpy(draft: Draft) -> Problems:
    """The numpy function that the proposal names exists.

    An operator with the name of a numpy function has to have the same semantics.
    """
    import numpy as np

    from opshift.proposals.evidence.evidence import numpy_function

    name = draft.proposal.numpy
    if name and numpy_function(name) is None:
        remedy = did_you_mean(name.rpartition(".")[2], dir(np), "")
        yield draft.at_answer(f"unknown numpy function {name!r}", "numpy")._replace(remedy=remedy)


@rule(
    "proposal.primitive",
    ERROR,
    f"{ADDING}: functions first",
    "add a body (kind new-function), or explain in primitive_reason why no body is possible",
)
def check_proposal_primitive(draft: DefinedDraft) -> Problems:
    """An operator that existing operators can express is a function.

    A function runs in every runtime that supports its body; other operators need an implementation in each.
    """
    is_primitive = draft.adds_operator and draft.version.body is None
    return _short_answer(draft, "primitive_reason") if is_primitive else iter(())


@rule(
    "proposal.near",
    INFO,
    ADDING,
    "compare the operator with these under alternatives",
    unless=("operator.taken",),
)
def check_similar_proposals(draft: DefinedDraft) -> Problems:
    """The alternatives mention existing operators with a similar name or the same signature.

    A similar operator may already serve the purpose, possibly with an additional attribute.
    """
    similar = _similar_operators(draft) if draft.adds_operator else []
    unmentioned = [each for each in similar if each not in draft.proposal.alternatives]
    if unmentioned:
        yield draft.at_answer(f"similar operators exist: {', '.join(unmentioned)}", "alternatives")


@rule("proposal.kind", ERROR, GUIDE, "choose the kind that matches the definition")
def check_proposal_kind(draft: DefinedDraft) -> Problems:
    """The definition matches the kind of the proposal.

    The kind decides which rules apply.
    """
    kind, version = draft.proposal.kind, draft.version
    mismatched = {
        "new-function": version.body is None,
        "new-operator": version.body is not None,
        "deprecation": version.deprecation is None,
        "removal": version.removal is None,
        "update": draft.retirement is not None,
    }
    if mismatched.get(kind):
        yield draft.at_answer(f"the last version of operator.yaml does not match the kind {kind}", "kind")
    if draft.adds_operator and draft.previous is not None:
        yield draft.at_answer(f"expected one version for the kind {kind}, got {draft.position + 1}", "kind")
    if not draft.adds_operator and draft.published is None:
        missing = f"{draft.operator.name} does not exist"
        yield draft.at_answer(f"the kind {kind} needs a published operator, and {missing}", "kind")


def _short_answer(draft: Draft, key: str) -> Problems:
    length = len(getattr(draft.proposal, key).strip())
    if length < MIN_ANSWER_LENGTH:
        reason = f"`{key}` has {length} characters, fewer than {MIN_ANSWER_LENGTH}"
        yield draft.at_answer(reason, key)


def _needs_link(draft: Draft, answer: str) -> bool:
    """Return whether a new operator's answer must be a link, but is not; private domains may omit it."""
    is_required = draft.adds_standard_operator or (draft.adds_operator and answer.strip())
    return bool(is_required) and not _is_link(answer)


def _is_link(text: str) -> bool:
    return text.startswith(("https://", "http://")) and "." in text and " " not in text


def _similar_operators(draft: DefinedDraft) -> list[str]:
    """Return up to `MAX_SIMILAR` operators of the domain with a similar name or an equal signature."""
    version, registry = draft.version, draft.registry
    by_lower = {each.lower(): each for each in registry.names(version.domain) if each != version.name}
    close = difflib.get_close_matches(version.name.lower(), by_lower, MAX_SIMILAR)
    similar = [by_lower[each] for each in close]
    if version.attributes:  # a signature without attributes is too common to indicate similarity
        signature = _signature_key(version)
        operators = registry.operators(version.domain)
        similar += [each.name for each in operators if _signature_key(each.versions[-1]) == signature]
    return [each for each in dict.fromkeys(similar) if each != version.name][:MAX_SIMILAR]


def _signature_key(version: OperatorVersion) -> tuple[object, ...]:
    parameters = [(each.option, version.types_of(each)) for each in (*version.inputs, *version.outputs)]
    attributes = {(name, each.type) for name, each in version.attributes.items()}
    return (len(version.inputs), tuple(parameters), frozenset(attributes))
