"""Random chains of nodes of the default domain, ai.onnx.ml and com.microsoft, with their inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import helper

from comparison import compare  # noqa: F401 - registers generators
from comparison.compare import KERNELS
from comparison.differences import difference
from comparison.kernel_faults import fault_of
from comparison.native_types import with_native_types
from comparison.reference_faults import is_invalid
from comparison.sampler import GENERATORS, Sampler
from opshift.converter.options import AllowLike
from random_graphs.assembly import model_of
from random_graphs.execution import CannotRun, run_anywhere
from random_graphs.graph import Graph
from random_graphs.models import ML, grow, ir_versions
from random_graphs.sameness import tolerance_of
from random_graphs.values import Value

OPSETS = (7, 28)
"""Oldest and newest opset of the models."""

NODES = (3, 8)
"""Minimum and maximum number of nodes, without constants."""

MICROSOFT = "com.microsoft"

CONTRIB_CHAINS, CONTRIB_NODES, EMPTY_CHAINS = 20, 40, 15
"""Percentages: chains with nodes of com.microsoft, such nodes in these chains, and chains with sizes of 0."""

CONTRIB = sorted(KERNELS)


class Chain(NamedTuple):
    """Model, its inputs, its outputs in a run, and the tolerance of floats relative to the largest value.

    `recognize` and `allow` are those arguments of `fit`.
    """

    model: onnx.ModelProto
    feeds: Mapping[str, Any]
    outputs: list[Any]
    tolerance: float
    recognize: Sequence[str] = ()
    allow: AllowLike = ()


def sample_chain(seed: int, index: int) -> Chain | None:
    """Return the chain with a number.

    `None` if a node is invalid, or without outputs that are tensors and equal in two runs.
    """
    draw = Sampler((seed, index))
    opset = draw.integer(*OPSETS)
    opsets = {"": opset, ML: draw.integer(1, 5), MICROSOFT: 1}
    is_empty = draw.integer(0, 99) < EMPTY_CHAINS
    graph = Graph(draw, opsets, draw.pick(ir_versions(opset)), draw.integer(0, 2**16), empty=is_empty)
    has_contrib = draw.integer(0, 99) < CONTRIB_CHAINS
    least = 0.0
    for _ in range(draw.integer(*NODES)):
        if has_contrib and graph.chance(CONTRIB_NODES):
            least = max(least, _add_contrib(graph, draw))
        else:
            grow(graph, 1)
    model = model_of(graph)
    data = {each.name: each.data for each in graph.values}
    if any(is_invalid(node, data) for node in graph.nodes):
        return None
    kept = [each for each in model.graph.output if isinstance(data.get(each.name), np.ndarray)]
    del model.graph.output[:]
    model.graph.output.extend(kept)
    if not kept:
        return None
    tolerance = max(least, tolerance_of(data.values(), model))
    expected = [np.asarray(data[each.name]) for each in kept]
    model, feeds = with_native_types(model, graph.feeds)
    try:
        outputs = run_anywhere(model, feeds)
    except CannotRun:
        return None
    # run twice, because some kernels read memory that they have not written
    is_stable = all(isinstance(each, np.ndarray) for each in outputs) and not difference(
        outputs, list(map(_in_type, expected, outputs)), tolerance
    )
    return Chain(model, feeds, outputs, tolerance) if is_stable else None


def _in_type(value: Any, other: Any) -> Any:
    """Return an array in the type of another array, which represents all of its values."""
    return value if other.dtype.kind == "O" else value.astype(other.dtype)


def _add_contrib(graph: Graph, draw: Sampler) -> float:
    """Add a node of com.microsoft with new inputs, or with existing values of equal types and shapes.

    Return the tolerance that its results need.
    """
    op_type = draw.pick(CONTRIB)
    sample = GENERATORS[op_type](draw, op_type)
    if fault_of(sample) or sample.undefined:
        return 0.0
    inputs: list[Value | None] = []
    for position, array in enumerate(sample.inputs):
        if array is None:
            inputs.append(None)
        elif position in sample.constants or not draw.maybe(0.6):
            inputs.append(graph.tensor(array, draw.pick(["initializer", "constant"])))
        else:
            inputs.append(_same_kind(graph, array) or graph.tensor(array, "input"))
    while inputs and inputs[-1] is None:
        inputs.pop()
    present = [each is not None for each in sample.outputs]
    attributes = {name: helper.make_attribute(name, each) for name, each in sample.attributes.items()}
    added = graph.add(op_type, inputs, present, attributes, sample.domain, exact=False)
    return sample.tolerance if added else 0.0


def _same_kind(graph: Graph, array: Any) -> Value | None:
    """Return another value of the same type and shape; only for floats, because integers may be indices."""
    if array.dtype.kind != "f":
        return None
    return graph.pick(
        lambda value: value.is_tensor and value.shape == array.shape and value.data.dtype == array.dtype
    )
