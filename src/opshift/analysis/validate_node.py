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
    """Return the violations of the specification by a node, as `opshift.check` finds them in a model.

    Args:
        node: a NodeProto of opshift or `onnx`.
        opset: opset of the node's domain as a number, or any form of `target` in `convert_version`.
        inputs: known types, shapes or values of the inputs, by name, as in `convert_node`. Rules that need
            unknown facts report nothing.
        registry: operator definitions; by default those of opshift and of installed packages.

    Raises:
        UsageError, UnknownOpset, UnknownDomain: an argument is invalid.
        InvalidModel: a name in the node is not UTF-8.
    """
    registry = registry or default_registry()
    model = model_of_node(node, opset, inputs, (), registry)
    place = node_place("graph", model.graph.node[0])
    return tuple(each for each in check(model, registry=registry) if each.place.startswith(place))
