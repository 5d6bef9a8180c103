"""Steps as data: the conversion between one version of an operator and the next, in both directions.

Each direction is one of
    `compatible`         the node stays unchanged; a type that the other version lacks is cast or refused
    `adapter`            a function in `adapters/` rewrites the node
    `{refuse: reason}`   the conversion is impossible
    a list of verbs      small rewrites that can be checked against both definitions
A direction that is not declared is derived from the two definitions if they differ in element types only.
"""

from typing import Annotated, ClassVar, Literal, get_args

from opshift.registry.record import Checked, Record, from_plain_data

Allow = Literal[
    "approximate", "assume-nonnegative", "assume-nonempty", "large", "clamp",
    "interface-types", "drop-metadata", "drop-training", "drop-devices",
]  # fmt: skip
"""Deviations that a caller may allow. `approximate`: different rounding. `assume-nonnegative`: indices are
not negative. `assume-nonempty`: dimensions are not 0. `large`: many nodes or large constants replace one
node. `clamp`: a constant out of the range of a new element type becomes the nearest number.
`interface-types`: graph inputs and outputs get wider types, if a runtime lacks their types. `drop-metadata`,
`drop-training` and `drop-devices`: loss of metadata, training information or device configurations that the
IR version of the target lacks."""

Literals = int | float | str | tuple[int | float | str, ...]


class Verb(Record):
    """A declarative rewrite; in YAML a mapping with one key, the name of the verb."""

    name: ClassVar[str]
    shorthand: ClassVar[str] = "attribute"
    """The field that is set by a bare string in YAML."""


class DropAttribute(Verb):
    """Remove an attribute that the target lacks; refuse if its value is not the default."""

    name = "drop_attribute"
    attribute: str
    """The name of the attribute."""


class IgnoreAttribute(Verb):
    """Remove an attribute that never affected the result, whatever its value."""

    name = "ignore_attribute"
    attribute: str
    """The name of the attribute."""


class AddAttribute(Verb):
    """Set an attribute to `value` if the node does not have it."""

    name = "add_attribute"
    attribute: str
    """The name of the attribute."""
    value: Literals
    """The value that the attribute gets."""


class RenameAttribute(Verb):
    """Rename an attribute."""

    name = "rename_attribute"
    attribute: str
    """The name of the attribute."""
    to: str
    """The new name."""


class AttributeInputVerb(Verb):
    """Base of the verbs that turn an attribute into an input or back; by default, both have the same name."""

    attribute: str
    input: str

    @property
    def attribute_name(self) -> str:
        """The name of the attribute."""
        return self.attribute or self.input

    @property
    def input_name(self) -> str:
        """The name of the input."""
        return self.input or self.attribute


class AttributeToInput(AttributeInputVerb):
    """Turn an attribute into a constant for `input` (by default the input with the same name).

    The constant has the element type of the input; a number becomes a scalar, or a list with one element if
    `rank` is 1.
    """

    name = "attribute_to_input"
    attribute: str
    """The name of the attribute."""
    input: str = ""
    """The name of the input, if it differs from `attribute`."""
    rank: Literal[0, 1] | None = None
    """The rank of the constant for a number."""


class InputToAttribute(AttributeInputVerb):
    """Turn a constant input into `attribute`; refuse if the input is not constant."""

    name = "input_to_attribute"
    shorthand = "input"
    input: str
    """The name of the input."""
    attribute: str = ""
    """The name of the attribute, if it differs from `input`."""


class RequireAttribute(Verb):
    """Refuse unless the attribute or its default equals `value`."""

    name = "require_attribute"
    attribute: str
    """The name of the attribute."""
    value: Literals
    """The required value."""


class RenameValue(Verb):
    """Translate attribute values to their names in the target; other values must be legal there."""

    name = "rename_value"
    attribute: str
    """The name of the attribute."""
    values: dict[str, str]
    """Each value, and its name in the target."""


class RequireNoInput(Verb):
    """Refuse if the node uses the optional input, which the target lacks."""

    name = "require_no_input"
    shorthand = "input"
    input: str
    """The name of the input."""


class RequireNoOutput(Verb):
    """Refuse if the node uses the optional output, which the target lacks."""

    name = "require_no_output"
    shorthand = "output"
    output: str
    """The name of the output."""


class RenameOp(Verb):
    """Change the operator to another one of the same domain; keep the rest of the node."""

    name = "rename_op"
    shorthand = "op_type"
    op_type: str
    """The name of the other operator."""


AnyVerb = (
    DropAttribute
    | IgnoreAttribute
    | AddAttribute
    | RenameAttribute
    | AttributeToInput
    | InputToAttribute
    | RequireAttribute
    | RenameValue
    | RequireNoInput
    | RequireNoOutput
    | RenameOp
)

VERBS: dict[str, type[Verb]] = {verb.name: verb for verb in get_args(AnyVerb)}


class Refuse(Record):
    """A conversion that is impossible, with the reason."""

    refuse: Annotated[str, Checked(min_length=10)]
    """The reason, which users see."""
    remedy: str = ""
    """A change of the model that avoids the refusal."""
    code: Literal["operator.no-equivalent", "operator.undefined", "step.undefined"] = "operator.no-equivalent"
    """The cause, as in `docs/refusals.md`."""


StepAction = Literal["compatible", "adapter"] | Refuse | tuple[AnyVerb, ...]


def parse_action(answer: object) -> object:
    """Parse one direction of a step from YAML data, in which a verb is a mapping with one key."""
    if not isinstance(answer, list | tuple):
        return answer
    return tuple(_parse_verb(item) for item in answer)


class Step(Record):
    """The conversion from the previous version (`up`) and back to it (`down`)."""

    change: str = ""
    """The change, and its effect on a converted model."""
    up: Annotated[StepAction | None, Checked(before=parse_action)] = None
    """The conversion of nodes of the previous version; derived if only element types differ."""
    down: Annotated[StepAction | None, Checked(before=parse_action)] = None
    """The conversion of nodes to the previous version; if neither declared nor derived, it is refused."""


def _parse_verb(item: object) -> Verb:
    if isinstance(item, Verb):
        return item
    if not isinstance(item, dict) or len(item) != 1:
        raise ValueError(f"expected a verb, which is a mapping with one key, got {item!r}")
    ((name, arguments),) = item.items()
    verb = VERBS.get(name)
    if verb is None:
        raise ValueError(f"unknown verb {name!r}; expected one of {', '.join(sorted(VERBS))}")
    return from_plain_data(verb, arguments if isinstance(arguments, dict) else {verb.shorthand: arguments})
