"""Random chains with the nodes that express recognized operators, and with variants of these nodes.

A chain has nodes of operators with a function body. A conversion expands them, then random changes of the
nodes follow: some keep the result, others compute something else, so that recognition must leave the nodes.
The changed model itself is the reference.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from comparison.chains import Chain
from comparison.differences import difference
from comparison.native_types import with_native_types
from comparison.sampler import Sampler
from opshift import convert_version
from opshift.converter.recognition.load import operator_names
from opshift.converter.recognition.matching import COMMUTATIVE
from opshift.model.errors import OpshiftError
from opshift.registry.registry import default_registry
from random_graphs.assembly import model_of
from random_graphs.execution import CannotRun, run_anywhere
from random_graphs.graph import Graph
from random_graphs.models import EXCLUDED, ML, grow, ir_versions
from random_graphs.nodes import add_node
from random_graphs.sameness import tolerance_of

if TYPE_CHECKING:
    import onnx

OPSETS = (18, 26)
"""Oldest and newest opset of the drawn models, and oldest opset of the expanded models."""

OLDEST = 13

NODES = (1, 4)
"""Minimum and maximum number of nodes, without constants."""

RECOGNIZABLE, CHANGED, APPROXIMATE = 75, 60, 50
"""Percentages: recognizable nodes, chains that are changed, and chains with inexact forms."""

CHANGES = (1, 3)
"""Minimum and maximum number of changes of a changed chain."""

EXACT_TYPES = {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16}


@cache
def _recognizable_names() -> tuple[str, ...]:
    return tuple(each for each in operator_names(default_registry()) if each not in EXCLUDED)


def sample_recognizable_chain(seed: int, index: int) -> Chain | None:
    """Return the chain with a number; `None` without an expansion that runs and has stable results."""
    draw = Sampler((seed, index))
    graph, names = _sampled_graph(draw)
    model = model_of(graph)
    data = {each.name: each.data for each in graph.values}
    kept = [each for each in model.graph.output if isinstance(data.get(each.name), np.ndarray)]
    del model.graph.output[:]
    model.graph.output.extend(kept)
    if not names or not kept:
        return None
    tolerance = tolerance_of(data.values(), model)
    model, feeds = with_native_types(model, graph.feeds)
    with suppress(OpshiftError, CannotRun):
        model = _expanded_model(model, names, draw)
        if draw.integer(0, 99) < CHANGED:
            for _ in range(draw.integer(*CHANGES)):
                draw.pick(CHANGE_FUNCTIONS)(model.graph, draw)
        outputs = run_anywhere(model, feeds)
        if difference(run_anywhere(model, feeds), outputs, tolerance):
            return None
        is_inexact = draw.integer(0, 99) < APPROXIMATE
        return Chain(
            model, feeds, outputs, tolerance, _recognizable_names(), "approximate" if is_inexact else ()
        )
    return None


def _sampled_graph(draw: Sampler) -> tuple[Graph, list[str]]:
    """Return a graph, and the names of the recognizable operators in it."""
    opset = draw.integer(*OPSETS)
    opsets = {"": opset, ML: 3}
    graph = Graph(draw, opsets, draw.pick(ir_versions(opset)), draw.integer(0, 2**16))
    graph.special = False  # definitions leave some results for NaN and infinities open
    registry = default_registry()
    names: list[str] = []
    for _ in range(draw.integer(*NODES)):
        name = draw.pick(_recognizable_names())
        version = registry.at(name, opset)
        if version is None or draw.integer(0, 99) >= RECOGNIZABLE:
            grow(graph, 1)
        elif add_node(graph, version):
            names.append(name)
    return graph, names


def _expanded_model(model: onnx.ModelProto, names: list[str], draw: Sampler) -> onnx.ModelProto:
    """Return an equivalent model without the operators: at an older opset, or with their function bodies."""
    result = model
    if draw.maybe(0.6):
        with suppress(OpshiftError):
            result = convert_version(model, draw.integer(OLDEST, OPSETS[0] - 1), allow="large")
    rest = {node.op_type for node in result.graph.node}.intersection(names)
    for name in rest if result is model or draw.maybe(0.3) else ():
        with suppress(OpshiftError):
            result = convert_version(result, without=f"ai.onnx.{name}", allow="large")
    return result


def swap_operands(graph: onnx.GraphProto, draw: Sampler) -> None:
    """Swap the operands of a commutative node."""
    nodes = [each for each in graph.node if each.op_type in COMMUTATIVE and len(each.input) == 2]
    if nodes:
        node = draw.pick(nodes)
        node.input[:] = [*reversed(node.input)]


def add_other_reader(graph: onnx.GraphProto, draw: Sampler) -> None:
    """Let another node, or a graph output, also read a value inside of the graph."""
    names = [name for node in graph.node if node.op_type != "Constant" for name in node.output if name]
    outputs = {each.name for each in graph.output}
    if names:
        name = draw.pick(names)
        if draw.maybe(0.5):
            graph.node.append(NodeProto(op_type="Identity", input=[name], output=[f"{name}_read"]))
            name = f"{name}_read"
        if name not in outputs:
            graph.output.add(name=name)


def insert_identity(graph: onnx.GraphProto, draw: Sampler) -> None:
    """Insert an Identity before an operand of a node."""
    positions = [index for index, each in enumerate(graph.node) if any(each.input)]
    if positions:
        node = graph.node[draw.pick(positions)]
        slot = draw.pick([index for index, each in enumerate(node.input) if each])
        name = f"copy_{len(graph.node)}_{draw.integer(0, 10**6)}"
        identity = NodeProto(op_type="Identity", input=[node.input[slot]], output=[name])
        node.input[slot] = name
        others = [*graph.node]
        position = others.index(node)
        del graph.node[:]
        graph.node.extend([*others[:position], identity, *others[position:]])


def change_constant(graph: onnx.GraphProto, draw: Sampler) -> None:
    """Change the elements of a constant slightly or completely, or change its dimensions."""
    tensors = list(graph.initializer)
    tensors += [a.t for n in graph.node if n.op_type == "Constant" for a in n.attribute if a.name == "value"]
    found = [each for each in tensors if each.data_type in EXACT_TYPES]
    if found:
        tensor = draw.pick(found)
        array = numpy_helper.to_array(tensor)
        dtype = array.dtype
        changed = draw.pick(
            [
                array * dtype.type(1 + 1e-6),
                array * dtype.type(1.25),
                array + dtype.type(0.5),
                array.reshape((1, *array.shape)),
                np.array(array.reshape(-1)[:1]).reshape(()) if array.size else array,
                np.stack([array, array]),
            ]
        )
        name = tensor.name
        tensor.CopyFrom(numpy_helper.from_array(np.asarray(changed, dtype), name))


def change_operand(graph: onnx.GraphProto, draw: Sampler) -> None:
    """Let a node read a different value that is computed before the node."""
    positions = [index for index, each in enumerate(graph.node) if any(each.input)]
    if positions:
        position = draw.pick(positions)
        node = graph.node[position]
        slot = draw.pick([index for index, each in enumerate(node.input) if each])
        earlier = [name for each in graph.node[:position] for name in each.output if name]
        names = [*(each.name for each in graph.input), *earlier]
        if names:
            node.input[slot] = draw.pick(names)


OTHER_OPERATORS = {
    "Add": "Sub", "Sub": "Add", "Mul": "Div", "Div": "Mul",
    "ReduceMean": "ReduceSum", "ReduceSum": "ReduceMean",
    "Sqrt": "Exp", "Exp": "Sqrt", "Sigmoid": "Tanh", "Tanh": "Sigmoid", "Max": "Min", "Min": "Max",
    "Softmax": "LogSoftmax", "Less": "Greater", "Greater": "Less", "Neg": "Abs", "Softplus": "Exp",
}  # fmt: skip
"""Operators that have the same inputs and attributes, but compute something else."""


def change_operator(graph: onnx.GraphProto, draw: Sampler) -> None:
    """Replace the operator of a node by one that has the same inputs and attributes."""
    nodes = [each for each in graph.node if each.op_type in OTHER_OPERATORS]
    if nodes:
        node = draw.pick(nodes)
        node.op_type = OTHER_OPERATORS[node.op_type]


def change_attribute(graph: onnx.GraphProto, draw: Sampler) -> None:
    """Change a number or a list in an attribute, such as an axis or a permutation."""
    found = [
        each
        for node in graph.node
        for each in node.attribute
        if each.type in (each.INT, each.FLOAT, each.INTS) and node.op_type != "Constant" and each.name != "to"
    ]
    if found:
        attribute = draw.pick(found)
        value: Any = helper.get_attribute_value(attribute)
        if isinstance(value, list):
            changed: Any = value[::-1] if draw.maybe(0.5) else value[:-1]
        else:
            is_axis = attribute.name == "axis"
            integer = draw.pick([0, 1, -1, 2]) if is_axis else 1 - int(value > 0)
            changed = integer if isinstance(value, int) else value * 1.5
        if changed != []:
            attribute.CopyFrom(helper.make_attribute(attribute.name, changed))


def write_square(graph: onnx.GraphProto, draw: Sampler) -> None:
    """Write the square of a value in the other form: as Mul or as Pow."""
    products = [each for each in graph.node if each.op_type == "Mul" and len(set(each.input)) == 1]
    if products:
        node = draw.pick(products)
        name = f"two_{len(graph.initializer)}_{draw.integer(0, 10**6)}"
        node.op_type, node.input[1] = "Pow", name
        graph.initializer.append(numpy_helper.from_array(np.array(2, np.float32), name))


def hide_sizes(graph: onnx.GraphProto, draw: Sampler) -> None:
    """Remove the declared rank of an input, or replace its sizes by names."""
    if graph.input:
        value = draw.pick([*graph.input])
        shape = value.type.tensor_type.shape
        for axis, dim in enumerate(shape.dim):
            if draw.maybe(0.7):
                dim.dim_param = f"{value.name}_{axis}"


CHANGE_FUNCTIONS = (
    swap_operands, add_other_reader, insert_identity, change_constant, change_operand, change_operator,
    change_attribute, write_square, hide_sizes,
)  # fmt: skip
"""Functions that change a graph."""
