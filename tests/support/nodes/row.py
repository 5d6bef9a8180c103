"""One node of one operator version in a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from onnx import TensorProto, helper

from opshift.model.operator_ids import DEFAULT_DOMAIN
from support.domains import wire
from support.execution import Array, build
from support.published import Case

RANDOM = np.random.default_rng(0)
X = np.array([[-1.5, 0, 2], [0.5, -0.25, 1]], np.float32)
POSITIVE = np.abs(X) + np.float32(0.5)
IMAGE = RANDOM.standard_normal((1, 2, 4, 6)).astype(np.float32)


class Row(NamedTuple):
    """A case for an operator version; with `to`, only for the step to that version."""

    domain: str
    op: str
    version: int
    case: Case
    to: int | None = None


def row(
    op: str,
    version: int,
    feeds: Mapping[str, Any],
    attributes: Mapping[str, Any] | None = None,
    *,
    outputs: Mapping[str, int] | None = None,
    inputs: Sequence[str] | None = None,
    constants: str = "",
    domain: str = DEFAULT_DOMAIN,
    to: int | None = None,
) -> Row:
    """Return a row with a node that reads the feeds in order.

    Args:
        op: the operator.
        version: the operator version.
        feeds: arrays by input name.
        attributes: the attributes of the node.
        outputs: element types by name; 0 for an output that is not a graph output.
        inputs: the inputs of the node, if they differ from the feeds.
        constants: names of feeds that are initializers, separated by spaces.
        domain: the domain of the operator.
        to: the only version to which the case is converted.
    """
    arrays = {name: np.asarray(each) for name, each in feeds.items()}
    initializers = {name: each for name, each in arrays.items() if name in constants.split()}
    inputs_to_feed = {name: each for name, each in arrays.items() if name not in initializers}
    results = outputs or {"y": TensorProto.FLOAT}
    node = helper.make_node(
        op,
        list(feeds) if inputs is None else inputs,
        list(results),
        name="node",
        domain=wire(domain),
        **(attributes or {}),
    )
    graph_outputs = {name: element_type for name, element_type in results.items() if name and element_type}
    model = build([node], inputs_to_feed, graph_outputs, {wire(domain): version}, initializers=initializers)
    return Row(domain, op, version, Case(model, inputs_to_feed), to)


def floats(values: Any) -> Array:
    return np.array(values, np.float32)
