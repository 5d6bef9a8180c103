"""Rules for multi-device configurations; runtimes may ignore all of them."""

from collections import Counter
from collections.abc import Iterator

from opshift.checker.checked_model import CheckedModel
from opshift.checker.checked_nodes import DevicePlacement
from opshift.checker.findings import WARNING
from opshift.checker.rule_table import Problems, rule
from opshift.model.messages import ShardingSpecProto

SOURCE = "IR: Multi-Device Configuration"


@rule("device.name", WARNING, SOURCE, "give each configuration a unique name")
def name(model: CheckedModel) -> Problems:
    """A device configuration must have a unique name."""
    for configuration_name, count in Counter(entry.name for entry in model.proto.configuration).items():
        if not configuration_name:
            yield "a device configuration has no name"
        elif count > 1:
            yield f"{count} device configurations have the name {configuration_name!r}"


@rule("device.count", WARNING, SOURCE, "set num_devices, and name all devices or none")
def count(model: CheckedModel) -> Problems:
    """A device configuration must declare the number of its devices, and name all of them or none."""
    for entry in model.proto.configuration:
        if entry.num_devices < 1:
            yield f"device configuration {entry.name!r} has {entry.num_devices} devices"
        elif entry.device and len(entry.device) != entry.num_devices:
            names = f"{len(entry.device)} of its {entry.num_devices} devices"
            yield f"device configuration {entry.name!r} names {names}"


@rule("device.configuration", WARNING, SOURCE, "name a configuration of the model")
def configuration(placement: DevicePlacement) -> Problems:
    """A node may only refer to device configurations of the model."""
    known = placement.container.model.device_counts
    for entry in placement.proto.device_configurations:
        if entry.configuration_id not in known:
            yield f"refers to device configuration {entry.configuration_id!r}, which the model does not have"


@rule("device.tensor", WARNING, SOURCE, "name an input or output of the node")
def tensor(placement: DevicePlacement) -> Problems:
    """A node may only shard its own inputs and outputs."""
    for spec in _sharding_specs(placement):
        if spec.tensor_name not in (*placement.inputs, *placement.outputs):
            yield f"shards {spec.tensor_name!r}, which is not an input or output of the node"


@rule("device.shards", WARNING, SOURCE, "set the axis and the number of its shards")
def shards(placement: DevicePlacement) -> Problems:
    """A sharding must specify its axis and the number of shards."""
    for spec in _sharding_specs(placement):
        axes = [dim.axis if dim.HasField("axis") else None for dim in spec.sharded_dim]
        if None in axes:
            yield f"shards {spec.tensor_name!r} without an axis"
        if any(part.num_shards < 1 for dim in spec.sharded_dim for part in dim.simple_sharding):
            yield f"shards {spec.tensor_name!r} without a number of shards"


@rule("device.index", WARNING, SOURCE, "use indices from 0 to num_devices - 1, or add a device group")
def index(placement: DevicePlacement) -> Problems:
    """A sharding must use devices of its configuration, or groups of them."""
    counts = placement.container.model.device_counts
    for entry in placement.proto.device_configurations:
        for spec in entry.sharding_spec if entry.configuration_id in counts else ():
            count = counts[entry.configuration_id]
            groups = {group.key: group.value for group in spec.index_to_device_group_map}
            devices = [each for device in spec.device for each in groups.get(device, (device,))]
            unknown = [device for device in devices if not 0 <= device < count]
            if unknown:
                configured = f"configuration {entry.configuration_id!r} has {count} devices"
                yield f"shards {spec.tensor_name!r} over device {unknown[0]}; {configured}"


@rule("device.axis", WARNING, SOURCE, "specify an axis of the tensor")
def axis(placement: DevicePlacement) -> Problems:
    """A sharded axis must be an axis of the tensor."""
    container = placement.container
    for spec in () if container.is_invalid else _sharding_specs(placement):
        shape = container.scope.shape(spec.tensor_name)
        for dim in spec.sharded_dim:
            if shape is not None and not -len(shape) <= dim.axis < len(shape):
                yield f"shards {spec.tensor_name!r}, which has {len(shape)} dimensions, along axis {dim.axis}"


def _sharding_specs(placement: DevicePlacement) -> Iterator[ShardingSpecProto]:
    for entry in placement.proto.device_configurations:
        yield from entry.sharding_spec
