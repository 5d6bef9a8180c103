"""A graph for an attribute of an emitted node, such as the body of a Loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter

INT, INTS = 2, 7
"""What AttributeProto calls a number, and a list of numbers."""


class Body:
    """A GraphProto of the same message classes as the model's, written node by node.

    Its nodes stay as they are, whatever the target: only operators belong here whose meaning and form
    are the same in every opset that the node around it can be in.
    """

    def __init__(self, node: Node, out: Rewriter) -> None:
        stated = next(each for each in node.attributes.values() if hasattr(each, "ref_attr_name"))
        self.graph: Any = type(stated)().g
        self.graph.name = out.fresh("body")
        self._out = out

    def input(self, element_type: int, *, is_scalar: bool = False) -> str:
        """The name of a new input."""
        name = self._out.fresh("input")
        tensor = self._declare(self.graph.input, name, element_type)
        if is_scalar:
            tensor.shape.SetInParent()
        return name

    def output(self, name: str, element_type: int) -> None:
        """Make a value an output."""
        self._declare(self.graph.output, name, element_type)

    def emit(self, op_type: str, inputs: Sequence[str], **attributes: int | Sequence[int]) -> str:
        """Append a node, and give the name of its only output."""
        node = self.graph.node.add()
        node.op_type = op_type
        node.input.extend(inputs)
        node.output.append(self._out.fresh(op_type.lower()))
        for name, value in attributes.items():
            attribute = node.attribute.add()
            attribute.name = name
            if isinstance(value, int):
                attribute.type, attribute.i = INT, value
            else:
                attribute.type = INTS
                attribute.ints.extend(value)
        return str(node.output[0])

    def _declare(self, values: Any, name: str, element_type: int) -> Any:
        value = values.add()
        value.name = name
        value.type.tensor_type.elem_type = element_type
        return value.type.tensor_type
