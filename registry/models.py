"""Data types of the registry: operators, versions, parameters and attributes, as frozen dataclasses.

Fields have the names of equivalent members of `onnx.defs.OpSchema`. When YAML is read, pydantic validates the
data against the annotations, and `registry/lint` checks that the operator is consistent.
"""

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import Annotated, ClassVar, Literal

from opshift.model.operator_ids import OperatorId
from opshift.model.plain_data import Json, json_values
from opshift.model.shared_data import ReadOnlyDict
from opshift.registry.attribute_values import Axes, Bridge, Number, Scalar, Value, stored_value
from opshift.registry.bodies import FunctionDefinition
from opshift.registry.recognized_forms import NodeExample, RecognizedForm
from opshift.registry.record import Checked, Described, Record, to_plain_data
from opshift.registry.steps import Step, StepAction, parse_action

AttributeTypeName = Literal[
    "FLOAT", "INT", "STRING", "TENSOR", "GRAPH", "SPARSE_TENSOR", "TYPE_PROTO",
    "FLOATS", "INTS", "STRINGS", "TENSORS", "GRAPHS", "SPARSE_TENSORS", "TYPE_PROTOS",
]  # fmt: skip

UNBOUNDED = 2**31 - 1
"""The maximum arity of a variadic parameter, as in ONNX."""


class Parameter(Described):
    """A formal input or output."""

    name: str
    """The name, which nodes do not use, because nodes list values by position."""
    type: str
    """A type variable of the operator, or a type such as `tensor(int64)`."""
    option: Literal["single", "optional", "variadic"] = "single"
    """Number of values in a node: one, at most one, or any number."""
    homogeneous: Annotated[bool, Checked(strict=True)] = True
    """Whether all values of a variadic parameter have the same type."""
    min_arity: int = 1
    """The minimum number of values of a variadic parameter."""
    differentiation: Literal["unknown", "differentiable", "non_differentiable"] = "unknown"
    """Whether gradients with respect to an input, or of an output, exist."""
    type_attribute: str | None = None
    """The attribute that sets an output's element type: the number of the type, or a tensor of the type."""
    element_attributes: tuple[str, ...] = ()
    """List attributes whose elements have the output's type; the first nonempty list determines the type."""
    absent_type: str | None = None
    """The type if `type_attribute` and `element_attributes` are absent: a type, or the name of an input."""

    @cached_property
    def type_attributes(self) -> tuple[str, ...]:
        """All attributes that determine an output's type."""
        return (*filter(None, [self.type_attribute]), *self.element_attributes)


class Attribute(Described):
    """The type, default and allowed values of an attribute."""

    type: AttributeTypeName
    """The type, as in `AttributeProto.AttributeType` of ONNX."""
    required: Annotated[bool, Checked(strict=True)] = False
    """Whether every node must have the attribute."""
    default: Value | None = None
    """The value of an absent attribute; `None` if the definition has no default."""
    values: tuple[Scalar, ...] | None = None
    """The allowed values (of each element, for a list attribute)."""
    minimum: Number | None = None
    """The smallest allowed number (of each element, for a list attribute)."""
    maximum: Number | None = None
    """The greatest allowed number (of each element, for a list attribute)."""
    absent: str = ""
    """The meaning of an absent attribute, if no single default value expresses it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        default = None if self.default is None else stored_value(self.default, self.type)
        object.__setattr__(self, "default", default)
        if self.values is not None and self.type in ("FLOAT", "FLOATS"):
            object.__setattr__(self, "values", tuple(stored_value(each, "FLOAT") for each in self.values))

    def allows(self, value: Scalar) -> bool:
        """Return whether the declared values and range allow a value (for a list attribute, one element)."""
        if self.values is not None and value not in self.values:
            return False
        if isinstance(value, str):
            return True
        low, high = self.minimum, self.maximum
        return (low is None or value >= low) and (high is None or value <= high)


class Deprecation(Record):
    """Deprecation of an operator by a version, with the operators to use instead."""

    replaced_by: str | tuple[str, ...] | None = None
    """The operator or operators to use instead; a name from a different domain contains the domain."""
    mapping: str = ""
    """Text for users: how to express a node by these operators."""

    @property
    def replacements(self) -> tuple[str, ...]:
        """The names of the operators that replace this one."""
        names = self.replaced_by or ()
        return (names,) if isinstance(names, str) else names


class Removal(Deprecation):
    """The removal of an operator from its domain at opset `removed_in`."""

    removed_in: Annotated[int, Checked(ge=2)]
    """The first opset without the operator."""
    up: Annotated[StepAction, Checked(before=parse_action)]
    """The conversion of a node to operators that exist at `removed_in`."""


class OperatorVersion(Described, FunctionDefinition):
    """An operator as one opset defines it, identified by (domain, name, since_version)."""

    domain: str
    name: str
    since_version: Annotated[int, Checked(ge=1, strict=True)]
    """The opset that introduces the version."""
    status: Literal["STABLE", "EXPERIMENTAL"] = "STABLE"
    """Stability: an experimental version may change after its release."""
    shape: str = ""
    """The rule in `registry.shapes` that infers the output shapes; empty if there is no rule."""
    bridge: Bridge | None = None
    """The kind of computation, which decides the wider types with the same result; `None` if undeclared."""
    axes: Axes | None = None
    """The range of `axis` and `axes`, see `Axes`; `None` if undeclared."""
    one_of: tuple[tuple[str, ...], ...] = ()
    """Groups of attributes; exactly one of each group must be set."""
    requires: tuple[str, ...] = ()
    """Requirements for ranks, lengths and values, such as `rank(X) >= 3`, see `registry.requirements`."""
    inputs: tuple[Parameter, ...] = field(default_factory=tuple)
    """The inputs, in the order in which nodes list them."""
    outputs: tuple[Parameter, ...] = field(default_factory=tuple)
    """The outputs, in the order in which nodes list them."""
    attributes: dict[str, Attribute] = field(default_factory=dict)
    """Attributes by name."""
    type_constraints: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The types that each type variable allows, sorted."""
    type_descriptions: dict[str, str] = field(default_factory=dict, compare=False, repr=False)
    """The text of each type variable."""
    determinism: Literal["deterministic", "non_deterministic", "unknown"] = "deterministic"
    """Whether equal inputs give equal outputs."""
    known_mistakes: tuple[str, ...] = ()
    """Lint rules that this version violates; a published version cannot be corrected."""
    deprecation: Deprecation | None = None
    """The deprecation of the operator by this version."""
    removal: Removal | None = None
    """The later removal of the operator from its domain."""
    step: Step | None = field(default_factory=type(None))
    """The conversion between the previous version and this one; `None` if not declared."""
    before: Annotated[StepAction | Literal["body"] | None, Checked(before=parse_action)] = None
    """For a first version: the conversion of a node to the previous opset, which lacks the operator.

    `body` expands the node into the nodes of its function body.
    """
    equivalents: tuple[str, ...] = ()
    """Operator versions, such as `ai.onnx.Gelu:20`: a node of this operator can replace their nodes."""

    def __hash__(self) -> int:
        """Hash only domain, name and `since_version`: this is fast, and they are unique within a registry."""
        return hash((self.domain, self.name, self.since_version))

    @cached_property
    def id(self) -> OperatorId:
        """The identity, printed as `ai.onnx.Softmax:13`."""
        return OperatorId(self.domain, self.name, self.since_version)

    @property
    def doc(self) -> str:
        """The description; `onnx.defs.OpSchema` calls it `doc`."""
        return self.description

    @property
    def deprecated(self) -> bool:
        """Whether this version is deprecated."""
        return self.deprecation is not None

    @cached_property
    def has_plain_attributes(self) -> bool:
        """Whether all attributes are numbers, strings, or lists of them."""
        types = {attribute.type.removesuffix("S") for attribute in self.attributes.values()}
        return types <= {"INT", "FLOAT", "STRING"}

    @cached_property
    def holds_graphs(self) -> bool:
        """Whether an attribute is a graph, or a list of graphs."""
        return any(each.type in ("GRAPH", "GRAPHS") for each in self.attributes.values())

    @cached_property
    def min_input(self) -> int:
        """The minimum number of inputs of a node."""
        return _min_arity(self.inputs)

    @cached_property
    def max_input(self) -> int:
        """The maximum number of inputs of a node; `UNBOUNDED` if the last one is variadic."""
        return _max_arity(self.inputs)

    @cached_property
    def min_output(self) -> int:
        """The minimum number of outputs of a node."""
        return _min_arity(self.outputs)

    @cached_property
    def max_output(self) -> int:
        """The maximum number of outputs of a node; `UNBOUNDED` if the last one is variadic."""
        return _max_arity(self.outputs)

    @cached_property
    def required_attributes(self) -> tuple[str, ...]:
        """The names of the required attributes."""
        return tuple(name for name, attribute in self.attributes.items() if attribute.required)

    @cached_property
    def type_codes(self) -> dict[str, tuple[str, ...]]:
        """The allowed types of an output, by the attribute with its element type number (`to` of Cast)."""
        return {
            output.type_attribute: self.types_of(output)
            for output in self.outputs
            if output.type_attribute and self.attributes[output.type_attribute].type == "INT"
        }

    def to_dict(self) -> dict[str, Json]:
        """Return the definition as JSON data; `opshift show --format json` adds the key `history`.

        The keys are `operator` (such as `ai.onnx.Softmax:13`), `has_function`, and the fields of this class
        without conversions, `known_mistakes` and `equivalents`. Infinity and NaN are strings.
        """
        return json_values(
            {
                "operator": str(self.id),
                **to_plain_data(self, exclude={"step", "removal", "before", "known_mistakes", "equivalents"}),
                "has_function": self.has_function,
                "removal": self.removal and to_plain_data(self.removal, exclude={"up"}),
            }
        )

    def types_of(self, parameter: Parameter) -> tuple[str, ...]:
        """Return the types that a value of `parameter` may have."""
        return self.type_constraints.get(parameter.type, (parameter.type,))

    def input_named(self, name: str) -> tuple[int, Parameter] | None:
        """Return the index and definition of an input, or `None`."""
        return next(((i, p) for i, p in enumerate(self.inputs) if p.name == name), None)

    def output_named(self, name: str) -> tuple[int, Parameter] | None:
        """Return the index and definition of an output, or `None`."""
        return next(((i, p) for i, p in enumerate(self.outputs) if p.name == name), None)


class Operator(Record):
    """An operator of a domain with all its versions, oldest first."""

    domain: str
    """The domain, which is also the name of the folder."""
    name: str
    """The name, which is also the name of the file without `.yaml`."""
    shape: str = ""
    """The rule in `registry.shapes` that infers the output shapes, for all versions."""
    bridge: Bridge | None = None
    """The kind of computation, see `Bridge`, for all versions."""
    axes: Axes | None = None
    """The range of `axis` and `axes`, see `Axes`, for all versions."""
    one_of: tuple[tuple[str, ...], ...] = ()
    """Groups of attributes; exactly one of each group must be set, for all versions."""
    requires: tuple[str, ...] = ()
    """Requirements for ranks, lengths and values; versions ignore those with names that they do not have."""
    has_complete_requires: bool = False
    """Whether `requires` has all conditions of a valid node, apart from types and broadcasting."""
    recognize: tuple[RecognizedForm, ...] = ()
    """Other nodes that compute the results of a node of the newest version, see `RecognizedForm`."""
    examples: tuple[NodeExample, ...] = ()
    """Valid nodes of the newest version, if inputs need certain shapes: patterns are derived from them."""
    versions: Annotated[tuple[OperatorVersion, ...], Checked(min_length=1)]
    """The versions, oldest first."""
    compatible_steps: ClassVar[Mapping[str, tuple[str, ...]]] = ReadOnlyDict()
    """Result of `step_rules.compatible_steps` for an operator of the project; empty for others."""

    @property
    def is_recognizable(self) -> bool:
        """Whether other nodes with the same results are known: a form in `recognize`, or a function body."""
        return bool(self.recognize) or any(each.has_function for each in self.versions)

    @property
    def newest_opset(self) -> int:
        """The newest opset that adds or removes a version."""
        return max(each.removal.removed_in if each.removal else each.since_version for each in self.versions)

    def at(self, opset: int) -> OperatorVersion | None:
        """Return the version in effect at `opset`; `None` before the first version and after a removal."""
        for version in reversed(self.versions):
            if version.since_version <= opset:
                is_removed = version.removal is not None and version.removal.removed_in <= opset
                return None if is_removed else version
        return None

    def introduced_after(self, opset: int) -> int | None:
        """Return the opset that introduces the next version after `opset`; `None` if there is none."""
        later = (each.since_version for each in self.versions if each.since_version > opset)
        return next(later, None)


def _min_arity(parameters: tuple[Parameter, ...]) -> int:
    """Return the number of values up to the last required parameter, including optional ones, as in ONNX."""
    required = (i + each.min_arity for i, each in enumerate(parameters) if each.option != "optional")
    return max(required, default=0)


def _max_arity(parameters: tuple[Parameter, ...]) -> int:
    return UNBOUNDED if parameters and parameters[-1].option == "variadic" else len(parameters)
