"""Validation of a single node outside of a model."""

from __future__ import annotations

from collections.abc import Mapping

from opshift.checker.check import check
from opshift.checker.findings import Finding
from opshift.converter.convert_node import NodeMessage, model_of_node
from opshift.converter.options import TargetLike
from opshift.model.graphs import node_place
from opshift.model.types import InputFacts
from opshift.registry.registry import Registry, default_registry


def validate_node(
    node: NodeMessage,
    opset: TargetLike,
    inputs: Mapping[str, InputFacts] | None = None,
    *,
    registry: Registry | None = None,
) -> tuple[Finding, ...]:
    """Return the violations of the specification by a node, see `opshift.check`.

    Args:
        node: a NodeProto of opshift or `onnx`.
        opset: opset that the node is written for, in the form of `source` in `convert_node`.
        inputs: facts about the values that the node reads, as in `convert_node`. Rules that need
            other facts are not checked.
        registry: operator definitions; by default the project's own.

    Raises:
        UsageError, UnknownOpset, UnknownDomain: an argument is invalid.
        InvalidModel: a name in the node is not UTF-8.
    """
    registry = registry or default_registry()
    model = model_of_node(node, opset, inputs, (), registry)
    place = node_place("graph", model.graph.node[0])
    return tuple(each for each in check(model, registry=registry) if each.place.startswith(place))
