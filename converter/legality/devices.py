"""Rules for how a model is spread over devices; runtimes may ignore all of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from opshift.converter.legality.containers import Model
from opshift.converter.legality.findings import WARNING
from opshift.converter.legality.rules import Flaws, rule
from opshift.converter.legality.subjects import Placement

SOURCE = "IR: Multi-Device Configuration"


@rule("device.name", WARNING, source=SOURCE, remedy="give each configuration a name of its own")
def name(model: Model) -> Flaws:
    """A device configuration has a name of its own."""
    for each, count in Counter(each.name for each in model.proto.configuration).items():
        if not each:
            yield "a device configuration has no name"
        elif count > 1:
            yield f"{count} device configurations are called {each!r}"


@rule("device.count", WARNING, source=SOURCE, remedy="name as many devices as there are, or none")
def count(model: Model) -> Flaws:
    """A device configuration says how many devices it has, and names all or none."""
    for each in model.proto.configuration:
        if each.num_devices < 1:
            yield f"device configuration {each.name!r} has {each.num_devices} devices"
        elif each.device and len(each.device) != each.num_devices:
            yield f"device configuration {each.name!r} names {len(each.device)} of {each.num_devices} devices"


@rule("device.configuration", WARNING, source=SOURCE, remedy="name a configuration of the model")
def configuration(placement: Placement) -> Flaws:
    """What a node says of devices is for a configuration of the model."""
    known = {each.name for each in placement.node.container.model.proto.configuration}
    for each in placement.node.proto.device_configurations:
        if each.configuration_id not in known:
            yield f"device configuration {each.configuration_id!r} is none of the model's"


@rule("device.tensor", WARNING, source=SOURCE, remedy="name an input or output of the node")
def tensor(placement: Placement) -> Flaws:
    """A sharding is of an input or output of its node."""
    for each in _shardings(placement):
        if each.tensor_name not in (*placement.node.inputs, *placement.node.outputs):
            yield f"shards {each.tensor_name!r}, which is no input or output of the node"


@rule("device.shards", WARNING, source=SOURCE, remedy="state the axis, and the number of its shards")
def shards(placement: Placement) -> Flaws:
    """A sharded axis is stated, with the number of its shards."""
    for each in _shardings(placement):
        axes = [dim.axis if dim.HasField("axis") else None for dim in each.sharded_dim]
        if None in axes:
            yield f"shards {each.tensor_name!r} along no axis"
        if any(part.num_shards < 1 for dim in each.sharded_dim for part in dim.simple_sharding):
            yield f"shards {each.tensor_name!r} without a number of shards"


@rule("device.axis", WARNING, source=SOURCE, remedy="name an axis of the tensor")
def axis(placement: Placement) -> Flaws:
    """A sharded axis is one of the tensor's."""
    container = placement.node.container
    for each in () if container.is_broken else _shardings(placement):
        shape = container.scope.shape(each.tensor_name)
        for dim in each.sharded_dim:
            if shape is not None and not -len(shape) <= dim.axis < len(shape):
                yield f"shards {each.tensor_name!r}, of {len(shape)} dimensions, along axis {dim.axis}"


def _shardings(placement: Placement) -> Iterator[Any]:
    for each in placement.node.proto.device_configurations:
        yield from each.sharding_spec
