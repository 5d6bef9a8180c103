"""Write constants that a conversion adds, where initializers are not possible.

Functions have no initializers. Before IR version 4, subgraphs have none either, and initializers of the main
graph must be graph inputs, too. In these cases, constants become Constant nodes. Before opset 9, a Constant
has the type float16, float or double. Integer constants in subgraphs and functions are then cast from double.
Other constants of unsupported types become initializers and inputs of the main graph; functions refuse them.
"""

from opshift.model.attributes import INT, STRING, TENSOR
from opshift.model.element_types import BY_NAME
from opshift.model.graphs import ContainerProto
from opshift.model.messages import GraphProto, TensorProto
from opshift.model.node import Tensor
from opshift.model.tensors import write_tensor

ANY_CONSTANT_SINCE = 9
"""First opset in which a Constant can have any element type."""

CONSTANT_TYPES = frozenset({"float", "float16", "double"})
"""Element types of Constant before opset 9."""

CAST_NAMES_TYPE_UNTIL = 5
"""Last opset in which the attribute `to` of Cast is the name of an element type, not its number."""

LARGEST_EXACT = 1 << 53
"""Integers with an absolute value up to this number are exact in double."""


def needs_cast(tensor: Tensor, opset: int) -> bool:
    """Return whether a Constant node at an opset cannot have the element type of a tensor."""
    return opset < ANY_CONSTANT_SINCE and tensor.element_type not in CONSTANT_TYPES


def is_castable(tensor: Tensor) -> bool:
    """Return whether all values are integers that a Cast from double produces exactly."""
    return all(isinstance(value, int) and abs(value) <= LARGEST_EXACT for value in tensor.values)


def add_constant_node(container: ContainerProto, name: str, tensor: Tensor) -> None:
    """Append a Constant node with the output `name`."""
    node = container.node.add(op_type="Constant", output=[name])
    write_tensor(node.attribute.add(name="value", type=TENSOR).t, tensor)


def add_cast_constant(container: ContainerProto, name: str, tensor: Tensor, source: str, opset: int) -> None:
    """Append a Constant of type double, with the output `source`, and its Cast to the tensor's type."""
    add_constant_node(container, source, Tensor("double", tensor.dims, tuple(map(float, tensor.values))))
    attribute = container.node.add(op_type="Cast", input=[source], output=[name]).attribute.add(name="to")
    if opset <= CAST_NAMES_TYPE_UNTIL:
        attribute.type, attribute.s = STRING, tensor.element_type.upper().encode()
    else:
        attribute.type, attribute.i = INT, BY_NAME[tensor.element_type].number


def add_input_of(graph: GraphProto, initializer: TensorProto) -> None:
    """Add a graph input with the name, element type and shape of an initializer."""
    value = graph.input.add()
    value.name = initializer.name
    value.type.tensor_type.elem_type = initializer.data_type
    shape = value.type.tensor_type.shape
    # A scalar has a shape without dimensions, which would otherwise be absent.
    shape.SetInParent()
    for size in initializer.dims:
        shape.dim.add().dim_value = size
