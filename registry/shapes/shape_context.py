"""Interface through which shape rules read the attributes, input shapes and constants of a node."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import repeat
from typing import NamedTuple

from opshift.model.types import Shape
from opshift.registry.models import OperatorVersion


class ListSetting(NamedTuple):
    """A list that is an attribute or an input, depending on the operator version."""

    values: Shape | None = None
    """The elements, or `None` if all are unknown; unknown elements are `None`."""
    length: int | None = None
    absent: bool = False
    """Whether the node omits the list."""


class InvalidFlag(Exception):
    """The definition does not allow the value of an integer attribute; runtimes disagree on its meaning."""


def list_length(shape: Shape | None) -> int | None:
    """Return the number of elements of a 1-D tensor with this shape; `None` if unknown or not 1-D."""
    return shape[0] if shape is not None and len(shape) == 1 else None


class ShapeContext(ABC):
    """Base class for the argument of shape rules: a node with its attributes, input shapes and constants."""

    version: OperatorVersion
    inputs: Sequence[Shape | None]
    """Shapes of the inputs of the node; `None` if the rank is unknown, the input omitted, or not a tensor."""
    output_count: int
    """The number of outputs that the node lists, including omitted ones."""
    assumes_positive_sizes: bool = False
    """Whether unknown sizes are assumed not to be 0; the rules `reshape` and `slice` use this."""

    @abstractmethod
    def attribute(self, name: str) -> object:
        """Return the value of an attribute or its default, or else `None`.

        Strings are bytes, lists are tuples, and tensors, graphs and types are messages.
        """

    @abstractmethod
    def constant(self, position: int) -> tuple[object, ...] | None:
        """Return the elements of a constant input in row-major order, `None` for unknown ones; or `None`."""

    @abstractmethod
    def body_output_shape(self, attribute: str, position: int) -> Shape | None:
        """Return the shape of an output of a subgraph in every iteration; `None` if unknown."""

    def has_input(self, position: int) -> bool:
        """Return whether the node has an input at a position; an input of unknown shape counts."""
        return 0 <= position < len(self.inputs)

    def has_output(self, position: int) -> bool:
        """Return whether the node has an output at a position."""
        return 0 <= position < self.output_count

    def element_type(self, position: int) -> str | None:
        """Return the element type of a tensor input, or the type of another input; `None` if unknown."""
        return None

    def shape(self, position: int) -> Shape | None:
        """Return the shape of an input; `None` if it is unknown or the input does not exist."""
        return self.inputs[position] if 0 <= position < len(self.inputs) else None

    def integer(self, name: str, default: int | None = None) -> int | None:
        """Return an integer attribute, or `default` if it is absent or not an integer.

        Raises:
            InvalidFlag: the definition does not allow the value.
        """
        value = self.attribute(name)
        declared = self.version.attributes.get(name)
        if isinstance(value, int) and declared and declared.values and value not in declared.values:
            raise InvalidFlag
        return value if isinstance(value, int) else default

    def integers(self, name: str) -> tuple[int, ...] | None:
        """Return an attribute that is a list of integers; `None` if it is absent or of a different type."""
        value = self.attribute(name)
        if not isinstance(value, tuple | list | range):
            return None
        return tuple(value) if all(map(isinstance, value, repeat(int))) else None

    def string(self, name: str) -> str:
        """Return a string attribute, or an empty string if it is absent or of a different type."""
        value = self.attribute(name)
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        return value if isinstance(value, str) else ""

    def list_length(self, name: str) -> int:
        """Return the number of elements in a list attribute, or 0 if it is absent or not a list."""
        value = self.attribute(name)
        return len(value) if isinstance(value, Sequence) and not isinstance(value, bytes | str) else 0

    def constant_integers(self, position: int) -> Shape | None:
        """Return the elements of a constant input, or `None`; elements that are not integers are `None`."""
        values = self.constant(position)
        return None if values is None else tuple(each if isinstance(each, int) else None for each in values)

    def constant_integer(self, position: int) -> int | None:
        """Return the integer in a constant input with one element; otherwise `None`."""
        values = self.constant_integers(position)
        return values[0] if values is not None and len(values) == 1 else None

    def input_length(self, position: int) -> int | None:
        """Return the number of elements of a constant or 1-D input; `None` if unknown."""
        values, shape = self.constant(position), self.shape(position)
        if values is not None:
            return len(values)
        return list_length(shape)

    def setting(self, name: str) -> ListSetting:
        """Return the list called `name`, which is an attribute or an input of the operator version."""
        values = self.integers(name) if name in self.version.attributes else None
        if values is not None:
            return ListSetting(values, len(values))
        position, _ = self.version.input_named(name) or (len(self.inputs), None)
        if not self.has_input(position):
            return ListSetting(absent=True)
        elements = self.constant_integers(position)
        return ListSetting(elements, self.input_length(position) if elements is None else len(elements))
