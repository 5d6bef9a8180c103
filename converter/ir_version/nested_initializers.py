"""Initializers among the inputs of subgraphs: required below IR version 4, and invalid since then.

Unlike those of the main graph, no caller can override them: a node passes no values to these inputs.
"""

from opshift.checker.ir_features.contents import FIRST_IR_WITH_STANDALONE_INITIALIZERS
from opshift.checker.ir_features.finders import standalone_initializers
from opshift.converter.ir_version.initializer_inputs import add_initializer_inputs, remove_initializer_inputs
from opshift.model.graphs import graphs_of, initializer_inputs, nested_containers
from opshift.model.messages import ModelProto


def update_initializer_inputs(model: ModelProto) -> None:
    """Add the initializers of all subgraphs to their inputs, or remove them, as the IR version requires."""
    are_inputs = model.ir_version < FIRST_IR_WITH_STANDALONE_INITIALIZERS
    for graph in nested_containers(inner for node in model.graph.node for inner in graphs_of(node)):
        if are_inputs:
            add_initializer_inputs(graph, [*standalone_initializers(graph)])
        elif names := initializer_inputs(graph):
            remove_initializer_inputs(graph, names)
