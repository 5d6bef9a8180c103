"""Rules for `operator.yaml`."""

import re
from collections.abc import Iterator

from opshift.checker.findings import ERROR, WARNING
from opshift.model.element_types import element_names
from opshift.model.extensions import is_external
from opshift.model.message_text import did_you_mean, similar_names
from opshift.proposals.content.draft import DefinedDraft, InvalidFile
from opshift.proposals.content.folder import OPERATOR
from opshift.proposals.rules.rule_table import ADDING, CONTRIBUTING, IR, Problems, rule
from opshift.registry.descriptions import texts_of
from opshift.registry.ir_versions import ir_versions
from opshift.registry.models import Parameter
from opshift.registry.shapes.all_rules import SHAPE_RULES
from opshift.registry.yaml_files import load_yaml

_CAMEL_CASE = re.compile(r"([A-Z][A-Za-z0-9]*)")
_DOMAIN = re.compile(r"[a-z][a-z0-9]*(\.[a-z][a-z0-9_]*)+")
_SNAKE_CASE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_PARAMETER = re.compile(r"[A-Z][0-9]?|[a-z][a-z0-9]+(_[a-z0-9]+)*")

MIN_DESCRIPTION_LENGTH = 20
"""Number of characters below which a text counts as missing."""


@rule("operator.format", ERROR, CONTRIBUTING, "follow opsets/schema.json")
def check_operator_format(file: InvalidFile) -> Problems:
    """`operator.yaml` is a definition in the format of the registry.

    On acceptance its text is copied to the tree.
    """
    return file.problems_in(OPERATOR)


@rule("operator.name", ERROR, IR, "choose a unique name in CamelCase")
def check_operator_name(draft: DefinedDraft) -> Problems:
    """The name is CamelCase, and unique in the domain regardless of case.

    Some file systems do not distinguish names that differ in case only, and people confuse them.
    """
    name = draft.operator.name
    if not _CAMEL_CASE.fullmatch(name):
        yield draft.at_definition(f"{name!r} is not CamelCase", "name")
    for other in draft.registry.names(draft.operator.domain):
        if other != name and other.lower() == name.lower():
            yield draft.at_definition(f"{name} differs from the existing {other} only in case", "name")


@rule("operator.domain", ERROR, IR, "reverse a domain name that you own: com.example for example.com")
def check_operator_domain(draft: DefinedDraft) -> Problems:
    """The domain is a reversed DNS name.

    DNS names have one owner, so two parties never choose the same domain.
    """
    domain = draft.operator.domain
    if not _DOMAIN.fullmatch(domain):
        yield draft.at_definition(f"domain {domain!r} is not a reversed DNS name", "domain")


@rule("operator.taken", ERROR, IR, "choose another name, or propose an update")
def check_operator_is_new(draft: DefinedDraft) -> Problems:
    """A new operator has a name that is not yet used in its domain.

    A name denotes one operator through all its versions.
    """
    operator = draft.operator
    if draft.adds_operator and draft.published is not None:
        yield draft.at_definition(f"{operator.domain} already has an operator {operator.name}", "name")


@rule(
    "operator.description",
    ERROR,
    ADDING,
    "write the texts in `descriptions`, for users of the operator",
    unless=("opset.version",),
)
def check_operator_description(draft: DefinedDraft) -> Problems:
    """The operator and its inputs, outputs, attributes and type variables have texts.

    They are the documentation for users.
    """
    texts = texts_of(draft.version) if draft.retirement is None else {}
    short = {" ".join(key).strip(): text for key, text in texts.items() if len(text) < MIN_DESCRIPTION_LENGTH}
    if short:
        listed = ", ".join(f"{name} ({len(text)})" for name, text in short.items())
        reason = f"texts with fewer than {MIN_DESCRIPTION_LENGTH} characters: {listed}"
        yield draft.at_version(reason, "descriptions")


@rule("naming.attribute", WARNING, ADDING, "rename it in lower_snake_case")
def check_naming_attribute(draft: DefinedDraft) -> Problems:
    """Attributes are named in lower_snake_case."""
    for name in draft.version.attributes:
        if not _SNAKE_CASE.fullmatch(name):
            yield draft.at_version(f"the attribute {name!r} is not lower_snake_case", "attributes", name)


@rule("naming.parameter", WARNING, ADDING, "use a capital letter such as X, or lower_snake_case")
def check_naming_parameter(draft: DefinedDraft) -> Problems:
    """Inputs and outputs are named with a single capital letter or in lower_snake_case."""
    for side, position, formal in _parameters(draft):
        if not _PARAMETER.fullmatch(formal.name):
            reason = f"{formal.name!r} is neither a capital letter nor in lower_snake_case"
            yield draft.at_version(reason, side, position)


@rule("naming.bias", WARNING, ADDING, "name a bias B and a weight W")
def check_naming_bias(draft: DefinedDraft) -> Problems:
    """A bias is named B, and a weight W."""
    for position, formal in enumerate(draft.version.inputs):
        if formal.name in ("bias", "weight", "weights"):
            yield draft.at_version(f"an input is named {formal.name!r}", "inputs", position)


@rule("naming.axis", WARNING, ADDING, "name a single axis `axis`, and a list `axes`")
def check_naming_axis(draft: DefinedDraft) -> Problems:
    """`axis` is an integer, `axes` is a list of integers."""
    for name, kind, description in (("axis", "INTS", "a list"), ("axes", "INT", "a single integer")):
        attribute = draft.version.attributes.get(name)
        if attribute is not None and attribute.type == kind:
            yield draft.at_version(f"{name!r} is {description}", "attributes", name)


@rule("operator.attributes", WARNING, ADDING, "make it an attribute, unless models compute the value")
def check_operator_attributes(draft: DefinedDraft) -> Problems:
    """Values that are constant in models are attributes.

    Runtimes can specialize for attributes when they load a model, but not for inputs.
    """
    for position, formal in enumerate(draft.version.inputs if draft.proposal.kind != "update" else ()):
        if formal.name in ("axis", "axes", "k", "dim", "mode", "keepdims"):
            yield draft.at_version(f"{formal.name!r} is an input, not an attribute", "inputs", position)


@rule("types.used", ERROR, ADDING, "remove the constraint, or use it")
def check_types_used(draft: DefinedDraft) -> Problems:
    """Every type variable is the type of an input or output."""
    used_types = {formal.type for _, _, formal in _parameters(draft)}
    for name in draft.version.type_constraints:
        if name not in used_types:
            yield draft.at_version(f"no input or output has the type {name}", "type_constraints", name)


@rule("types.ir", ERROR, IR, "leave the type to a version of a later opset")
def check_types_ir(draft: DefinedDraft) -> Problems:
    """Every element type is supported by the IR version of the newest release.

    Otherwise no model of the opset could use the type.
    """
    newest = max((each.ir_version for each in draft.registry.releases.onnx.values()), default=0)
    since = ir_versions().element_types
    for name, types in draft.version.type_constraints.items():
        element_types = (element for each in types for element in element_names(each))
        unsupported = next((each for each in element_types if newest and since.get(each, 0) > newest), None)
        if unsupported is not None:
            required = f"{unsupported} requires IR version {since[unsupported]}"
            yield draft.at_version(f"{required}, the newest release has {newest}", "type_constraints", name)


@rule("types.repeated", WARNING, ADDING, "list each type once")
def check_types_repeated(draft: DefinedDraft) -> Problems:
    """A constraint lists each type once, directly or through a type set."""
    # Read the file, because the loader removes duplicates.
    version = load_yaml(draft.folder.file(OPERATOR))["versions"][draft.position]
    for name, listed in (version.get("type_constraints") or {}).items():
        entries = [listed] if isinstance(listed, str) else listed
        expanded = [each for entry in entries for each in draft.registry.types.expand(entry)]
        duplicates = sorted({each for each in expanded if expanded.count(each) > 1})
        if duplicates:
            yield draft.at_version(f"{name} lists {duplicates[0]} twice", "type_constraints", name)


@rule(
    "operator.shape",
    ERROR,
    f"{ADDING}: shape inference",
    "name the rule of a similar operator, see `opshift show NAME --format json`, or write one in shapes.py",
)
def check_operator_shape(draft: DefinedDraft) -> Problems:
    """The definition names an existing shape rule.

    Runtimes plan memory from inferred shapes, and many conversions need them.
    """
    name = draft.version.shape
    if not name:
        yield draft.at_definition("the definition names no shape rule", "shape")
    elif name not in SHAPE_RULES:
        advice = "name another rule, or write this one in shapes.py, see docs/private-domains.md"
        remedy = did_you_mean(name, SHAPE_RULES, advice)
        yield draft.at_definition(f"unknown shape rule {name!r}", "shape")._replace(remedy=remedy)
    elif is_external(SHAPE_RULES[name]) and (similar := similar_names(name, _own_shape_rules())):
        # commands that do not execute shapes.py would report a similar name as a misspelling
        reason = f"the name of the shape rule {name!r} resembles that of {similar[0]!r}"
        remedy = "begin the name with that of your domain or operator, as in acme_rows"
        yield draft.at_definition(reason, "shape")._replace(remedy=remedy)


def _own_shape_rules() -> list[str]:
    return [name for name, each in SHAPE_RULES.items() if not is_external(each)]


@rule("operator.differentiation", WARNING, ADDING, "set `differentiation` of each input and output")
def check_operator_differentiation(draft: DefinedDraft) -> Problems:
    """Each input and output declares whether it is differentiable."""
    unknown = [each for each in _parameters(draft) if each[2].differentiation == "unknown"]
    if unknown:
        names = ", ".join(formal.name for _, _, formal in unknown)
        yield draft.at_version(f"`differentiation` is not set for {names}", *unknown[0][:2])


@rule("operator.determinism", WARNING, ADDING, "set determinism to deterministic or non_deterministic")
def check_operator_determinism(draft: DefinedDraft) -> Problems:
    """The operator declares whether it is deterministic."""
    if draft.version.determinism == "unknown":
        reason = "the operator does not declare whether it is deterministic"
        yield draft.at_version(reason, "determinism")


def _parameters(draft: DefinedDraft) -> Iterator[tuple[str, int, Parameter]]:
    """Yield each input and output with its path in the version, such as `inputs` and 0."""
    for side, formals in (("inputs", draft.version.inputs), ("outputs", draft.version.outputs)):
        for position, formal in enumerate(formals):
            yield side, position, formal
