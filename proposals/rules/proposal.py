"""What `proposal.yaml` has to answer."""

from __future__ import annotations

from collections.abc import Iterator

from opshift.proposals.draft import Defined, Written
from opshift.proposals.findings import Level
from opshift.proposals.near import near_operators
from opshift.proposals.rules.table import Flaw, rule

ADDING = "ONNX, Adding New Operator"
LEAST = 20
"""Fewer characters are no answer."""


def is_link(text: str) -> bool:
    """Whether a text is the address of a page."""
    return text.startswith(("https://", "http://")) and "." in text and " " not in text


@rule(
    "proposal.format",
    Level.ERROR,
    source="docs/proposals.md",
    remedy="write it as `opshift proposal new` does",
)
def proposal_is_readable(draft: Written) -> Iterator[Flaw]:
    """`proposal.yaml` is YAML with the keys of a proposal.

    What cannot be read cannot be reviewed; a misspelled key would be an answer that nobody sees.
    """
    yield from ()


@rule(
    "proposal.motivation",
    Level.ERROR,
    source=ADDING,
    remedy="say who needs it, for what, and what they do today",
)
def motivation_is_given(draft: Written) -> Iterator[Flaw]:
    """The motivation says what the proposal is for.

    The set stays small only if every operator in it has a reason that others can weigh.
    """
    if len(draft.proposal.motivation.strip()) < LEAST:
        yield Flaw("the motivation is missing, or too short to be one", keys=("motivation",))


@rule("proposal.model", Level.ERROR, source=ADDING, remedy="link a public model, or the paper of one")
def model_is_linked(draft: Written) -> Iterator[Flaw]:
    """A public model that needs the operator is linked.

    An operator is added for models that exist, not for those that might.
    """
    if draft.introduces and not is_link(draft.proposal.model):
        yield Flaw("no public model is linked", keys=("model",))


@rule("proposal.frameworks", Level.ERROR, source=ADDING, remedy="name a framework that has it, with a link")
def a_framework_has_it(draft: Written) -> Iterator[Flaw]:
    """At least one well-known framework has the operator, and each that is named is linked.

    What a framework has is known to be wanted, and its documentation settles what it means.
    """
    if draft.introduces and not draft.proposal.frameworks:
        yield Flaw("no framework is named", keys=("frameworks",))
    for position, each in enumerate(draft.proposal.frameworks):
        if not is_link(each.link):
            yield Flaw(f"{each.name} is not linked", keys=("frameworks", position))


@rule(
    "proposal.differences",
    Level.WARNING,
    source=ADDING,
    remedy="say in `differs` how it differs, or `nothing`",
)
def differences_are_stated(draft: Written) -> Iterator[Flaw]:
    """Of each framework it is said where it differs.

    The definition has to serve all of them; where they disagree, reviewers decide.
    """
    for position, each in enumerate(draft.proposal.frameworks):
        if not each.differs:
            yield Flaw(f"how {each.name} differs is not said", keys=("frameworks", position))


@rule("proposal.formula", Level.ERROR, source=ADDING, remedy="write the formula, or pseudocode")
def formula_is_given(draft: Written) -> Iterator[Flaw]:
    """A new operator has a formula or pseudocode.

    Prose leaves open what a formula decides.
    """
    if draft.introduces and not draft.proposal.formula.strip():
        yield Flaw("there is no formula", keys=("formula",))


@rule("proposal.source", Level.ERROR, source=ADDING, remedy="link the paper, or a framework's documentation")
def source_is_linked(draft: Written) -> Iterator[Flaw]:
    """It is linked where a new operator's formula comes from.

    So that reviewers can compare.
    """
    if draft.introduces and not is_link(draft.proposal.source):
        yield Flaw("the formula has no source", keys=("source",))


@rule(
    "proposal.alternatives", Level.WARNING, source=ADDING, remedy="say what else was considered, and why not"
)
def alternatives_are_weighed(draft: Written) -> Iterator[Flaw]:
    """Alternatives are named.

    Often one of them is the better proposal.
    """
    if len(draft.proposal.alternatives.strip()) < LEAST:
        yield Flaw("no alternative is named", keys=("alternatives",))


@rule(
    "proposal.certificate",
    Level.ERROR,
    source="Developer Certificate of Origin",
    remedy="set certificate to the author's `Name <email>`",
)
def certificate_is_given(draft: Written) -> Iterator[Flaw]:
    """The author certifies the origin of the contribution.

    `certificate` holds the author's name and address, as a Signed-off-by line would.
    """
    stated, author = draft.proposal.certificate, draft.proposal.author
    if stated != f"{author.name} <{author.email}>" or "@" not in author.email:
        yield Flaw(f"the certificate is not that of {author.name or 'an author'}", keys=("certificate",))


@rule("proposal.numpy", Level.ERROR, source=ADDING, remedy="name a function of numpy, or leave numpy empty")
def numpy_function_exists(draft: Written) -> Iterator[Flaw]:
    """The numpy function that is named exists.

    An operator that is named as a numpy function is has its meaning.
    """
    from opshift.proposals.evidence.evidence import numpy_function

    name = draft.proposal.numpy
    if name and numpy_function(name) is None:
        yield Flaw(f"there is no {name}", keys=("numpy",))


@rule(
    "proposal.primitive",
    Level.ERROR,
    source=f"{ADDING}: functions first",
    remedy="give it a body (kind new-function), or say in primitive_reason why others cannot express it",
)
def primitive_has_a_reason(draft: Defined) -> Iterator[Flaw]:
    """An operator that others can express is a function.

    A function runs wherever its body does. An operator without one asks work of every runtime.
    """
    is_primitive = draft.introduces and draft.version.body is None
    if is_primitive and len(draft.proposal.primitive_reason.strip()) < LEAST:
        yield Flaw("it has no body, and no reason for that", keys=("primitive_reason",))


@rule("proposal.near", Level.INFO, source=ADDING, remedy="compare it with these under alternatives")
def near_operators_are_known(draft: Defined) -> Iterator[Flaw]:
    """Operators of a similar name or the same signature are looked at.

    Perhaps one of them does it already, or can with one more attribute.
    """
    found = near_operators(draft) if draft.introduces else []
    named = [each for each in found if each not in draft.proposal.alternatives]
    if named:
        yield Flaw(f"there is {', '.join(named)} already", keys=("alternatives",))


@rule(
    "proposal.kind",
    Level.ERROR,
    source="docs/proposals.md",
    remedy="choose the kind that the definition shows",
)
def kind_fits(draft: Defined) -> Iterator[Flaw]:
    """The definition is what the kind says.

    The kind decides which rules count.
    """
    kind, version = draft.proposal.kind, draft.version
    wrong = {
        "new-function": version.body is None,
        "new-operator": version.body is not None,
        "deprecation": version.deprecation is None,
        "removal": version.removal is None,
        "update": version.deprecation is not None or version.removal is not None,
    }.get(kind, False)
    if wrong:
        yield Flaw(f"the last version of operator.yaml is no {kind}", keys=("kind",))
    if draft.introduces and draft.previous is not None:
        yield Flaw(f"a {kind} has one version, not {draft.position + 1}", keys=("kind",))
    if not draft.introduces and draft.published is None:
        yield Flaw(f"there is no {draft.operator.name} to which a {kind} could be made", keys=("kind",))
