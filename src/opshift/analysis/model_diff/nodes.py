"""Differences of single nodes."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from opshift.analysis.model_diff.match_nodes import Renames, operator_of
from opshift.analysis.model_diff.properties import property_changes, tensor_text
from opshift.analysis.model_diff.result import Change, DiffNode, NodeChange
from opshift.model.graphs import Container
from opshift.model.operator_ids import DEFAULT_DOMAIN

VALUES_AND_OPERATOR = ("input", "output", "name", "op_type", "domain")
"""Fields of NodeProto that `DiffNode` has."""

MAX_CONSTANTS = 8
"""Maximum number of initializers that a node is described with."""


def diff_node(container: Container, position: int, *, has_constants: bool = False) -> DiffNode:
    """Return the description of a node."""
    record = container.node_records[position]
    domain, op_type = operator_of(record)
    tensors = ((name, container.initializer(name)) for name in record[3]) if has_constants else ()
    constants = tuple((name, tensor_text(tensor)) for name, tensor in tensors if tensor is not None)
    return DiffNode(
        position,
        op_type if domain == DEFAULT_DOMAIN else f"{domain}.{op_type}",
        str(container.proto_of(record).name),
        record[3],
        record[4],
        constants[:MAX_CONSTANTS],
    )


def node_change(
    old: Container, before: int | None, new: Container, after: int | None, renames: Renames
) -> NodeChange | None:
    """Return the difference of a node that one or both models have; `None` if there is none."""
    if before is None or after is None:
        removed = None if before is None else diff_node(old, before, has_constants=True)
        added = None if after is None else diff_node(new, after, has_constants=True)
        old_node = None if before is None else old.nodes[before]
        new_node = None if after is None else new.nodes[after]
        attributes = tuple(property_changes(old_node, new_node, VALUES_AND_OPERATOR))
        return NodeChange("removed" if added is None else "added", removed, added, attributes)
    old_proto, new_proto = old.nodes[before], new.nodes[after]
    old_record, new_record = old.node_records[before], new.node_records[after]
    if old_proto.SerializeToString() == new_proto.SerializeToString():
        return None
    properties = list(property_changes(old_proto, new_proto, VALUES_AND_OPERATOR))
    inputs = list(_value_changes("input", old_record[3], new_record[3], renames))
    if not properties and not inputs:
        is_renamed = (old_proto.name, *old_record[3:]) != (new_proto.name, *new_record[3:])
        return NodeChange("renamed", diff_node(old, before), diff_node(new, after)) if is_renamed else None
    outputs = _value_changes("output", old_record[4], new_record[4], {})
    return NodeChange(
        "changed",
        diff_node(old, before, has_constants=True),
        diff_node(new, after, has_constants=True),
        tuple(sorted((*properties, *inputs, *outputs), key=lambda each: each.is_metadata)),
    )


def _value_changes(side: str, old: Sequence[str], new: Sequence[str], renames: Renames) -> Iterator[Change]:
    for position, (before, after) in enumerate(zip_longest(old, new)):
        if before != renames.get(after, after):
            texts = ("" if each is None else each or "omitted" for each in (before, after))
            yield Change(f"{side} {position}", *texts)
