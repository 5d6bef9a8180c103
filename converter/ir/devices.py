"""Device configurations (IR version 11): hints for the placement of nodes, which do not affect results."""

from __future__ import annotations

from collections.abc import Iterator

from opshift.converter.ir.contents import Contents
from opshift.converter.ir.use import Use

OBSTACLE = "they would be lost"
REMEDY = "drop them with allow='drop-devices': they are hints that do not affect results"


def find(contents: Contents) -> Iterator[Use]:
    """Yield the model's configurations and the nodes that refer to them."""
    if getattr(contents.model, "configuration", None):
        yield Use("device_configurations", "model", OBSTACLE, REMEDY, "drop-devices")
    for node in contents.distributed:
        yield Use("device_configurations", node.place, OBSTACLE, REMEDY, "drop-devices")


def drop(contents: Contents) -> None:
    """Remove all device configurations."""
    contents.model.ClearField("configuration")
    for node in contents.distributed:
        node.proto.ClearField("device_configurations")
