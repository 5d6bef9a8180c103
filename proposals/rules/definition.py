"""What `operator.yaml` has to keep to."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opshift.proposals.draft import Defined, Written
from opshift.proposals.findings import Level
from opshift.proposals.folder import OPERATOR
from opshift.proposals.rules.table import Flaw, rule
from opshift.registry.element_types import element_names
from opshift.registry.ir_versions import ir_versions
from opshift.registry.shapes import RULES
from opshift.registry.yaml_files import load_yaml

ADDING = "ONNX, Adding New Operator"
IR = "ONNX, IR specification"
_CAMEL = re.compile(r"([A-Z][A-Za-z0-9]*)")
_DOMAIN = re.compile(r"[a-z][a-z0-9]*(\.[a-z][a-z0-9_]*)+")
_SNAKE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_PARAMETER = re.compile(r"[A-Z][0-9]?|[a-z][a-z0-9]+(_[a-z0-9]+)*")
LEAST = 20


@rule(
    "operator.format",
    Level.ERROR,
    source="README, Adding an operator version",
    remedy="follow opsets/schema.json",
)
def definition_is_readable(draft: Written) -> Iterator[Flaw]:
    """`operator.yaml` is a definition in the registry's format.

    It is taken over as it stands.
    """
    yield from ()


@rule("operator.name", Level.ERROR, source=IR, remedy="spell it in CamelCase, unlike every other")
def name_is_camel_case(draft: Defined) -> Iterator[Flaw]:
    """The name is CamelCase, and differs from others in more than case.

    File systems and people do not tell names apart that differ in case only.
    """
    name = draft.operator.name
    if not _CAMEL.fullmatch(name):
        yield Flaw(f"{name!r} is not CamelCase", OPERATOR, ("name",))
    for other in draft.registry.names(draft.operator.domain):
        if other != name and other.lower() == name.lower():
            yield Flaw(f"{name} differs from {other} in case only", OPERATOR, ("name",))


@rule("operator.domain", Level.ERROR, source=IR, remedy="use a domain that you own, reversed: com.example")
def domain_is_reversed(draft: Defined) -> Iterator[Flaw]:
    """The domain is a reversed DNS name.

    Two parties never choose the same one then.
    """
    if not _DOMAIN.fullmatch(draft.operator.domain):
        yield Flaw(f"{draft.operator.domain!r} is no reversed DNS name", OPERATOR, ("domain",))


@rule("operator.taken", Level.ERROR, source=IR, remedy="choose another name, or make it an update")
def name_is_free(draft: Defined) -> Iterator[Flaw]:
    """A new operator has a name that its domain does not have.

    One name is one operator, through all its versions.
    """
    if draft.introduces and draft.published is not None:
        yield Flaw(f"{draft.operator.domain} has a {draft.operator.name} already", OPERATOR, ("name",))


@rule("operator.description", Level.ERROR, source=ADDING, remedy="say in `description` what it computes")
def it_is_described(draft: Defined) -> Iterator[Flaw]:
    """The operator has a description.

    It is what users read.
    """
    if len(draft.version.description.strip()) < LEAST:
        yield Flaw("the description is missing, or too short", OPERATOR, ("description",))


@rule("naming.attribute", Level.WARNING, source=ADDING, remedy="spell it in lower_snake_case")
def attributes_are_snake_case(draft: Defined) -> Iterator[Flaw]:
    """Attributes are named in lower_snake_case."""
    for name in draft.version.attributes:
        if not _SNAKE.fullmatch(name):
            yield Flaw(
                f"the attribute {name!r} is not lower_snake_case",
                OPERATOR,
                _version(draft, "attributes", name),
            )


@rule("naming.parameter", Level.WARNING, source=ADDING, remedy="use X, Y, or words in lower_snake_case")
def parameters_are_named_as_usual(draft: Defined) -> Iterator[Flaw]:
    """Inputs and outputs are single capital letters, or words in lower_snake_case."""
    for side in ("inputs", "outputs"):
        for position, formal in enumerate(getattr(draft.version, side)):
            if not _PARAMETER.fullmatch(formal.name):
                yield Flaw(f"{formal.name!r} is neither", OPERATOR, _version(draft, side, position))


@rule("naming.bias", Level.WARNING, source=ADDING, remedy="call a bias B, and a weight W")
def bias_and_weight_are_letters(draft: Defined) -> Iterator[Flaw]:
    """A bias is called B, and a weight W."""
    for position, formal in enumerate(draft.version.inputs):
        if formal.name in ("bias", "weight", "weights"):
            yield Flaw(f"an input is called {formal.name!r}", OPERATOR, _version(draft, "inputs", position))


@rule("naming.axis", Level.WARNING, source=ADDING, remedy="call one `axis`, and a list `axes`")
def axis_is_one_and_axes_are_many(draft: Defined) -> Iterator[Flaw]:
    """`axis` is one axis, `axes` is a list."""
    for name, each in draft.version.attributes.items():
        if (name == "axis" and each.type == "INTS") or (name == "axes" and each.type == "INT"):
            keys = _version(draft, "attributes", name)
            yield Flaw(f"{name!r} holds {'a list' if each.type == 'INTS' else 'one'}", OPERATOR, keys)


@rule(
    "operator.attributes",
    Level.WARNING,
    source=ADDING,
    remedy="make it an attribute, unless models compute it",
)
def constants_are_attributes(draft: Defined) -> Iterator[Flaw]:
    """What is known when a model is built is an attribute.

    Runtimes prepare for attributes; an input may hold anything, and keeps them from it.
    """
    for position, formal in enumerate(draft.version.inputs if draft.proposal.kind != "update" else ()):
        if formal.name in ("axis", "axes", "k", "dim", "mode", "keepdims"):
            yield Flaw(f"{formal.name!r} is an input", OPERATOR, _version(draft, "inputs", position))


@rule("types.used", Level.ERROR, source=ADDING, remedy="take the constraint out, or use it")
def constraints_are_used(draft: Defined) -> Iterator[Flaw]:
    """Every type variable is that of an input or output."""
    used = {formal.type for formal in (*draft.version.inputs, *draft.version.outputs)}
    for name in draft.version.type_constraints:
        if name not in used:
            yield Flaw(f"{name} is used by nothing", OPERATOR, _version(draft, "type_constraints", name))


@rule("types.known", Level.ERROR, source=IR, remedy="use ONNX's names of types, or a set of types.yaml")
def types_exist(draft: Defined) -> Iterator[Flaw]:
    """Every type is one of ONNX's."""
    for name, types in draft.version.type_constraints.items():
        for each in types:
            if not list(element_names(each)):
                yield Flaw(f"{each!r} is no type", OPERATOR, _version(draft, "type_constraints", name))
    for side in ("inputs", "outputs"):
        for position, formal in enumerate(getattr(draft.version, side)):
            if "(" in formal.type and not list(element_names(formal.type)):
                yield Flaw(f"{formal.type!r} is no type", OPERATOR, _version(draft, side, position))


@rule("types.ir", Level.ERROR, source=IR, remedy="leave the type to a version of a later opset")
def types_are_of_the_ir_version(draft: Defined) -> Iterator[Flaw]:
    """Every element type is one of the IR version that the newest release has.

    A model of the opset could not be written otherwise.
    """
    newest = max((each.ir_version for each in draft.registry.releases.onnx.values()), default=0)
    since = ir_versions().element_types
    for name, types in draft.version.type_constraints.items():
        elements = (element for each in types for element in element_names(each))
        late = next((each for each in elements if newest and since.get(each, 0) > newest), None)
        if late is not None:
            keys = _version(draft, "type_constraints", name)
            yield Flaw(f"{late} came with IR version {since[late]}, the release has {newest}", OPERATOR, keys)


@rule("types.repeated", Level.WARNING, source=ADDING, remedy="name each type and set once")
def types_are_stated_once(draft: Defined) -> Iterator[Flaw]:
    """No type is listed twice in a constraint."""
    version = load_yaml(draft.folder.file(OPERATOR))["versions"][draft.position]
    for name, listed in (version.get("type_constraints") or {}).items():
        entries = [listed] if isinstance(listed, str) else listed
        spelled = [each for entry in entries for each in draft.registry.types.expand(entry)]
        twice = sorted({each for each in spelled if spelled.count(each) > 1})
        if twice:
            yield Flaw(f"{name} lists {twice[0]} twice", OPERATOR, _version(draft, "type_constraints", name))


@rule(
    "operator.shape",
    Level.ERROR,
    source=f"{ADDING}: shape inference",
    remedy="name a rule of registry/shapes in `shape`",
)
def shape_rule_exists(draft: Defined) -> Iterator[Flaw]:
    """The definition names a shape rule that exists.

    Without shapes a runtime cannot plan memory, and the converter knows less of every model that uses it.
    """
    name = draft.version.shape
    if not name:
        yield Flaw("no shape rule is named", OPERATOR, ("shape",))
    elif name not in RULES:
        yield Flaw(f"there is no shape rule {name!r}", OPERATOR, ("shape",))


@rule("operator.differentiation", Level.WARNING, source=ADDING, remedy="state `differentiation` of each")
def differentiation_is_stated(draft: Defined) -> Iterator[Flaw]:
    """Of each input and output it is said whether it is differentiable."""
    for side in ("inputs", "outputs"):
        for position, formal in enumerate(getattr(draft.version, side)):
            if formal.differentiation == "unknown":
                yield Flaw(f"of {formal.name} it is not said", OPERATOR, _version(draft, side, position))


@rule("operator.determinism", Level.WARNING, source=ADDING, remedy="say deterministic or non_deterministic")
def determinism_is_stated(draft: Defined) -> Iterator[Flaw]:
    """It is said whether the operator is deterministic."""
    if draft.version.determinism == "unknown":
        yield Flaw("it is not said", OPERATOR, _version(draft, "determinism"))


def _version(draft: Defined, *keys: int | str) -> tuple[int | str, ...]:
    return ("versions", draft.position, *keys)
