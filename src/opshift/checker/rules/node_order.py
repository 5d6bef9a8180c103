"""Rules for the values that nodes read and produce: each value is produced once, before it is read."""

from opshift.checker.checked_nodes import CheckedNode
from opshift.checker.containers import CheckedGraph
from opshift.checker.findings import ERROR, WARNING
from opshift.checker.rule_table import NAMES, Problems, rule


@rule("value.order", ERROR, "IR: Nodes", "sort the nodes topologically; if impossible, they form a cycle")
def topological_order(node: CheckedNode) -> Problems:
    """A node must only read outputs of earlier nodes."""
    for name in _unknown_inputs(node):
        if _is_produced(name, node):
            yield f"input {name!r} is the output of a later node"


@rule("value.unknown", ERROR, NAMES, "correct the name, or add the value; functions cannot read graph values")
def known_inputs(node: CheckedNode) -> Problems:
    """An input must be a node output, a graph input or an initializer of this graph or an enclosing one."""
    for name in _unknown_inputs(node):
        if not _is_produced(name, node):
            yield f"input {name!r} is not a node output, graph input or initializer"


@rule("value.unique", ERROR, NAMES, "rename one of the two values, and the inputs that read it")
def unique_outputs(node: CheckedNode) -> Problems:
    """A value must be produced only once in a graph."""
    known, earlier = node.container.scope.defined_names, set[str]()
    for name in node.outputs:
        if name and (name in known or name in earlier):
            yield f"output {name!r} has the name of another value"
        earlier.add(name)


@rule("value.shadowing", ERROR, NAMES, "rename the value in the subgraph")
def shadowing(node: CheckedNode) -> Problems:
    """A node output in a subgraph must not have the name of a visible value of an enclosing graph."""
    parent = node.container.parent
    if parent is not None:
        for name in node.outputs:
            if name and name not in node.container.scope.defined_names and parent.scope.is_visible(name):
                yield f"output {name!r} has the name of a value of an enclosing graph"


@rule("value.shadowing-input", WARNING, NAMES, "rename the value in the subgraph")
def shadowing_input(graph: CheckedGraph) -> Problems:
    """An input or initializer of a subgraph should not have the name of a value of an enclosing graph."""
    if graph.parent is not None:
        # Damaged models can have names that are bytes, which do not compare with strings.
        for name in sorted(graph.inputs.union(graph.initializers), key=str):
            if name and graph.parent.scope.is_visible(name):
                yield f"{name!r} has the name of a value of an enclosing graph"


def _is_produced(name: str, node: CheckedNode) -> bool:
    return any(name in container.produced for container in node.container.with_enclosing())


def _unknown_inputs(node: CheckedNode) -> list[str]:
    scope = node.container.scope
    # Fast path: nearly all inputs are values of the same graph.
    if scope.defined_names.issuperset(node.inputs):
        return []
    return [name for name in node.inputs if not scope.is_visible(name)]
