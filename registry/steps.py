"""A step as data: how one version of an operator becomes the next, and back.

Each direction is one of
    `compatible`         the node stays as it is (types that the other side lacks are guarded)
    `adapter`            a function in `adapters/` rewrites the node
    `{refuse: reason}`   it cannot be done
    a list of verbs      small rewrites that both definitions can check
A direction that is left out is derived from the two definitions when they differ by element types only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from opshift.registry.record import Checked, Record, checked

Literals = int | float | str | tuple[int | float | str, ...]


@dataclass(frozen=True, kw_only=True)
class Verb(Record):
    """One declared rewrite; in YAML a mapping of one key, the verb's name."""

    name: ClassVar[str]
    shorthand: ClassVar[str] = "attribute"
    """The field that a bare string stands for."""


@dataclass(frozen=True, kw_only=True)
class DropAttribute(Verb):
    """Take off an attribute that the target lacks; refuse if it is not at its default."""

    name = "drop_attribute"
    attribute: str


@dataclass(frozen=True, kw_only=True)
class IgnoreAttribute(Verb):
    """Take off an attribute that never changed a result, whatever it holds."""

    name = "ignore_attribute"
    attribute: str


@dataclass(frozen=True, kw_only=True)
class AddAttribute(Verb):
    """Write `value` where the node does not state the attribute."""

    name = "add_attribute"
    attribute: str
    value: Literals


@dataclass(frozen=True, kw_only=True)
class RenameAttribute(Verb):
    """The same attribute under another name."""

    name = "rename_attribute"
    attribute: str
    to: str


@dataclass(frozen=True, kw_only=True)
class AttributeToInput(Verb):
    """Turn an attribute into a constant that feeds `input` (by default the input of the same name).

    The constant takes the element type of the input's type; a number becomes a scalar, or a list of
    one where `rank` is 1.
    """

    name = "attribute_to_input"
    attribute: str
    input: str = ""
    rank: Literal[0, 1] | None = None

    @property
    def input_name(self) -> str:
        """The input that is fed."""
        return self.input or self.attribute


@dataclass(frozen=True, kw_only=True)
class InputToAttribute(Verb):
    """Turn a constant input back into `attribute`; refuse if it is not constant."""

    name = "input_to_attribute"
    shorthand = "input"
    input: str
    attribute: str = ""

    @property
    def attribute_name(self) -> str:
        """The attribute that is written."""
        return self.attribute or self.input


@dataclass(frozen=True, kw_only=True)
class RequireAttribute(Verb):
    """Refuse unless the attribute, or its default, is `value`."""

    name = "require_attribute"
    attribute: str
    value: Literals


@dataclass(frozen=True, kw_only=True)
class RenameValue(Verb):
    """Spell an attribute's values as the target does; other values must be legal there as they are."""

    name = "rename_value"
    attribute: str
    values: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class RequireNoInput(Verb):
    """Refuse if the optional input, which the target lacks, is used."""

    name = "require_no_input"
    shorthand = "input"
    input: str


@dataclass(frozen=True, kw_only=True)
class RequireNoOutput(Verb):
    """Refuse if the optional output, which the target lacks, is used."""

    name = "require_no_output"
    shorthand = "output"
    output: str


@dataclass(frozen=True, kw_only=True)
class RenameOp(Verb):
    """The node becomes a node of another operator of the same domain, otherwise as it is."""

    name = "rename_op"
    shorthand = "op_type"
    op_type: str


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
VERBS: dict[str, type[Verb]] = {verb.name: verb for verb in Verb.__subclasses__()}


@dataclass(frozen=True, kw_only=True)
class Refuse(Record):
    """The direction cannot be taken, and why."""

    refuse: Annotated[str, Checked(min_length=10)]
    remedy: str = ""


Answer = Literal["compatible", "adapter"] | Refuse | tuple[AnyVerb, ...]


@dataclass(frozen=True, kw_only=True)
class Step(Record):
    """From the version before (`up`) and back to it (`down`)."""

    change: str = ""
    """What changed, and what that means for a model that is moved."""
    up: Annotated[Answer | None, Checked(before=answer_of)] = None
    down: Annotated[Answer | None, Checked(before=answer_of)] = None


def answer_of(answer: Any) -> Any:
    """An answer as YAML has it, with its verbs turned from mappings of one key into verbs."""
    if not isinstance(answer, list | tuple):
        return answer
    return tuple(_verb(item) for item in answer)


def _verb(item: Any) -> Any:
    if isinstance(item, Verb):
        return item
    if not isinstance(item, dict) or len(item) != 1:
        raise ValueError(f"a verb is a mapping of one key, not {item!r}")
    ((name, arguments),) = item.items()
    verb = VERBS.get(name)
    if verb is None:
        raise ValueError(f"{name!r} is no verb; there are {', '.join(sorted(VERBS))}")
    return checked(verb, arguments if isinstance(arguments, dict) else {verb.shorthand: arguments})
