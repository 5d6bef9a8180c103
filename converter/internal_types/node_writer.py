"""Writer of the nodes and constants that a conversion pass adds to a graph or function."""

from opshift.model.attributes import INT
from opshift.model.graphs import ContainerProto
from opshift.model.node import Tensor
from opshift.rewriting.constant_nodes import add_constant_node
from opshift.rewriting.workspace import FreshNames


class NodeWriter:
    """Writer of nodes, with unused names for new values.

    Attributes:
        result: graph or function that receives the nodes.
        names: generator of unused names.
    """

    def __init__(self, result: ContainerProto, names: FreshNames) -> None:
        self.result = result
        self.names = names
        self._shared: dict[tuple[str, tuple[float, ...]], str] = {}

    def emit(self, op_type: str, inputs: list[str], output: str = "", **attributes: int) -> str:
        """Add a node with integer attributes, and return its output: `output`, or by default a new name."""
        output = output or self.names.fresh(op_type.lower())
        node = self.result.node.add(op_type=op_type, input=inputs, output=[output])
        for name, value in attributes.items():
            node.attribute.add(name=name, type=INT, i=value)
        return output

    def constant(self, element_type: str, dims: tuple[int, ...], *values: float) -> str:
        """Add a Constant node, and return its output."""
        name = self.names.fresh("const")
        add_constant_node(self.result, name, Tensor(element_type, dims, values))
        return name

    def shared_constant(self, element_type: str, values: tuple[float, ...]) -> str:
        """Return the output of a Constant node that all calls with equal arguments share."""
        if (element_type, values) not in self._shared:
            self._shared[element_type, values] = self.constant(element_type, (len(values),), *values)
        return self._shared[element_type, values]
