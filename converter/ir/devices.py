"""Device configurations, from IR version 11 on: advice on where nodes run, which changes no result."""

from __future__ import annotations

from collections.abc import Iterator

from opshift.converter.ir.contents import Contents
from opshift.converter.ir.use import Use

OBSTACLE = "they would be lost"
REMEDY = "let them go with allow='drop-devices': they are hints, and results stay the same"


def find(contents: Contents) -> Iterator[Use]:
    """The model's configurations and the nodes that refer to them."""
    if getattr(contents.model, "configuration", None):
        yield Use("device_configurations", "model", OBSTACLE, REMEDY, "drop-devices")
    for each in contents.distributed:
        yield Use("device_configurations", each.place, OBSTACLE, REMEDY, "drop-devices")


def drop(contents: Contents) -> None:
    """Take all of them out."""
    contents.model.ClearField("configuration")
    for each in contents.distributed:
        each.proto.ClearField("device_configurations")
