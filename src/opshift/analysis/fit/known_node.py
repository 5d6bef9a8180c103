"""Node with known shapes, for rules that determine its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from opshift.model.node import Node
from opshift.registry.models import OperatorVersion

Sizes = tuple[int, ...]


class KnownNode(NamedTuple):
    """Node with known shapes.

    Attributes:
        node: the node.
        operator: its operator version.
        data: shape of the first input; `None` if it is not fully known.
        outputs: shapes of the outputs.
        length: number of elements of the input to determine; `None` if it is unknown.
    """

    node: Node
    operator: OperatorVersion
    data: Sizes | None
    outputs: tuple[Sizes, ...]
    length: int | None

    def attribute(self, name: str) -> object:
        """Return the value of an attribute, or its default; strings as bytes."""
        declared = self.operator.attributes.get(name)
        found: object = self.node.attribute(name, declared.default if declared else None)
        return found.encode() if isinstance(found, str) else found

    def at_axis(self, shape: Sizes) -> Sizes | None:
        """Return the size along the attribute `axis`, as a tuple; `None` if the axis is invalid."""
        axis = self.attribute("axis")
        return (shape[axis],) if isinstance(axis, int) and -len(shape) <= axis < len(shape) else None

    def axes(self) -> Sizes | None:
        """Return the attribute `axes` without negative axes, by default all axes; `None` if invalid."""
        every = range(len(self.outputs[0]))
        axes: Sequence[int] = self.node.attribute("axes", every)
        is_valid = all(-len(every) <= axis < len(every) for axis in axes)
        return tuple(every[axis] for axis in axes) if is_valid else None
