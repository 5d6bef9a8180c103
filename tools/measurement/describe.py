"""Description of a model with one node: its operator version, its types, and features for restrictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from opshift.model.attributes import read_attribute
from opshift.model.element_types import NAME_BY_NUMBER
from opshift.model.messages import ModelProto, TensorProto, TypeProto
from opshift.model.operator_ids import OperatorId, canonical_domain, opset_imports
from opshift.model.types import Dim, declared_dims, type_to_string
from opshift.registry.models import OperatorVersion, Parameter
from opshift.registry.registry import default_registry

ABSENT, CONSTANT, COMPUTED = "absent", "constant", "computed"
"""Value of the feature `form` for an omitted input, and for other forms of an input."""

FLAGS = (0, 1)
"""Values of attributes that are probably choices, even if not declared so; others may be sizes or axes."""

Scalar = int | float | str | None


class Feature(NamedTuple):
    """Property of a parameter or attribute of a node.

    Attributes:
        kind: of inputs `form`, `rank`, `type` and `empty` (whether the first dimension is 0); of outputs
            `used`; of attributes `attribute` (the value), `stated`, or `default` (whether it has this value).
        name: name in the definition.
        value: default of the attribute.
    """

    kind: str
    name: str
    value: Scalar = None


Features = Mapping[Feature, Scalar]


class Described(NamedTuple):
    """Described node: its operator version, its types by type variable, and its features."""

    operator: OperatorId
    types: Mapping[str, str]
    features: Features


def definition_of(operator: OperatorId) -> OperatorVersion:
    """Return the definition of an operator version."""
    return default_registry().get_schema(operator.op_type, operator.since_version, operator.domain)


def describe(model: ModelProto) -> Described | None:
    """Describe the only node of a model; return `None` if it has several nodes, or an unknown operator."""
    if len(model.graph.node) != 1:
        return None
    node = model.graph.node[0]
    domain = canonical_domain(node.domain)
    version = default_registry().at(node.op_type, opset_imports(model.opset_import).get(domain, 0), domain)
    if version is None or version.domain != domain:
        return None
    values = _Values(model)
    inputs = list(_pairs(version.inputs, node.input))
    outputs = list(_pairs(version.outputs, node.output))
    types: dict[str, str] = {}
    for formal, name in inputs + outputs:
        kind = values.type(name)
        if kind and formal.homogeneous and formal.type in version.type_constraints:
            types.setdefault(formal.type, kind)
    features: dict[Feature, Scalar] = {}
    for formal, name in reversed(inputs):
        features |= values.features(formal.name, name)
    features |= {Feature("used", formal.name): bool(name) for formal, name in outputs}
    stated = {each.name: read_attribute(each) for each in node.attribute}
    features |= dict(_attribute_features(version, stated))
    return Described(version.id, types, features)


def _pairs(formals: Sequence[Parameter], names: Sequence[str]) -> Iterator[tuple[Parameter, str]]:
    """Yield each parameter with the name of its value; `""` for an omitted value."""
    for position, formal in enumerate(formals):
        if formal.option == "variadic":
            yield from ((formal, name) for name in names[position:])
        else:
            yield formal, names[position] if position < len(names) else ""


class _Values:
    """The values of a model."""

    def __init__(self, model: ModelProto) -> None:
        graph = model.graph
        self._constants: dict[str, TensorProto] = {each.name: each for each in graph.initializer}
        self._declared: dict[str, TypeProto] = {
            each.name: each.type for each in (*graph.input, *graph.output)
        }

    def type(self, name: str) -> str | None:
        """Return the type of a value."""
        if name in self._constants:
            return f"tensor({NAME_BY_NUMBER[self._constants[name].data_type]})"
        return type_to_string(self._declared[name]) if name in self._declared else None

    def features(self, parameter: str, name: str) -> dict[Feature, Scalar]:
        """Return the features of an input."""
        is_constant = name in self._constants
        form = ABSENT if not name else CONSTANT if is_constant else COMPUTED
        found: dict[Feature, Scalar] = {Feature("form", parameter): form}
        dims: Sequence[Dim] | None = None
        if is_constant:
            dims = tuple(self._constants[name].dims)
        elif name in self._declared:
            dims = declared_dims(self._declared[name])
        if dims is not None:
            found[Feature("rank", parameter)] = len(dims)
        if dims:
            found[Feature("empty", parameter)] = dims[0] == 0
        if name:
            found[Feature("type", parameter)] = self.type(name)
        return found


def _attribute_features(
    version: OperatorVersion, stated: Mapping[str, object]
) -> Iterator[tuple[Feature, Scalar]]:
    type_attributes = {each.type_attribute for each in version.outputs}
    for name, attribute in version.attributes.items():
        default = attribute.default
        value = stated.get(name, default)
        if isinstance(value, bytes):
            value = value.decode()
        is_choice = (attribute.values is not None or value in FLAGS) and name not in type_attributes
        if isinstance(value, str) or (isinstance(value, int) and is_choice):
            yield Feature("attribute", name), value
        if default is None:
            yield Feature("stated", name), name in stated
        elif isinstance(default, int | float):
            yield Feature("default", name, default), value == default
