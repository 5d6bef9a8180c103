"""State of one node while it is drawn from its operator's definition and from tables of sensible values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from opshift.model.element_types import BY_NAME
from opshift.registry.models import Attribute, OperatorVersion, Parameter
from random_graphs.graph import Graph
from random_graphs.values import FLOATS, TYPES, Kind, Shape, Value, is_finite


class TensorSpec(NamedTuple):
    """A tensor of the parameter's type with a given shape."""

    shape: Shape
    kind: Kind = "any"
    fresh: bool = False
    """Whether the tensor must be new because only some data are legal."""


Choice = Callable[["Draft"], Any]
"""Chooses an input or attribute: `None` to omit it, a `TensorSpec`, a list of these, or a value."""


class Draft:
    """The choices made for one node.

    Attributes:
        facts: choices that several parameters share, by name.
        types: element types by type variable.
        inputs: the inputs by formal name.
    """

    def __init__(
        self, graph: Graph, version: OperatorVersion, *, needs_exact: bool, needs_finite: bool
    ) -> None:
        self.graph = graph
        self.version = version
        self.needs_exact = needs_exact
        self.needs_finite = needs_finite
        self.facts: dict[str, Any] = {}
        self.types: dict[str, str] = {}
        self.inputs: dict[str, Value | None] = {}

    @property
    def first(self) -> Value:
        """The first present input."""
        return next(each for each in self.inputs.values() if each is not None)

    @property
    def shape(self) -> Shape:
        """The shape of the first input."""
        return self.first.shape

    @property
    def rank(self) -> int:
        """The rank of the first input."""
        return len(self.shape)

    @property
    def since(self) -> int:
        """The operator version."""
        return self.version.since_version

    def number(self, low: int, high: int) -> int:
        """Draw an integer from a range that includes both ends."""
        return self.graph.draw.integer(low, max(low, high))

    def size(self, high: int) -> int:
        """Draw the length of a dimension."""
        return self.number(0 if self.graph.empty and self.chance(20) else 1, high)

    def one_of(self, *options: Any) -> Any:
        """Draw one of several options."""
        return self.graph.one_of(options)

    def chance(self, percent: int) -> bool:
        """Draw a boolean that is true with a probability in percent."""
        return self.graph.chance(percent)

    def fact(self, name: str, choose: Callable[[], Any]) -> Any:
        """Return the choice with a name, made on first use."""
        if name not in self.facts:
            self.facts[name] = choose()
        return self.facts[name]

    def numbers(self, name: str, count: int, low: int, high: int) -> list[int]:
        """Return a list of integers that is drawn on first use."""
        found: list[int] = self.fact(name, lambda: [self.number(low, high) for _ in range(count)])
        return found

    def attribute(self, name: str) -> Any:
        """Return an attribute drawn from its default, legal values and range on first use."""
        return self.fact(name, lambda: _generate_by_definition(self, self.version.attributes[name]))

    # Inputs

    def fits(self, value: Value, parameter: Parameter, shape: Shape | None) -> bool:
        """Return whether a value may be the input."""
        if shape is not None and value.shape != shape:
            return False
        if (self.needs_exact and not value.exact) or (self.needs_finite and not is_finite(value.data)):
            return False
        bound = self.types.get(parameter.type)
        return value.type == bound if bound else value.type in self.types_of(parameter)

    def types_of(self, parameter: Parameter) -> list[str]:
        """Return the element types or sequence types that an input may have."""
        return [
            bare_type
            for each in self.version.types_of(parameter)
            if (bare_type := _bare_type(each)) in TYPES or each.startswith("seq(tensor(")
        ]

    def element_type(self, parameter: Parameter) -> str:
        """Return the element type of an input, drawn once for its type variable."""
        if parameter.type not in self.types:
            legal = [each for each in self.types_of(parameter) if each in TYPES]
            preferred = [each for each in ("float", "int64") if each in legal][:1]
            common = [each for each in legal if each in FLOATS or each.startswith("int")] or legal
            options = self.one_of(preferred or legal, common, legal)
            self.types[parameter.type] = self.graph.one_of(options)
        return self.types[parameter.type]

    def data(self, parameter: Parameter, choice: TensorSpec) -> Value:
        """Return an existing or new value that meets a specification."""
        found = None
        if not choice.fresh and choice.kind == "any" and self.chance(60):
            found = self.graph.pick(
                lambda value: value.is_tensor and self.fits(value, parameter, choice.shape)
            )
        if found is not None:
            self.types.setdefault(parameter.type, found.type)
            return found
        kind = "finite" if self.needs_finite and choice.kind == "any" else choice.kind
        return self.graph.data(self.element_type(parameter), choice.shape, kind)


def _generate_by_definition(draft: Draft, attribute: Attribute) -> Any:
    if not attribute.required and draft.chance(40):
        return None
    if attribute.values is not None and attribute.type in ("INT", "FLOAT", "STRING"):
        return draft.graph.one_of(attribute.values)
    if attribute.type == "FLOAT" and attribute.default is not None:
        return draft.one_of(attribute.default, 0.5, 1.0, 1.5)
    if attribute.type == "INT" and attribute.default is not None:
        low = 0 if attribute.minimum is None else int(attribute.minimum)
        return draft.number(low, max(low, int(str(attribute.default))) + 1)
    return None


def _bare_type(type_string: str) -> str:
    return type_string[7:-1] if type_string.startswith("tensor(") else type_string


def number_of(element_type: str) -> int:
    """Return the number of an element type."""
    return BY_NAME[element_type].number
