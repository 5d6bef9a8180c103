"""One node while it is drawn: its operator's definition says what it needs, and tables what is sensible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import strategies as st

from opshift.registry.element_types import BY_NAME
from opshift.registry.models import Attribute, OperatorVersion, Parameter
from support.graphs.graph import Graph
from support.graphs.values import FLOATS, TYPES, Kind, Shape, Value, is_finite


class Of(NamedTuple):
    """Data of the parameter's own type, of a shape."""

    shape: Shape
    kind: Kind = "any"
    fresh: bool = False
    """Whether it has to be new, since only some data are legal."""


Choice = Callable[["Draft"], Any]
"""What an input or attribute is: `None` to leave it out, `Of` a shape, a list of them, or its very value."""


class Draft:
    """What is decided of one node so far.

    Attributes:
        facts: what several parameters depend on, by name, each decided once.
        types: what the type variables stand for.
        given: the inputs by formal name.
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
        self.given: dict[str, Value | None] = {}

    @property
    def first(self) -> Value:
        """The first input."""
        return next(each for each in self.given.values() if each is not None)

    @property
    def shape(self) -> Shape:
        """Of the first input."""
        return self.first.shape

    @property
    def rank(self) -> int:
        """Of the first input."""
        return len(self.shape)

    @property
    def since(self) -> int:
        """The operator's version."""
        return self.version.since_version

    def number(self, least: int, most: int) -> int:
        """One of a range, both ends included."""
        found: int = self.graph.draw(st.integers(least, max(least, most)))
        return found

    def size(self, most: int) -> int:
        """The length of a dimension."""
        return self.number(0 if self.graph.empty and self.chance(20) else 1, most)

    def one_of(self, *options: Any) -> Any:
        """One of several."""
        return self.graph.one_of(options)

    def chance(self, percent: int) -> bool:
        """True so often."""
        return self.graph.chance(percent)

    def fact(self, name: str, choose: Callable[[], Any]) -> Any:
        """What has been decided under a name."""
        if name not in self.facts:
            self.facts[name] = choose()
        return self.facts[name]

    def numbers(self, name: str, count: int, least: int, most: int) -> list[int]:
        """A list that is decided once."""
        found: list[int] = self.fact(name, lambda: [self.number(least, most) for _ in range(count)])
        return found

    def stated(self, name: str) -> Any:
        """An attribute without a table's choice: by default, legal values and range."""
        return self.fact(name, lambda: _by_definition(self, self.version.attributes[name]))

    # Inputs

    def fits(self, value: Value, parameter: Parameter, shape: Shape | None) -> bool:
        """Whether a value may be the input."""
        if shape is not None and value.shape != shape:
            return False
        if (self.needs_exact and not value.exact) or (self.needs_finite and not is_finite(value.data)):
            return False
        bound = self.types.get(parameter.type)
        return value.type == bound if bound else value.type in self.types_of(parameter)

    def types_of(self, parameter: Parameter) -> list[str]:
        """The element types (or sequences) that an input may have."""
        return [
            bare
            for each in self.version.types_of(parameter)
            if (bare := _bare(each)) in TYPES or each.startswith("seq(tensor(")
        ]

    def element(self, parameter: Parameter) -> str:
        """What the type of an input stands for, decided once for its variable."""
        if parameter.type not in self.types:
            legal = [each for each in self.types_of(parameter) if each in TYPES]
            usual = [each for each in ("float", "int64") if each in legal][:1]
            common = [each for each in legal if each in FLOATS or each.startswith("int")] or legal
            options = self.one_of(usual or legal, common, legal)
            self.types[parameter.type] = self.graph.one_of(options)
        return self.types[parameter.type]

    def data(self, parameter: Parameter, choice: Of) -> Value:
        """Data of a shape: a value that is there, or a new one."""
        found = None
        if not choice.fresh and choice.kind == "any" and self.chance(60):
            found = self.graph.pick(
                lambda value: value.is_tensor and self.fits(value, parameter, choice.shape)
            )
        if found is not None:
            self.types.setdefault(parameter.type, found.type)
            return found
        kind = "finite" if self.needs_finite and choice.kind == "any" else choice.kind
        return self.graph.data(self.element(parameter), choice.shape, kind)


def _by_definition(draft: Draft, attribute: Attribute) -> Any:
    if not attribute.required and draft.chance(40):
        return None
    if attribute.values is not None and attribute.type in ("INT", "FLOAT", "STRING"):
        return draft.graph.one_of(attribute.values)
    if attribute.type == "FLOAT" and attribute.default is not None:
        return draft.one_of(attribute.default, 0.5, 1.0, 1.5)
    if attribute.type == "INT" and attribute.default is not None:
        least = 0 if attribute.minimum is None else int(attribute.minimum)
        return draft.number(least, max(least, int(str(attribute.default))) + 1)
    return None


def _bare(type_string: str) -> str:
    return type_string[7:-1] if type_string.startswith("tensor(") else type_string


def number_of(element: str) -> int:
    """The number of an element type."""
    return BY_NAME[element].number
