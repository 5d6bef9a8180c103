"""Comparison of everything except the signature: opsets, IR version, graph, weights and metadata."""

import filecmp
from collections.abc import Iterable, Iterator
from pathlib import Path

from opshift.analysis.comparison.operators import operator_changes
from opshift.analysis.comparison.result import ModelChange
from opshift.model.messages import Message, ModelProto, ValueInfoProto
from opshift.model.offloaded_tensors import EXTERNAL, read_external_data
from opshift.model.operator_ids import opset_imports
from opshift.registry.registry import Registry

IMAGE_PREFIX = "image."
"""Case-insensitive prefix of the keys in `metadata_props` that describe images (MetadataProps)."""

Folders = tuple[Path | None, Path | None]
"""Folders of the two models, if they are files."""


def content_changes(
    old: ModelProto, new: ModelProto, folders: Folders, registry: Registry
) -> Iterator[ModelChange]:
    """Yield all changes except changes of the signature."""
    yield from _version_changes(old, new)
    yield from _meaning_changes(old, new)
    operators = tuple(operator_changes(old, new, registry))
    yield from operators
    if not operators and not _same_graph(old, new):
        yield ModelChange("GRAPH_CHANGED", "graph")
    if external_data_may_differ(old, new, folders):
        yield ModelChange("WEIGHTS_UNKNOWN", "weights")
    if not _same_metadata(old, new):
        yield ModelChange("METADATA_CHANGED", "metadata")


def _version_changes(old: ModelProto, new: ModelProto) -> Iterator[ModelChange]:
    before, after = _highest_opsets(old), _highest_opsets(new)
    versions = [("OPSET", each, before.get(each, 0), after.get(each, 0)) for each in {**before, **after}]
    versions.append(("IR_VERSION", "IR version", old.ir_version, new.ir_version))
    for rule, place, old_version, new_version in versions:
        if old_version != new_version:
            kind = "RAISED" if new_version > old_version else "LOWERED"
            yield ModelChange(f"{rule}_{kind}", place, str(old_version or ""), str(new_version or ""))


def _highest_opsets(model: ModelProto) -> dict[str, int]:
    """Return the highest opset of each domain that the model or one of its functions imports."""
    opsets = opset_imports(model.opset_import, model.ir_version)
    for function in model.functions:
        for domain, opset in opset_imports(function.opset_import or model.opset_import).items():
            opsets[domain] = max(opset, opsets.get(domain, 0))
    return opsets


def _meaning_changes(old: ModelProto, new: ModelProto) -> Iterator[ModelChange]:
    before, after = _image_metadata(old), _image_metadata(new)
    for key in filter(after.__contains__, before):
        if before[key] != after[key]:
            yield ModelChange("MEANING_CHANGED", f"metadata {key}", before[key], after[key])


def _image_metadata(model: ModelProto) -> dict[str, str]:
    """Return the metadata of images in lower case, because keys and values are case-insensitive."""
    # protobuf may return bytes for text that is not UTF-8
    props = {str(each.key).lower(): str(each.value).lower() for each in model.metadata_props}
    return {key: value for key, value in props.items() if key.startswith(IMAGE_PREFIX)}


def _external_files(model: ModelProto) -> set[str]:
    """Return the external data files of the main graph."""
    tensors = (each for each in model.graph.initializer if each.data_location == EXTERNAL)
    return {read_external_data(each).location for each in tensors} - {""}


def external_data_may_differ(old: ModelProto, new: ModelProto, folders: Folders) -> bool:
    """Return whether external data files that both models name may differ in their folders."""
    names = _external_files(old) & _external_files(new)
    old_folder, new_folder = folders
    if old_folder is None or new_folder is None:
        return bool(names)
    try:
        return not all(filecmp.cmp(old_folder / name, new_folder / name, shallow=False) for name in names)
    except OSError:  # a missing file is not an error of this comparison
        return True


def _same_graph(old: ModelProto, new: ModelProto) -> bool:
    """Return whether everything is equal that results may depend on."""
    # initializers of inputs are defaults, which are part of the signature
    inputs = {value.name for graph in (old.graph, new.graph) for value in graph.input}
    old_weights, new_weights = (
        [each for each in graph.initializer if each.name not in inputs] for graph in (old.graph, new.graph)
    )
    return (
        _serialize(old_weights) == _serialize(new_weights)
        and _same_fields(old.graph, new.graph, ("node", "sparse_initializer", "quantization_annotation"))
        and _same_fields(old, new, ("functions", "training_info", "configuration"))
    )


def _same_metadata(old: ModelProto, new: ModelProto) -> bool:
    texts = ("producer_name", "producer_version", "domain", "doc_string")
    return (
        all(getattr(old, field) == getattr(new, field) for field in texts)
        and (old.graph.name, old.graph.doc_string) == (new.graph.name, new.graph.doc_string)
        and _same_fields(old, new, ("metadata_props",))
        and _same_fields(old.graph, new.graph, ("metadata_props", "value_info"))
        and _same_value_texts(old, new)
    )


def _same_value_texts(old: ModelProto, new: ModelProto) -> bool:
    """Return whether descriptive texts of inputs and outputs are equal, for those in both models."""
    for field in ("input", "output"):
        old_values = {value.name: value for value in getattr(old.graph, field)}
        for value in getattr(new.graph, field):
            before = old_values.get(value.name)
            if before is not None and _value_texts(before) != _value_texts(value):
                return False
    return True


def _value_texts(value: ValueInfoProto) -> tuple[object, ...]:
    metadata = [(each.key, each.value) for each in value.metadata_props]
    return value.doc_string, value.type.denotation, metadata


def _same_fields(old: Message, new: Message, fields: Iterable[str]) -> bool:
    """Return whether repeated fields of two messages are equal, even if their classes differ."""
    return all(_serialize(getattr(old, each)) == _serialize(getattr(new, each)) for each in fields)


def _serialize(messages: Iterable[Message]) -> list[bytes]:
    return [each.SerializeToString(deterministic=True) for each in messages]
