"""What a graph or function states of its values, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Any

from opshift.converter.lines import Line, read_lines
from opshift.converter.types import Shape, element_type_of, shape_of
from opshift.registry.element_types import BY_NUMBER

_name_of = attrgetter("name")


class Container:
    """A GraphProto or FunctionProto, looked through when first asked."""

    def __init__(self, container: Any) -> None:
        self.container = container
        self.is_function = not hasattr(container, "initializer")

    @property
    def outputs(self) -> Iterator[str]:
        """The names of what the graph or function returns."""
        if self.is_function:
            return iter(self.container.output)
        return (value.name for value in self.container.output)

    def initializer(self, name: str) -> Any:
        """The TensorProto of an initializer of this graph, or `None`."""
        position = self._initializers.get(name)
        return None if position is None else self.container.initializer[position]

    def sparse_initializer(self, name: str) -> Any:
        """The SparseTensorProto of an initializer of this graph, or `None`."""
        return self._sparse.get(name)

    def is_overridable(self, name: str) -> bool:
        """Whether a caller may give the value: it is an input of the graph or function."""
        return name in self._inputs

    def is_given(self, name: str) -> bool:
        """Whether the value is there without a node that makes it."""
        return name in self._inputs or name in self._initializers or name in self._sparse

    def own_type(self, name: str) -> str | None:
        """The element type that is stated of a value; of values that are no tensors their type string."""
        stored = self.initializer(name) or (self._sparse[name].values if name in self._sparse else None)
        if stored is not None:
            found = BY_NUMBER.get(stored.data_type)
            return found.name if found else None
        stated = self._stated_type(name)
        return element_type_of(stated) if stated is not None else None

    def own_shape(self, name: str) -> Shape | None:
        """The shape that is stated of a value."""
        stored = self.initializer(name) or self._sparse.get(name)
        if stored is not None:
            return tuple(stored.dims[:])
        stated = self._stated_type(name)
        return shape_of(stated) if stated is not None else None

    def _stated_type(self, name: str) -> Any:
        """The TypeProto that the model states of a value, or `None`."""
        position = self.stated.get(name)
        if position is None:
            return None
        for values in self._values():
            if position < len(values):
                return values[position].type
            position -= len(values)
        raise AssertionError("the position is that of a value")

    def _values(self) -> tuple[Any, ...]:
        """What states types, the most telling last."""
        if self.is_function:
            return (getattr(self.container, "value_info", ()),)
        return self.container.value_info, self.container.output, self.container.input

    def declared(self) -> set[str]:
        """The names that are there before the first node; an input left out has the empty one."""
        if self.is_function:
            return {"", *self.container.input}
        graph = self.container
        sparse = (each.values.name for each in graph.sparse_initializer)
        return {"", *map(_name_of, graph.input), *map(_name_of, graph.initializer), *sparse}

    @cached_property
    def lines(self) -> list[Line]:
        """The nodes as they are read."""
        return list(read_lines(self.container))

    def proto_of(self, line: Line) -> Any:
        """The NodeProto that a line was read from."""
        return self.container.node[line[0]]

    @cached_property
    def _made_by(self) -> dict[str, tuple[Line, int]]:
        """By the name of a value, the node that makes it, and the position among its outputs."""
        return {
            name: (line, position) for line in self.lines for position, name in enumerate(line[4]) if name
        }

    @cached_property
    def stated(self) -> Mapping[str, int]:
        """By name, the positions of the values about whose type the model says anything, as in `_values`."""
        names = map(_name_of, chain.from_iterable(self._values()))
        return {name: position for position, name in enumerate(names)}

    @cached_property
    def _initializers(self) -> dict[str, int]:
        """The positions of the initializers, by name."""
        names = () if self.is_function else map(_name_of, self.container.initializer)
        return {name: position for position, name in enumerate(names)}

    @cached_property
    def _sparse(self) -> dict[str, Any]:
        sparse = () if self.is_function else self.container.sparse_initializer
        return {each.values.name: each for each in sparse}

    @cached_property
    def _inputs(self) -> frozenset[str]:
        if self.is_function:
            return frozenset(self.container.input)
        return frozenset(value.name for value in self.container.input)


def mentioned_in(container: Any) -> Iterator[str]:
    """The names about which the model says something; optimisers leave them when the values are gone."""
    yield from map(_name_of, getattr(container, "value_info", ()))
    for each in getattr(container, "quantization_annotation", ()):
        yield each.tensor_name


def graphs_of(node: Any) -> Iterator[Any]:
    """The graphs that attributes of a NodeProto hold."""
    for attribute in node.attribute:
        yield from graphs_in(attribute)


def graphs_in(attribute: Any) -> Iterator[Any]:
    """The graphs that an AttributeProto holds."""
    if attribute.HasField("g"):
        yield attribute.g
    yield from attribute.graphs
