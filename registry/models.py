"""The registry's data types: what one operator version is, as frozen dataclasses.

Field names follow `onnx.defs.OpSchema` where it has them. As YAML is read, pydantic checks all that the
annotations say; however it is built, an instance checks that it does not contradict itself.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal

from opshift.registry.function_bodies import Body
from opshift.registry.names import OperatorId
from opshift.registry.record import Checked, Record
from opshift.registry.steps import Answer, Step, answer_of

AttributeType = Literal[
    "FLOAT", "INT", "STRING", "TENSOR", "GRAPH", "SPARSE_TENSOR", "TYPE_PROTO",
    "FLOATS", "INTS", "STRINGS", "TENSORS", "GRAPHS", "SPARSE_TENSORS", "TYPE_PROTOS",
]  # fmt: skip
Scalar = int | float | str
Value = Scalar | tuple[Scalar, ...]
Bridge = Literal["order", "extreme", "ring", "real"]
"""What an operator does with the values of a type, and so in which wider types its result is the same.

`order`  it moves, selects or compares them: any type that holds them all, in their order.
`extreme` it takes the least or the greatest, and of no values the type's own limit: types whose limits,
         cast back, are those of the narrow one.
`ring`   it adds and multiplies them: wider integers, since a cast back wraps as the narrow type does;
         and wider floats, rounded once at the end.
`real`   it computes a function of real numbers: wider floats, rounded once at the end.
"""
UNBOUNDED = 2**31 - 1
"""The arity of a variadic parameter, as ONNX counts it."""


@dataclass(frozen=True, kw_only=True)
class Parameter(Record):
    """A formal input or output."""

    name: str
    type: str
    """A type variable of the operator, or a type such as `tensor(int64)`."""
    option: Literal["single", "optional", "variadic"] = "single"
    homogeneous: Annotated[bool, Checked(strict=True)] = True
    """Of a variadic parameter: whether all its values have the same type."""
    min_arity: int = 1
    differentiation: Literal["unknown", "differentiable", "non_differentiable"] = "unknown"
    type_attribute: str | None = None
    """Of an output: the attribute that names its element type (a number, or a tensor of that type)."""
    absent_type: str | None = None
    """Of an output: the type without that attribute: a type, or the name of an input that has it."""


@dataclass(frozen=True, kw_only=True)
class Attribute(Record):
    """An attribute's type, whether it has to be there, and what it may hold."""

    type: AttributeType
    required: Annotated[bool, Checked(strict=True)] = False
    default: Value | None = None
    """What an absent attribute means; `None` if the definition states no default."""
    values: tuple[Scalar, ...] | None = None
    """The only legal values (of each element, if the attribute is a list)."""
    minimum: int | float | None = None
    maximum: int | float | None = None
    absent: str = ""
    """What leaving the attribute out means where no single default value says it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "default", _typed(self.default, self.type))
        if self.required and self.default is not None:
            raise ValueError("a required attribute has no default")
        if self.default is not None and not _is_of(self.default, self.type):
            raise ValueError(f"the default {self.default!r} is no {self.type}")

    def allows(self, value: Scalar) -> bool:
        """Whether `value` (one element of a list attribute) lies in the declared set and range."""
        if self.values is not None and value not in self.values:
            return False
        if isinstance(value, str):
            return True
        above = self.minimum is None or value >= self.minimum
        return above and (self.maximum is None or value <= self.maximum)


@dataclass(frozen=True, kw_only=True)
class Deprecation(Record):
    """From this version on the operator is in the set only to say what replaced it."""

    replaced_by: str | None = None
    mapping: str = ""


@dataclass(frozen=True, kw_only=True)
class Removal(Record):
    """The operator left its domain's set at opset `removed_in`."""

    removed_in: Annotated[int, Checked(ge=2)]
    replaced_by: str | None = None
    mapping: str = ""
    up: Annotated[Answer, Checked(before=answer_of)]
    """How a node is expressed by what the set at `removed_in` holds."""


@dataclass(frozen=True, kw_only=True)
class OperatorVersion(Record):
    """One operator as one opset introduced it; identified by (domain, name, since_version)."""

    domain: str
    name: str
    since_version: Annotated[int, Checked(ge=1, strict=True)]
    status: Literal["STABLE", "EXPERIMENTAL"] = "STABLE"
    description: str = ""
    shape: str = ""
    """The rule of `registry.shapes` that gives the outputs' shapes; empty if none does."""
    bridge: Bridge | None = None
    """Which wider types give the same result: see `Bridge`; none if not said."""
    inputs: tuple[Parameter, ...] = ()
    outputs: tuple[Parameter, ...] = ()
    attributes: dict[str, Attribute] = field(default_factory=dict)
    type_constraints: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Type variable to the types it may stand for, sorted."""
    determinism: Literal["deterministic", "non_deterministic", "unknown"] = "deterministic"
    deprecation: Deprecation | None = None
    removal: Removal | None = None
    step: Step | None = None
    """How the version before this one becomes this one, and back; `None` for the first."""
    before: Annotated[Answer | Literal["body"] | None, Checked(before=answer_of)] = None
    """Of a first version: how a node is expressed in the opset before it, which lacks the operator; `body`
    says by the nodes of its body."""
    body: Body | None = None
    """The same in terms of other operators, for a function."""

    def __post_init__(self) -> None:
        for parameter in (*self.inputs, *self.outputs):
            if parameter.type not in self.type_constraints and "(" not in parameter.type:
                raise ValueError(
                    f"{parameter.name}: {parameter.type!r} is neither a type nor a type variable"
                )
        if self.before == "body" and self.body is None:
            raise ValueError("before is body, and there is none")

    def __hash__(self) -> int:
        """That of its identity: quickly found, and no two versions of a registry share it."""
        return hash((self.domain, self.name, self.since_version))

    @cached_property
    def id(self) -> OperatorId:
        """The identity, printed as `ai.onnx.Softmax:13`."""
        return OperatorId(self.domain, self.name, self.since_version)

    @property
    def doc(self) -> str:
        """The description, under the name that `onnx.defs.OpSchema` gives it."""
        return self.description

    @property
    def deprecated(self) -> bool:
        """Whether the version only says what replaced the operator."""
        return self.deprecation is not None

    @cached_property
    def has_plain_attributes(self) -> bool:
        """Whether all attributes are numbers, texts, or lists of them."""
        return all(
            each.type.removesuffix("S") in ("INT", "FLOAT", "STRING") for each in self.attributes.values()
        )

    @cached_property
    def min_input(self) -> int:
        """The least number of inputs a node may list."""
        return _least(self.inputs)

    @cached_property
    def max_input(self) -> int:
        """The greatest number of inputs a node may list; `UNBOUNDED` if the last is variadic."""
        return _most(self.inputs)

    @cached_property
    def min_output(self) -> int:
        """The least number of outputs a node may list."""
        return _least(self.outputs)

    @cached_property
    def max_output(self) -> int:
        """The greatest number of outputs a node may list; `UNBOUNDED` if the last is variadic."""
        return _most(self.outputs)

    @cached_property
    def required_attributes(self) -> tuple[str, ...]:
        """The names of the attributes that every node states."""
        return tuple(name for name, attribute in self.attributes.items() if attribute.required)

    def types_of(self, parameter: Parameter) -> tuple[str, ...]:
        """The types a value bound to `parameter` may have."""
        return self.type_constraints.get(parameter.type, (parameter.type,))

    def input_named(self, name: str) -> tuple[int, Parameter] | None:
        """Position and definition of an input, or `None`."""
        return next(((i, p) for i, p in enumerate(self.inputs) if p.name == name), None)

    def output_named(self, name: str) -> tuple[int, Parameter] | None:
        """Position and definition of an output, or `None`."""
        return next(((i, p) for i, p in enumerate(self.outputs) if p.name == name), None)


@dataclass(frozen=True, kw_only=True)
class Operator(Record):
    """One name of one domain through time: all its versions, oldest first."""

    domain: str
    name: str
    description: str = ""
    """Of the newest version; a version that differs says so in its own description."""
    shape: str = ""
    bridge: Bridge | None = None
    versions: Annotated[tuple[OperatorVersion, ...], Checked(min_length=1)]

    def __post_init__(self) -> None:
        ages = [version.since_version for version in self.versions]
        if ages != sorted(set(ages)):
            raise ValueError(f"versions must ascend, each once: {ages}")
        if self.versions[0].step is not None:
            raise ValueError("the first version has nothing before it to step from")
        if any(version.before is not None for version in self.versions[1:]):
            raise ValueError("only the first version says how its nodes are expressed before it came")

    def at(self, opset: int) -> OperatorVersion | None:
        """The version in force at `opset`; `None` before the first and after a removal."""
        found = None
        for version in self.versions:
            if version.since_version > opset:
                break
            found = version
        if found is None or (found.removal is not None and found.removal.removed_in <= opset):
            return None
        return found


def _is_of(value: Value, kind: str) -> bool:
    if isinstance(value, tuple):
        return kind.endswith("S") and all(_is_of(each, kind.removesuffix("S")) for each in value)
    wanted = {"INT": int, "FLOAT": float, "STRING": str}.get(kind)
    return wanted is not None and isinstance(value, wanted) and not isinstance(value, bool)


def _typed(value: Any, kind: str) -> Any:
    if isinstance(value, tuple):
        return tuple(_typed(item, kind.removesuffix("S")) for item in value)
    if kind == "FLOAT" and isinstance(value, int | float):
        try:
            return struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError as error:
            raise ValueError(f"the default {value!r} is no float32") from error
    return value


def _least(parameters: tuple[Parameter, ...]) -> int:
    """ONNX counts up to the last parameter that has to be there."""
    least = 0
    for position, parameter in enumerate(parameters):
        if parameter.option == "single":
            least = position + 1
        elif parameter.option == "variadic":
            least = position + parameter.min_arity
    return least


def _most(parameters: tuple[Parameter, ...]) -> int:
    if parameters and parameters[-1].option == "variadic":
        return UNBOUNDED
    return len(parameters)
