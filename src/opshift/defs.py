"""Operator schemas under the names of `onnx.defs`, for programs that were written for it.

    import opshift.defs as defs
    defs.get_schema("Softmax", 12).attributes["axis"].default_value.i

Schemas are views of `opshift.default_registry()`, which provides more information. They equal those of the
newest ONNX release, except for:

* texts and function bodies, which are the project's own;
* lists of types, which are sorted;
* `file` and `line`, which locate the definition in YAML.

`ai.onnx` is accepted as the default domain `""`, too. Schemas cannot be registered: for other domains, use
`Registry.with_folder`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final, Generic, Self, TypeVar, overload

from opshift.model.attributes import ATTRIBUTE_TYPES, write_attribute
from opshift.model.messages import AttributeProto, FunctionProto
from opshift.model.operator_ids import DEFAULT_DOMAIN, OperatorId, canonical_domain, model_domain
from opshift.registry.errors import ResolveError, require_argument_types, resolve_error
from opshift.registry.models import UNBOUNDED, OperatorVersion, Parameter
from opshift.registry.models import Attribute as AttributeDefinition
from opshift.registry.onnx_defs import onnx_defs
from opshift.registry.registry import default_registry

T = TypeVar("T")

_MAP_VALUE: Final = re.compile(r", (\w+)\)")


class _Number(int, Enum):
    """Base of enumerations that equal integers and are printed by name; `IntEnum` prints the integer."""

    __repr__ = Enum.__str__


class _SchemaMember(Generic[T]):
    """A read-only member of a schema, computed from the operator version."""

    def __init__(self, read: Callable[[OperatorVersion], T]) -> None:
        self._read = read

    @overload
    def __get__(self, schema: OpSchema, owner: object) -> T: ...

    @overload
    def __get__(self, schema: None, owner: object) -> Self: ...

    def __get__(self, schema: OpSchema | None, owner: object) -> T | Self:
        return self if schema is None else self._read(schema._version)


@dataclass(frozen=True, repr=False)
class OpSchema:
    """A version of an operator, with the read-only members of `onnx.defs.OpSchema`."""

    _version: OperatorVersion

    class FormalParameterOption(_Number):
        """The number of values of a parameter: exactly one, at most one, or a variable number."""

        Single, Optional, Variadic = range(3)

    class DifferentiationCategory(_Number):
        """The differentiability of a parameter."""

        Unknown, Differentiable, NonDifferentiable = range(3)

    class SupportType(_Number):
        """The status of an operator version."""

        COMMON, EXPERIMENTAL = range(2)

    class NodeDeterminism(Enum):
        """Whether equal inputs of an operator lead to equal outputs."""

        Unknown, NonDeterministic, Deterministic = range(3)
        __repr__ = Enum.__str__

    class AttrType(_Number):
        """The type of an attribute, with the values of `AttributeProto.type`."""

        FLOAT, INT, STRING, TENSOR, GRAPH = range(1, 6)
        FLOATS, INTS, STRINGS, TENSORS, GRAPHS = range(6, 11)
        SPARSE_TENSOR, SPARSE_TENSORS, TYPE_PROTO, TYPE_PROTOS = range(11, 15)

    @dataclass(frozen=True, eq=False)
    class FormalParameter:
        """A formal input or output of an operator version."""

        name: str
        type_str: str
        """The name of a type variable, or a type such as `tensor(float)`."""
        types: set[str]
        """The types that values of the parameter may have."""
        description: str
        option: OpSchema.FormalParameterOption
        is_homogeneous: bool
        min_arity: int
        differentiation_category: OpSchema.DifferentiationCategory

    @dataclass(frozen=True, eq=False)
    class Attribute:
        """An attribute; `default_value` is an empty AttributeProto if the attribute has no default."""

        name: str
        type: OpSchema.AttrType
        description: str
        default_value: AttributeProto
        required: bool

    @dataclass(frozen=True, eq=False)
    class TypeConstraintParam:
        """A type variable, such as `T`, with its allowed types."""

        type_param_str: str
        allowed_type_strs: list[str]
        description: str

    name = _SchemaMember(lambda version: version.name)
    domain = _SchemaMember(lambda version: model_domain(version.domain))
    """The domain; empty for the default domain."""
    since_version = _SchemaMember(lambda version: version.since_version)
    doc = _SchemaMember(lambda version: version.description)
    file = _SchemaMember(lambda version: str(default_registry().file_of(version.name, version.domain)))
    """The file with the definition."""
    line = _SchemaMember(lambda version: _line_of(version))
    """The line of this version in `file`."""
    support_level = _SchemaMember(
        lambda version: OpSchema.SupportType["COMMON" if version.status == "STABLE" else version.status]
    )
    deprecated = _SchemaMember(lambda version: version.deprecated)

    inputs = _SchemaMember(lambda version: [_formal_parameter(each, version) for each in version.inputs])
    outputs = _SchemaMember(lambda version: [_formal_parameter(each, version) for each in version.outputs])
    attributes = _SchemaMember(
        lambda version: {k: _attribute_schema(k, each) for k, each in version.attributes.items()}
    )
    type_constraints = _SchemaMember(
        lambda version: [
            OpSchema.TypeConstraintParam(name, list(types), version.type_descriptions.get(name, ""))
            for name, types in version.type_constraints.items()
        ]
    )
    min_input = _SchemaMember(lambda version: version.min_input)
    max_input = _SchemaMember(lambda version: version.max_input)
    """The maximum number of inputs, see `is_infinite`."""
    min_output = _SchemaMember(lambda version: version.min_output)
    max_output = _SchemaMember(lambda version: version.max_output)
    """The maximum number of outputs, see `is_infinite`."""

    node_determinism = _SchemaMember(
        lambda version: OpSchema.NodeDeterminism[_camel_case(version.determinism)]
    )
    non_deterministic = _SchemaMember(lambda version: version.determinism != "deterministic")
    """Whether equal inputs may lead to different outputs."""

    has_function = _SchemaMember(lambda version: version.body is not None)
    """Whether the version has one function body for all nodes."""
    has_context_dependent_function = _SchemaMember(lambda version: version.has_context_dependent_function)
    """Whether the function body depends on the node; `OperatorVersion.function_body` builds it."""
    function_body = _SchemaMember(lambda version: _function_body(version))
    """The function body for all nodes; an empty message if `has_function` is false."""
    all_function_opset_versions = _SchemaMember(lambda version: _function_opsets(version))
    """The opsets for which ONNX has a function body; the next two members list those of one kind of body."""
    function_opset_versions = _SchemaMember(lambda version: _function_opsets(version) if version.body else [])
    context_dependent_function_opset_versions = _SchemaMember(
        lambda version: _function_opsets(version) if version.has_context_dependent_function else []
    )

    has_type_and_shape_inference_function = _SchemaMember(
        lambda v: str(v.id) not in onnx_defs().without_inference
    )
    """Whether ONNX infers the types and shapes of the outputs."""
    has_data_propagation_function = _SchemaMember(lambda v: str(v.id) in onnx_defs().with_data_propagation)
    """Whether ONNX propagates the values of shapes through the operator."""

    def __repr__(self) -> str:
        return f"OpSchema({str(self._version.id)!r})"

    @staticmethod
    def is_infinite(number: int) -> bool:
        """Return whether a number, such as `max_input`, means that there is no limit."""
        return number == UNBOUNDED


def _camel_case(name: str) -> str:
    return name.title().replace("_", "")


def _line_of(version: OperatorVersion) -> int:
    from opshift.registry.yaml_files import place_of

    registry = default_registry()
    operator = registry.operator(version.name, version.domain)
    assert operator is not None
    path = registry.file_of(version.name, version.domain)
    return place_of(path, ("versions", operator.versions.index(version))).line


def _function_body(version: OperatorVersion) -> FunctionProto:
    if version.body is None:
        return FunctionProto()
    function = version.function_body()
    function.domain = model_domain(version.domain)
    return function


def _function_opsets(version: OperatorVersion) -> list[int]:
    opsets = onnx_defs().function_opsets.get(str(version.id), (version.since_version,))
    return list(opsets) if version.has_function else []


def _formal_parameter(parameter: Parameter, version: OperatorVersion) -> OpSchema.FormalParameter:
    # In parameters, but not in type constraints, ONNX writes `map(int64, float)` as
    # `map(int64,tensor(float))`.
    types = {_MAP_VALUE.sub(r",tensor(\1))", each) for each in version.types_of(parameter)}
    return OpSchema.FormalParameter(
        name=parameter.name,
        type_str=parameter.type,
        types=types,
        description=parameter.description,
        option=OpSchema.FormalParameterOption[_camel_case(parameter.option)],
        is_homogeneous=parameter.homogeneous,
        min_arity=parameter.min_arity,
        differentiation_category=OpSchema.DifferentiationCategory[_camel_case(parameter.differentiation)],
    )


def _attribute_schema(name: str, attribute: AttributeDefinition) -> OpSchema.Attribute:
    default = AttributeProto()
    if attribute.default is not None:
        write_attribute(default, name, ATTRIBUTE_TYPES[attribute.type], attribute.default)
    kind = OpSchema.AttrType[attribute.type]
    return OpSchema.Attribute(name, kind, attribute.description, default, attribute.required)


__all__ = [
    "AI_ONNX_PREVIEW_DOMAIN",
    "AI_ONNX_PREVIEW_TRAINING_DOMAIN",
    "ONNX_DOMAIN",
    "ONNX_ML_DOMAIN",
    "OpSchema",
    "SchemaError",
    "get_all_schemas",
    "get_all_schemas_with_history",
    "get_function_ops",
    "get_schema",
    "has",
    "onnx_ml_opset_version",
    "onnx_opset_version",
]

ONNX_DOMAIN = ""
ONNX_ML_DOMAIN = "ai.onnx.ml"
AI_ONNX_PREVIEW_DOMAIN = "ai.onnx.preview"
AI_ONNX_PREVIEW_TRAINING_DOMAIN = "ai.onnx.preview.training"

SchemaError = ResolveError
"""The error of `get_schema`; it contains the reason and a remedy."""


def get_schema(
    op_type: str, max_inclusive_version: int | str | None = None, domain: str = ONNX_DOMAIN
) -> OpSchema:
    """Return the newest version of an operator, up to an opset if one is given.

    The second argument may also be the domain, as in `get_schema("Scaler", "ai.onnx.ml")`.

    Raises:
        SchemaError: no version is found.
        UsageError: an argument has a wrong type.
    """
    if isinstance(max_inclusive_version, str):
        return get_schema(op_type, None, domain or max_inclusive_version)
    require_argument_types(op_type, max_inclusive_version, domain)
    domain = canonical_domain(domain)
    listed = _versions_of(op_type, domain)
    for each in reversed(listed):
        if max_inclusive_version is None or each.since_version <= max_inclusive_version:
            return each
    opset = _newest_opset(domain) if max_inclusive_version is None or not listed else max_inclusive_version
    registry = default_registry()
    wanted = OperatorId(domain, op_type, opset)
    raise resolve_error(registry.operator(op_type, domain), wanted, registry.names(domain))


def has(op_type: str, max_inclusive_version: int | str | None = None, domain: str = ONNX_DOMAIN) -> bool:
    """Return whether `get_schema` finds a version; the arguments are the same."""
    try:
        get_schema(op_type, max_inclusive_version, domain)
    except SchemaError:
        return False
    return True


def get_all_schemas() -> list[OpSchema]:
    """Return the newest version of every operator of ONNX."""
    return [versions[-1] for versions in _all_versions()]


def get_all_schemas_with_history() -> list[OpSchema]:
    """Return every version of every operator of ONNX."""
    return [each for versions in _all_versions() for each in versions]


def get_function_ops() -> list[OpSchema]:
    """Return the newest version of each operator of ONNX if this version has a function body."""
    return [each for each in get_all_schemas() if each.has_function or each.has_context_dependent_function]


def onnx_opset_version() -> int:
    """Return the newest opset of the default domain."""
    return _newest_opset(DEFAULT_DOMAIN)


def onnx_ml_opset_version() -> int:
    """Return the newest opset of `ai.onnx.ml`."""
    return _newest_opset(ONNX_ML_DOMAIN)


def _newest_opset(domain: str) -> int:
    """Return the newest released opset, as `onnx.defs` does; without releases, the newest defined opset."""
    registry = default_registry()
    published = registry.releases.released_opset(domain)
    return registry.newest_opset(domain) if published is None else published


def _all_versions() -> list[tuple[OpSchema, ...]]:
    registry = default_registry()
    # skip open domains, because `onnx.defs` lists no operators of other projects
    domains = [each for each in registry.domains() if each not in registry.releases.open_domains]
    every = (_versions_of(each.name, domain) for domain in domains for each in registry.operators(domain))
    return [versions for versions in every if versions]


# large enough for all operators, and limited, so that unknown names cannot fill the memory
@lru_cache(maxsize=1024)
def _versions_of(op_type: str, domain: str) -> tuple[OpSchema, ...]:
    """Return the versions that `onnx.defs` lists for an operator, oldest first; `()` if it is unknown."""
    operator = default_registry().operator(op_type, domain)
    return tuple(
        OpSchema(each)
        for each in (operator.versions if operator else ())
        if each.since_version <= _newest_opset(domain) and str(each.id) not in onnx_defs().unlisted
    )
