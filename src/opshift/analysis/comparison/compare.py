"""Compare two versions of a model: the signature (inputs and outputs), and everything else."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import cast

from opshift.analysis.comparison.operators import operator_changes
from opshift.converter.signature import ModelChange, Signature, denotations
from opshift.model import model_version
from opshift.model.atomic_files import have_equal_content
from opshift.model.files import ModelLike, model_of, requiring_text
from opshift.model.graphs import require_graph, require_limited_depth
from opshift.model.locations import folder_of
from opshift.model.messages import (
    Message,
    ModelProto,
    TensorProto,
    ValueInfoProto,
)
from opshift.model.model_version import VersionBump, unpack_version
from opshift.model.offloaded_tensors import EXTERNAL, read_external_data
from opshift.model.operator_ids import opset_imports
from opshift.model.plain_data import Json
from opshift.model.tensor_pieces import TENSOR, tensor_fields
from opshift.registry.registry import Registry, registry_or_default


@dataclass(frozen=True)
class Comparison:
    """All changes between two models, the most severe first.

    Attributes:
        changes: the changes.
        old_version, new_version: packed `model_version` of each model.
    """

    changes: tuple[ModelChange, ...]
    old_version: int
    new_version: int

    def __str__(self) -> str:
        return "\n".join([f"required increment: {self.required.name}", *map(str, self.changes)])

    @cached_property
    def required(self) -> VersionBump:
        """Least version increment that is enough for all changes."""
        return max((each.rise for each in self.changes), default=VersionBump.NONE)

    @property
    def risen(self) -> VersionBump | None:
        """Version increment between the two models; `None` if the version decreases."""
        return model_version.version_bump_between(self.old_version, self.new_version)

    @property
    def enough(self) -> bool:
        """Whether the increment is at least the required one."""
        return self.risen is not None and self.risen >= self.required

    def with_same_meaning(self) -> "Comparison":
        """Return the result for outputs with equal meaning: OPERATORS_CHANGED becomes OPERATORS_REPLACED."""
        changes = (
            replace(each, rule="OPERATORS_REPLACED") if each.rule == "OPERATORS_CHANGED" else each
            for each in self.changes
        )
        return replace(self, changes=tuple(sorted(changes, key=lambda change: -change.rise)))

    @property
    def lowest(self) -> str:
        """Lowest version that has the required increment."""
        return model_version.next_version(self.old_version, self.required)

    def as_dict(self) -> dict[str, Json]:
        """Return plain data for JSON."""
        return {
            "old_version": unpack_version(self.old_version),
            "new_version": unpack_version(self.new_version),
            "required": self.required.name,
            "risen": self.risen.name if self.risen is not None else None,
            "enough": self.enough,
            "lowest": self.lowest,
            "changes": [each.as_dict() for each in self.changes],
        }


IMAGE_PREFIX = "image."
"""Case-insensitive prefix of `metadata_props` keys that describe images, see ONNX's MetadataProps.md."""

Folders = tuple[Path | None, Path | None]
"""Folder of each model; `None` for a model that is not a file."""


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
        for domain, opset in opset_imports(function.opset_import).items() if function.opset_import else ():
            opsets[domain] = max(opset, opsets.get(domain, 0))
    return opsets


def _meaning_changes(old: ModelProto, new: ModelProto) -> Iterator[ModelChange]:
    before, after = _image_metadata(old), _image_metadata(new)
    for key in filter(after.__contains__, before):
        if before[key] != after[key]:
            yield ModelChange("MEANING_CHANGED", f"metadata {key}", before[key], after[key])


def _image_metadata(model: ModelProto) -> dict[str, str]:
    """Return the metadata about images in lower case, because its keys and values are case-insensitive."""
    # protobuf may return bytes for a string that is not UTF-8
    props = {str(each.key).lower(): str(each.value).lower() for each in model.metadata_props}
    return {key: value for key, value in props.items() if key.startswith(IMAGE_PREFIX)}


def _external_files(model: ModelProto) -> set[str]:
    """Return the external data files of all tensors, including tensors in attributes and subgraphs."""
    tensors = (each for each in _tensors_of(model) if each.data_location == EXTERNAL)
    return {read_external_data(each).location for each in tensors} - {""}


def _tensors_of(model: ModelProto) -> Iterator[TensorProto]:
    pending: list[Message] = [model]
    while pending:
        message = pending.pop()
        name = message.DESCRIPTOR.name
        if name == TENSOR:
            yield cast("TensorProto", message)
            continue
        parts = tensor_fields()[name]
        for field, value in message.ListFields():
            if field.number in parts:
                pending += value if parts[field.number].is_repeated else (value,)


def external_data_may_differ(old: ModelProto, new: ModelProto, folders: Folders) -> bool:
    """Return whether external data files that both models name may differ between their folders."""
    names = _external_files(old) & _external_files(new)
    old_folder, new_folder = folders
    if old_folder is None or new_folder is None:
        return bool(names)
    try:
        return not all(have_equal_content(old_folder / name, new_folder / name) for name in names)
    except (OSError, ValueError):  # a file is missing, or its name contains a zero byte
        return True


def _same_graph(old: ModelProto, new: ModelProto) -> bool:
    """Return whether the nodes, weights, functions, training graphs and devices of two models are equal."""
    # Skip initializers of inputs: they are default values, which belong to the signature.
    inputs = {value.name for graph in (old.graph, new.graph) for value in graph.input}
    old_weights, new_weights = (
        [each for each in graph.initializer if each.name not in inputs] for graph in (old.graph, new.graph)
    )
    return (
        _serialize_each(old_weights) == _serialize_each(new_weights)
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
    """Return whether inputs and outputs in both models have equal doc strings, denotations and metadata."""
    for field in ("input", "output"):
        old_values = {value.name: value for value in getattr(old.graph, field)}
        for value in getattr(new.graph, field):
            before = old_values.get(value.name)
            if before is not None and _value_texts(before) != _value_texts(value):
                return False
    return True


def _value_texts(value: ValueInfoProto) -> tuple[object, ...]:
    metadata = [(each.key, each.value) for each in value.metadata_props]
    return value.doc_string, denotations(value.type), metadata


def _same_fields(old: Message, new: Message, fields: Iterable[str]) -> bool:
    """Return whether repeated fields of two messages are equal, even if their classes differ."""
    return all(_serialize_each(getattr(old, each)) == _serialize_each(getattr(new, each)) for each in fields)


def _serialize_each(messages: Iterable[Message]) -> list[bytes]:
    return [each.SerializeToString(deterministic=True) for each in messages]


@requiring_text
def compare(
    old: ModelLike, new: ModelLike, *, same_meaning: bool = False, registry: Registry | None = None
) -> Comparison:
    """Compare two versions of a model, and determine the required increment of `model_version`.

    Meanings of inputs and outputs are compared if both models declare them: denotations of types, and
    metadata of images. External data files are compared if both models are paths.

    Operators are compared at the opsets of the new model, to which the old one is converted if possible. A
    node in both models has a new meaning if no conversion between their opsets keeps the node. If operators,
    attributes or connections changed, outputs may mean something else, which requires a higher MAJOR version
    unless the caller states that they mean the same. `verify` compares the outputs of both models.

    Args:
        old: a ModelProto of opshift or `onnx`, serialized bytes, a path, or a file object.
        new: a model in one of the same forms.
        same_meaning: the outputs mean the same, although operators changed: a higher MINOR version is enough.
        registry: operator definitions; by default the project's own.

    Returns:
        All changes, the most severe first.

    Raises:
        InvalidModel: `old` or `new` is not a model with a graph, or is invalid.
    """
    old_model, new_model = (model_with_graph(each) for each in (old, new))
    changes = [*Signature.of(old_model).changes(new_model)]
    definitions = registry_or_default(registry)
    changes += content_changes(old_model, new_model, (folder_of(old), folder_of(new)), definitions)
    changes.sort(key=lambda change: -change.rise)
    found = Comparison(tuple(changes), old_model.model_version, new_model.model_version)
    return found.with_same_meaning() if same_meaning else found


def model_with_graph(given: ModelLike) -> ModelProto:
    """Return the model as a message; raise InvalidModel if it has no graph, or nests graphs too deeply."""
    model: ModelProto = model_of(given)[0]
    require_graph(model, str(given) if isinstance(given, str | os.PathLike) else "")
    require_limited_depth(model)
    return model
