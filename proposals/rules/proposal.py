"""Rules for `proposal.yaml`."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from opshift.checker.findings import Level
from opshift.proposals.content.draft import DefinedDraft, Draft, InvalidFile
from opshift.proposals.content.folder import PROPOSAL
from opshift.proposals.rules.rule_table import ProposalProblem, format_problems, rule
from opshift.registry.models import OperatorVersion

ADDING = "ONNX, Adding New Operator"

MIN_ANSWER_LENGTH = 20
"""Number of characters below which an answer counts as missing."""


def is_link(text: str) -> bool:
    """Return whether a text is a web address."""
    return text.startswith(("https://", "http://")) and "." in text and " " not in text


@rule(
    "proposal.format",
    Level.ERROR,
    source="docs/proposals.md",
    remedy="follow the template of `opshift proposal new`",
)
def check_proposal_format(file: InvalidFile) -> Iterator[ProposalProblem]:
    """`proposal.yaml` is valid YAML with the keys of a proposal.

    An unknown key is an error, because the content of a misspelled key would be ignored.
    """
    yield from format_problems(file, PROPOSAL)


@rule(
    "proposal.motivation",
    Level.ERROR,
    source=ADDING,
    remedy="describe who needs it, for which purpose, and what they use today",
)
def check_proposal_motivation(draft: Draft) -> Iterator[ProposalProblem]:
    """The motivation describes the purpose of the proposal.

    The operator set stays small only if reviewers can weigh the reason for each operator.
    """
    if len(draft.proposal.motivation.strip()) < MIN_ANSWER_LENGTH:
        yield ProposalProblem(
            f"the motivation has fewer than {MIN_ANSWER_LENGTH} characters", keys=("motivation",)
        )


@rule("proposal.model", Level.ERROR, source=ADDING, remedy="link a public model, or a paper about one")
def check_proposal_model(draft: Draft) -> Iterator[ProposalProblem]:
    """The proposal links a public model that needs the operator.

    Operators are added for existing models, not for hypothetical ones.
    """
    if draft.adds_operator and not is_link(draft.proposal.model):
        yield ProposalProblem("no public model is linked", keys=("model",))


@rule(
    "proposal.frameworks",
    Level.ERROR,
    source=ADDING,
    remedy="name a framework with an equivalent function, and link it",
)
def check_proposal_frameworks(draft: Draft) -> Iterator[ProposalProblem]:
    """At least one well-known framework has an equivalent function, and each named function is linked.

    An implementation in a framework shows demand, and its documentation defines the semantics.
    """
    if draft.adds_operator and not draft.proposal.frameworks:
        yield ProposalProblem("no framework is named", keys=("frameworks",))
    for position, each in enumerate(draft.proposal.frameworks):
        if not is_link(each.link):
            yield ProposalProblem(f"{each.name} is not linked", keys=("frameworks", position))


@rule(
    "proposal.differences",
    Level.WARNING,
    source=ADDING,
    remedy="describe the differences in `differs`, or write `nothing`",
)
def check_proposal_differences(draft: Draft) -> Iterator[ProposalProblem]:
    """The proposal describes how each framework differs from the operator.

    The definition has to serve all of them; where they disagree, reviewers decide.
    """
    for position, each in enumerate(draft.proposal.frameworks):
        if not each.differs:
            yield ProposalProblem(
                f"the differences to {each.name} are not described", keys=("frameworks", position)
            )


@rule("proposal.formula", Level.ERROR, source=ADDING, remedy="write the formula, or pseudocode")
def check_proposal_formula(draft: Draft) -> Iterator[ProposalProblem]:
    """A new operator has a formula or pseudocode.

    A formula is unambiguous where prose is not.
    """
    if draft.adds_operator and not draft.proposal.formula.strip():
        yield ProposalProblem("the proposal has no formula", keys=("formula",))


@rule("proposal.source", Level.ERROR, source=ADDING, remedy="link the paper, or a framework's documentation")
def check_proposal_source(draft: Draft) -> Iterator[ProposalProblem]:
    """The source of a new operator's formula is linked.

    Reviewers compare the formula with its source.
    """
    if draft.adds_operator and not is_link(draft.proposal.source):
        yield ProposalProblem("the source of the formula is not linked", keys=("source",))


@rule(
    "proposal.alternatives",
    Level.WARNING,
    source=ADDING,
    remedy="name what else was considered, and why it was rejected",
)
def check_proposal_alternatives(draft: Draft) -> Iterator[ProposalProblem]:
    """The proposal discusses alternatives.

    An alternative may turn out to be the better proposal.
    """
    if len(draft.proposal.alternatives.strip()) < MIN_ANSWER_LENGTH:
        yield ProposalProblem(
            f"the alternatives have fewer than {MIN_ANSWER_LENGTH} characters", keys=("alternatives",)
        )


@rule(
    "proposal.certificate",
    Level.ERROR,
    source="Developer Certificate of Origin",
    remedy="set certificate to the author's `Name <email>`",
)
def check_proposal_certificate(draft: Draft) -> Iterator[ProposalProblem]:
    """The author certifies the origin of the contribution.

    `certificate` contains the author's name and address, like a Signed-off-by line.
    """
    certificate, author = draft.proposal.certificate, draft.proposal.author
    if certificate != f"{author.name} <{author.email}>" or "@" not in author.email:
        yield ProposalProblem(
            f"the certificate does not match the author {author.name!r}", keys=("certificate",)
        )


@rule("proposal.numpy", Level.ERROR, source=ADDING, remedy="name a function of numpy, or leave numpy empty")
def check_proposal_numpy(draft: Draft) -> Iterator[ProposalProblem]:
    """The numpy function that the proposal names exists.

    An operator with the name of a numpy function has to have the same semantics.
    """
    from opshift.proposals.evidence.evidence import numpy_function

    name = draft.proposal.numpy
    if name and numpy_function(name) is None:
        yield ProposalProblem(f"unknown numpy function {name!r}", keys=("numpy",))


@rule(
    "proposal.primitive",
    Level.ERROR,
    source=f"{ADDING}: functions first",
    remedy="add a body (kind new-function), or explain in primitive_reason why no body is possible",
)
def check_proposal_primitive(draft: DefinedDraft) -> Iterator[ProposalProblem]:
    """An operator that existing operators can express is a function.

    A function runs in every runtime that supports its body; other operators need an implementation in each.
    """
    is_primitive = draft.adds_operator and draft.version.body is None
    if is_primitive and len(draft.proposal.primitive_reason.strip()) < MIN_ANSWER_LENGTH:
        yield ProposalProblem(
            "the operator has neither a body nor a reason for having none", keys=("primitive_reason",)
        )


@rule("proposal.near", Level.INFO, source=ADDING, remedy="compare the operator with these under alternatives")
def check_proposal_near(draft: DefinedDraft) -> Iterator[ProposalProblem]:
    """The alternatives mention existing operators with a similar name or the same signature.

    A similar operator may already serve the purpose, possibly with an additional attribute.
    """
    similar = similar_operators(draft) if draft.adds_operator else []
    unmentioned = [each for each in similar if each not in draft.proposal.alternatives]
    if unmentioned:
        yield ProposalProblem(f"similar operators exist: {', '.join(unmentioned)}", keys=("alternatives",))


@rule(
    "proposal.kind",
    Level.ERROR,
    source="docs/proposals.md",
    remedy="choose the kind that matches the definition",
)
def check_proposal_kind(draft: DefinedDraft) -> Iterator[ProposalProblem]:
    """The definition matches the kind of the proposal.

    The kind decides which rules apply.
    """
    kind, version = draft.proposal.kind, draft.version
    mismatched = {
        "new-function": version.body is None,
        "new-operator": version.body is not None,
        "deprecation": version.deprecation is None,
        "removal": version.removal is None,
        "update": version.deprecation is not None or version.removal is not None,
    }.get(kind, False)
    if mismatched:
        yield ProposalProblem(
            f"the last version of operator.yaml does not match the kind {kind}", keys=("kind",)
        )
    if draft.adds_operator and draft.previous is not None:
        yield ProposalProblem(
            f"expected one version for the kind {kind}, got {draft.position + 1}", keys=("kind",)
        )
    if not draft.adds_operator and draft.published is None:
        yield ProposalProblem(
            f"the kind {kind} needs a published operator, and {draft.operator.name} does not exist",
            keys=("kind",),
        )


MAX_SIMILAR = 5


def similar_operators(draft: DefinedDraft) -> list[str]:
    """Return the operators of the domain with a similar name, followed by those with the same signature.

    At most `MAX_SIMILAR` names are returned.
    """
    version, registry = draft.version, draft.registry
    others = [each for each in registry.names(version.domain) if each != version.name]
    names_by_lower = {each.lower(): each for each in others}
    similar_names = [
        names_by_lower[each]
        for each in difflib.get_close_matches(version.name.lower(), names_by_lower, MAX_SIMILAR)
    ]
    signature = _signature(version)
    # Without attributes a signature is too common to indicate similarity.
    same_signature = [] if not version.attributes else [
        each for each in others if _signature(_newest(draft, each)) == signature and each not in similar_names
    ]  # fmt: skip
    return [*similar_names, *same_signature][:MAX_SIMILAR]


def _newest(draft: DefinedDraft, name: str) -> OperatorVersion:
    operator = draft.registry.operator(name, draft.version.domain)
    assert operator is not None
    return operator.versions[-1]


def _signature(version: OperatorVersion) -> tuple[object, ...]:
    parameters = [(each.option, version.types_of(each)) for each in (*version.inputs, *version.outputs)]
    attributes = {(name, each.type) for name, each in version.attributes.items()}
    return (len(version.inputs), tuple(parameters), frozenset(attributes))
