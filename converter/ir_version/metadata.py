"""Remove metadata, quantization annotations, device configurations and training information.

Before IR version 10, only the model has metadata: entries and annotations move there, with their origin in
the key.
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import count

from opshift.checker.ir_features.contents import Contents
from opshift.checker.ir_features.finders import described_messages
from opshift.model.messages import ModelProto, StringStringEntryProto


def move_to_model(contents: Contents) -> None:
    """Move all metadata to the model's metadata, with keys such as `graph, node 'conv1': namespace`."""
    _copy_to_model(contents.model, _take_metadata(contents))


def drop(contents: Contents) -> None:
    """Remove all metadata except the model's own."""
    for _ in _take_metadata(contents):
        pass


def _take_metadata(contents: Contents) -> Iterator[tuple[str, Sequence[StringStringEntryProto]]]:
    """Yield the place and metadata of each message, and clear its metadata before the next message."""
    for place, message in described_messages(contents):
        yield place, message.metadata_props
        message.ClearField("metadata_props")


def _copy_to_model(model: ModelProto, groups: Iterable[tuple[str, Sequence[StringStringEntryProto]]]) -> None:
    """Copy entries to the model's metadata, with the place in the key, and a number if the key is in use.

    This also changes the keys of the given entries, because changing the copies would take longer; the caller
    removes the given entries.
    """
    metadata = model.metadata_props
    used_keys = {entry.key for entry in metadata}
    numbers: dict[str, int] = {}
    for place, entries in groups:
        moved = entries[:]
        for entry in moved:
            key = f"{place}: {entry.key}"
            if key in used_keys:
                key = _numbered_key(key, used_keys, numbers)
            used_keys.add(key)
            entry.key = key
        metadata.extend(moved)  # `extend` does not decode the values, which may be long stack traces


def _numbered_key(key: str, used_keys: Set[str], numbers: dict[str, int]) -> str:
    """Return a used key with a number that makes it unique; `numbers` has the last number of each key."""
    numbers[key] = next(
        number for number in count(numbers.get(key, 1) + 1) if f"{key} ({number})" not in used_keys
    )
    return f"{key} ({numbers[key]})"


def move_annotations(contents: Contents) -> None:
    """Move all annotations to the model's metadata; keys: `graph, quantization of 'x': SCALE_TENSOR`."""
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
