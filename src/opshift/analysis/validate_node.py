"""Validation of a single node outside of a model."""

from __future__ import annotations

from collections.abc import Mapping

from opshift.checker.check import check
from opshift.checker.findings import Finding
from opshift.converter.convert_node import NodeMessage, opsets_for_node
from opshift.converter.options import TargetLike
from opshift.model.graphs import node_place
from opshift.model.messages import IR_VERSION, ModelProto
from opshift.model.node_values import add_values
from opshift.model.operator_ids import model_domain
from opshift.model.types import InputFacts
from opshift.registry.errors import require_node
from opshift.registry.registry import Registry, default_registry


def validate_node(
    node: NodeMessage,
    opset: TargetLike,
    inputs: Mapping[str, InputFacts] | None = None,
    *,
    registry: Registry | None = None,
) -> tuple[Finding, ...]:
    """Return the rules of the specification that a node violates, see `opshift.check`.

    Args:
        node: a NodeProto (the project's or `onnx`'s).
        opset: opset that the node is written for, in the form of `source` in `convert_node`.
        inputs: facts about the values that the node reads, as in `convert_node`. Rules about facts that are
            not given are not checked.
        registry: operator definitions; by default the project's own.

    Raises:
        UsageError, UnknownOpset, UnknownDomain: an argument is invalid.
    """
    require_node(node)
    registry = registry or default_registry()
    model = ModelProto(ir_version=IR_VERSION)
    model.graph.name = "node"
    for domain, version in opsets_for_node(opset, node.domain, registry).items():
        model.opset_import.add(domain=model_domain(domain), version=version)
    copy = model.graph.node.add()
    copy.ParseFromString(node.SerializeToString())
    add_values(model.graph, inputs or {}, ())
    place = node_place("graph", copy)
    return tuple(each for each in check(model, registry=registry) if each.place.startswith(place))
