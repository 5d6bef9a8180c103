"""Device configurations (since IR version 11) of nodes that replace a node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def hand_on(successor: Any, others: Sequence[Any]) -> None:
    """Copy the device configurations of a node to all nodes that replace it.

    The new nodes run on the same devices. A sharding specification remains only on nodes that read or produce
    its tensor.

    Args:
        successor: the NodeProto that has the configurations.
        others: the other new NodeProtos.
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
