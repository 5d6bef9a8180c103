"""Removal of initializers from the inputs of the main graph, and the reverse.

Since IR version 4, initializers do not have to be inputs. An initializer has no denotation and no names of
dimensions, so `value_info` keeps the declaration of a removed input that has them.
"""

from collections.abc import Iterable, Set
from itertools import compress

from opshift.checker.ir_features.contents import FIRST_IR_WITH_STANDALONE_INITIALIZERS
from opshift.checker.ir_features.finders import standalone_initializers
from opshift.model.graphs import graphs_of, initializer_inputs, nested_containers, remove_messages
from opshift.model.messages import GraphProto, ModelProto, TensorProto, TypeProto, ValueInfoProto
from opshift.model.types import has_shape, shape_of, shapes_conflict
from opshift.rewriting.constant_nodes import add_input_of


def remove_initializer_inputs(graph: GraphProto, names: Set[str]) -> None:
    """Remove initializers from the inputs; inputs with a description move to `value_info`."""
    declared = {value.name for value in graph.value_info}
    is_removed = [value.name in names for value in graph.input]
    removed = compress(graph.input, is_removed)
    graph.value_info.extend(each for each in removed if each.name not in declared and is_described(each))
    remove_messages(graph.input, is_removed)


def add_initializer_inputs(graph: GraphProto, initializers: Iterable[TensorProto]) -> None:
    """Add an input for each initializer, with the declaration in `value_info` if it fits the initializer."""
    declared = {value.name: value for value in graph.value_info}
    moved: set[str] = set()
    for initializer in initializers:
        add_input_of(graph, initializer)
        added, value = graph.input[-1], declared.get(initializer.name)
        if value is not None and _type_fits(value.type, added.type):
            added.CopyFrom(value)
            moved.add(value.name)
    remove_messages(graph.value_info, [value.name in moved for value in graph.value_info])


def is_described(value: ValueInfoProto) -> bool:
    """Return whether a declaration has more than a name, an element type and sizes."""
    dims = value.type.tensor_type.shape.dim
    has_names = value.type.denotation or any(dim.dim_param or dim.denotation for dim in dims)
    return bool(has_names or value.doc_string or getattr(value, "metadata_props", ()))


def _type_fits(declared: TypeProto, stored: TypeProto) -> bool:
    is_same = declared.tensor_type.elem_type == stored.tensor_type.elem_type
    return is_same and has_shape(declared) and not shapes_conflict(shape_of(declared), shape_of(stored))


def update_initializer_inputs(model: ModelProto) -> None:
    """Make initializers of subgraphs inputs below IR version 4; since version 4, remove these inputs."""
    are_inputs = model.ir_version < FIRST_IR_WITH_STANDALONE_INITIALIZERS
    for graph in nested_containers(inner for node in model.graph.node for inner in graphs_of(node)):
        if are_inputs:
            add_initializer_inputs(graph, [*standalone_initializers(graph)])
        elif names := initializer_inputs(graph):
            remove_initializer_inputs(graph, names)
