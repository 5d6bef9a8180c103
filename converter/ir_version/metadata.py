"""Metadata of graphs, nodes, values, tensors and functions (IR version 10).

Models have metadata in all IR versions: the entries move there, with keys that name their origin.
"""

from collections.abc import Iterable

from opshift.checker.ir_features.contents import Contents
from opshift.checker.ir_features.finders import described_messages
from opshift.model.messages import ModelProto


def move_to_model(contents: Contents) -> None:
    """Move every entry to the model's metadata, with a key such as `graph, node 'conv1': namespace`."""
    described = list(described_messages(contents))
    entries = ((place, entry) for place, message in described for entry in message.metadata_props)
    _add_entries(contents.model, ((f"{place}: {entry.key}", entry.value) for place, entry in entries))
    drop(contents)


def drop(contents: Contents) -> None:
    """Remove all metadata except the model's own."""
    for _, message in list(described_messages(contents)):
        message.ClearField("metadata_props")


def _add_entries(model: ModelProto, entries: Iterable[tuple[str, str]]) -> None:
    """Add keys and values to the model's metadata, with a number after each key that is in use."""
    metadata = model.metadata_props
    used_keys = {entry.key for entry in metadata}
    for key, value in entries:
        unique_key, number = key, 1
        while unique_key in used_keys:
            number += 1
            unique_key = f"{key} ({number})"
        used_keys.add(unique_key)
        # Faster than `add(key=..., value=...)`, and exporters write several entries for each node.
        added = metadata.add()
        added.key, added.value = unique_key, value


def move_annotations(contents: Contents) -> None:
    """Move every entry to the model's metadata, with keys like `graph, quantization of 'x': SCALE_TENSOR`."""
    entries = (
        (f"{path}, quantization of {annotation.tensor_name!r}: {entry.key}", entry.value)
        for path, graph in contents.graphs
        for annotation in graph.quantization_annotation
        for entry in annotation.quant_parameter_tensor_names
    )
    _add_entries(contents.model, entries)
    drop_annotations(contents)


def drop_annotations(contents: Contents) -> None:
    """Remove all quantization annotations."""
    for _, graph in contents.graphs:
        graph.ClearField("quantization_annotation")


def drop_device_configurations(contents: Contents) -> None:
    """Remove all device configurations."""
    contents.model.ClearField("configuration")
    for node in contents.with_devices:
        node.proto.ClearField("device_configurations")


def drop_training_info(contents: Contents) -> None:
    """Remove all training information, also from the contents that later rewrites read."""
    contents.model.ClearField("training_info")
    contents.graphs = [each for each in contents.graphs if not each[0].startswith("training_info[")]
