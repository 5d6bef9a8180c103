"""Views for checker rules: uses of newer IR features, and types and shapes of the values of nodes."""

from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from opshift.checker.checked_model import CheckedModel
from opshift.checker.checked_nodes import CheckedNode
from opshift.checker.findings import Problem
from opshift.checker.ir_features.contents import Contents, Use, since
from opshift.checker.ir_features.finders import find_uses
from opshift.inference.infer_shapes import KnownShapes, known_shapes
from opshift.model.element_types import type_string
from opshift.registry.ir_versions import ir_versions
from opshift.registry.models import OperatorVersion, Parameter


class NewerFeatures:
    """Uses of features and element types that are newer than a model's IR version."""

    location = "model"

    def __init__(self, model: CheckedModel) -> None:
        self.ir_version = model.ir_version
        self.uses: list[Use] = []
        if model.ir_version >= 1:
            newest = ir_versions().newest
            contents = Contents(model.proto, model.registry, newest, oldest=model.ir_version)
            self.uses = list(find_uses(contents))

    def problems(self, feature: str, meaning: str) -> Iterator[Problem]:
        """Yield a problem for each use of a newer feature; `meaning` names the feature in the message."""
        for use in self.uses:
            if use.feature == feature:
                reason = f"IR version {self.ir_version} does not support {meaning}; {since(feature)} does"
                yield Problem(reason, place=use.place)


class BoundValue(NamedTuple):
    """A value of known type, and the formal parameter to which a node binds the value."""

    formal: Parameter
    name: str
    type: str


class ShapedNode:
    """A node of an operator with restrictions for axes or input shapes."""

    def __init__(self, node: CheckedNode, operator: OperatorVersion) -> None:
        self.node = node
        self.operator = operator
        self.view = node.container.scope.node(node.proto)

    @property
    def location(self) -> str:
        """The place of the node in the model, for findings."""
        return self.node.location

    @cached_property
    def context(self) -> KnownShapes:
        """Shapes, attributes and constants of the node, with `None` for sizes that are not certain."""
        return known_shapes(self.view, self.operator, self.node.container.scope)

    @cached_property
    def shape_key(self) -> tuple[Hashable, ...] | None:
        """Cache key for rules that read only shapes and attributes; `None` if a key would be large."""
        if not self.operator.has_plain_attributes:
            return None
        attributes = [each.SerializeToString() for each in self.node.proto.attribute]
        presence = (*map(bool, self.node.inputs), "->", *map(bool, self.node.outputs))
        return (id(self.operator), *presence, *self.context.inputs, *attributes)

    @property
    def cache_key(self) -> Hashable:
        """Cache key: the properties that rules for this class read; `None` if they may read others, too."""
        if self.shape_key is None:
            return None
        if self.operator.axes:
            # The rule for axes also reads constant `axes` inputs, and ranks of inputs without a known shape.
            is_attribute = not self.operator.attributes.keys().isdisjoint(("axis", "axes"))
            is_known = None not in self.context.inputs
            if not (is_attribute and is_known):
                return None
        return (*self.shape_key, self.node.container.may_not_run)


class TypedNode:
    """A node with a known operator version, and the types of its inputs and outputs.

    Attributes:
        inputs, outputs: an element type such as `float16`, a type string, or `None` if the type is unknown.
    """

    def __init__(self, node: CheckedNode, operator: OperatorVersion) -> None:
        element_type = node.container.scope.element_type
        self.node = node
        self.operator = operator
        self.inputs = [element_type(name) if name else None for name in node.inputs]
        self.outputs = [element_type(name) if name else None for name in node.outputs]

    @property
    def location(self) -> str:
        """The place of the node in the model, for findings."""
        return self.node.location

    @property
    def cache_key(self) -> Hashable:
        """Cache key: operator and types; `None` if rules for this class may read other properties, too."""
        # The rules for heterogeneous outputs and type attributes also read subgraphs and attributes.
        if not all(output.homogeneous and not output.type_attributes for output in self.operator.outputs):
            return None
        return (id(self.operator), *self.inputs, "->", *self.outputs)

    def bound_inputs(self) -> Iterator[BoundValue]:
        """Yield the inputs of known type, bound to the operator's parameters."""
        return _bind(self.operator.inputs, self.node.inputs, self.inputs)

    def bound_outputs(self) -> Iterator[BoundValue]:
        """Yield the outputs of known type, bound to the operator's parameters."""
        return _bind(self.operator.outputs, self.node.outputs, self.outputs)


def _bind(
    formals: Sequence[Parameter], names: Sequence[str], types: Sequence[str | None]
) -> Iterator[BoundValue]:
    last = len(formals) - 1
    for position, (name, value_type) in enumerate(zip(names, types, strict=True)):
        # An onnxruntime release may accept more inputs or outputs than the definition.
        is_bound = position <= last or (last >= 0 and formals[last].option == "variadic")
        if value_type is not None and is_bound:
            # Only the last parameter can be variadic; it is bound to all remaining values.
            yield BoundValue(formals[min(position, last)], name, type_string(value_type))
