"""Where nodes run, when several take the place of one: device configurations, from IR version 11 on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def hand_on(successor: Any, others: Sequence[Any]) -> None:
    """Give the device configurations of a node to all that take its place.

    They all run where it ran. How a tensor is sharded is said by the nodes that read or make it; nobody
    says it of a tensor that none of them has any more.

    Args:
        successor: the NodeProto that has them so far.
        others: the new NodeProtos beside it.
    """
    if not getattr(successor, "device_configurations", ()):
        return
    for node in others:
        node.device_configurations.extend(successor.device_configurations)
    for node in (successor, *others):
        tensors = {*node.input, *node.output}
        for each in node.device_configurations:
            for position in reversed(range(len(each.sharding_spec))):
                if each.sharding_spec[position].tensor_name not in tensors:
                    del each.sharding_spec[position]
