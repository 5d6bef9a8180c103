"""Metadata of graphs, nodes, values, tensors and functions (IR version 10).

Models have metadata in all IR versions: the entries move there, with keys that name their origin.
"""

from collections.abc import Iterable, Sequence

from opshift.checker.ir_features.contents import Contents
from opshift.checker.ir_features.finders import described_messages
from opshift.model.messages import ModelProto, StringStringEntryProto


def move_to_model(contents: Contents) -> None:
    """Move every entry to the model's metadata, with a key such as `graph, node 'conv1': namespace`."""
    described = list(described_messages(contents))
    _copy_to_model(contents.model, ((place, message.metadata_props) for place, message in described))
    for _, message in described:
        message.ClearField("metadata_props")


def drop(contents: Contents) -> None:
    """Remove all metadata except the model's own."""
    for _, message in list(described_messages(contents)):
        message.ClearField("metadata_props")


def _copy_to_model(model: ModelProto, groups: Iterable[tuple[str, Sequence[StringStringEntryProto]]]) -> None:
    """Copy entries to the model's metadata, with their place in the key, and a number if it is in use."""
    metadata = model.metadata_props
    used_keys = {entry.key for entry in metadata}
    for place, entries in groups:
        for entry in entries[:]:  # takes less time than an iterator of protobuf
            key = unique_key = f"{place}: {entry.key}"
            number = 1
            while unique_key in used_keys:
                number += 1
                unique_key = f"{key} ({number})"
            used_keys.add(unique_key)
            # CopyFrom does not decode the value, which may be a long stack trace.
            added = metadata.add()
            added.CopyFrom(entry)
            added.key = unique_key


def move_annotations(contents: Contents) -> None:
    """Move every entry to the model's metadata, with keys like `graph, quantization of 'x': SCALE_TENSOR`."""
    groups = (
        (f"{path}, quantization of {each.tensor_name!r}", each.quant_parameter_tensor_names)
        for path, graph in contents.graphs
        for each in graph.quantization_annotation
    )
    _copy_to_model(contents.model, groups)
    drop_annotations(contents)


def drop_annotations(contents: Contents) -> None:
    """Remove all quantization annotations."""
    for _, graph in contents.graphs:
        graph.ClearField("quantization_annotation")


def drop_device_configurations(contents: Contents) -> None:
    """Remove all device configurations."""
    contents.model.ClearField("configuration")
    for node in contents.nodes_with("device_configurations"):
        node.proto.ClearField("device_configurations")


def drop_training_info(contents: Contents) -> None:
    """Remove all training information, also from the contents that later rewrites read."""
    contents.model.ClearField("training_info")
    contents.graphs = [each for each in contents.graphs if not each[0].startswith("training_info[")]
