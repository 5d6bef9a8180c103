"""Views for checker rules: uses of newer IR features, and types and shapes of the values of nodes."""

from collections.abc import Hashable, Iterable, Iterator, Sequence, Set
from functools import cached_property
from typing import NamedTuple

from opshift.checker.checked_model import CheckedModel
from opshift.checker.checked_nodes import CheckedNode
from opshift.checker.findings import Problem
from opshift.checker.ir_features.contents import Contents, Use, since
from opshift.checker.ir_features.finders import find_uses
from opshift.inference.infer_shapes import KnownShapes, known_shapes
from opshift.inference.node_problems import AXIS_NAMES
from opshift.model.element_types import type_string
from opshift.registry.ir_versions import ir_versions
from opshift.registry.models import OperatorVersion, Parameter


class NewerFeatures:
    """Uses of features and element types that are newer than a model's IR version, if this is positive."""

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
        self.view = node.container.scope.node_of(node.record)

    @property
    def location(self) -> str:
        """Place of the node, for findings."""
        return self.node.location

    @cached_property
    def context(self) -> KnownShapes:
        """Shapes, attributes and constants of the node, with `None` for sizes that are not certain."""
        return known_shapes(self.view, self.operator, self.node.container.scope)

    @property
    def constants(self) -> Set[int]:
        """Positions of the inputs whose elements rules for this class may have read."""
        named = map(self.operator.input_named, AXIS_NAMES if self.operator.axes else ())
        return self.context.constants.union(found[0] for found in named if found is not None)

    @property
    def has_complete_key(self) -> bool:
        """Whether rules for this class read only what `shape_key` contains, apart from attributes."""
        # The axis rule reads the rank of the first input, which the key lacks if the shape is unknown.
        is_known = not self.operator.axes or self.context.shape(0) is not None
        return is_known and self.context.is_cacheable


def shape_key(node: CheckedNode, constants: Iterable[int]) -> Hashable:
    """Return as a key the shapes of inputs, elements of inputs at `constants`, and `may_not_run` of a node.

    The result is `None` if one of these inputs has too many elements for a cache key.
    """
    scope = node.container.scope
    # In a function, `node_of` leaves out inputs that all calls omit.
    inputs = node.inputs if scope.has_plain_nodes else scope.node_of(node.record).inputs
    elements = scope.small_elements([inputs[each] for each in constants if each < len(inputs)])
    if elements is None:
        return None
    shapes = [scope.symbolic_shape(name) if name else "omitted" for name in inputs]
    return (*shapes, elements, node.container.may_not_run)


class TypedNode:
    """A node with a known operator version, and the types of its inputs and outputs.

    Attributes:
        inputs, outputs: an element type such as `float16`, a type string, or `None` if the type is unknown.
    """

    def __init__(self, node: CheckedNode, operator: OperatorVersion, types: Sequence[str | None]) -> None:
        """`types` has the types of all inputs, followed by the types of all outputs."""
        self.node = node
        self.operator = operator
        self.inputs, self.outputs = types[: len(node.inputs)], types[len(node.inputs) :]

    @property
    def location(self) -> str:
        """Place of the node, for findings."""
        return self.node.location

    def bound_inputs(self) -> Iterator[BoundValue]:
        """Yield the inputs of known type, bound to the operator's parameters."""
        return _bind_values(self.operator.inputs, self.node.inputs, self.inputs)

    def bound_outputs(self) -> Iterator[BoundValue]:
        """Yield the outputs of known type, bound to the operator's parameters."""
        return _bind_values(self.operator.outputs, self.node.outputs, self.outputs)


def _bind_values(
    formals: Sequence[Parameter], names: Sequence[str], types: Sequence[str | None]
) -> Iterator[BoundValue]:
    last = len(formals) - 1
    for position, (name, value_type) in enumerate(zip(names, types, strict=True)):
        # Skip values without a parameter: an onnxruntime release may accept more than the definition.
        is_bound = position <= last or (last >= 0 and formals[last].option == "variadic")
        if value_type is not None and is_bound:
            # Only the last parameter can be variadic; it is bound to all remaining values.
            yield BoundValue(formals[min(position, last)], name, type_string(value_type))
