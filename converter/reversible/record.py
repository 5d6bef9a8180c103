"""Record of conversions in the model's metadata: replaced nodes, added imports and copies, removed inputs.

Also the restoration of these inputs. The record is JSON, compressed by zlib, in base64. Its size is
proportional to the number of recorded nodes.
"""

import base64
import zlib
from collections.abc import Iterator, Sequence, Set
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, FailFast, StringConstraints

from opshift.converter.plan.changes import METADATA_KEY
from opshift.model.errors import InvalidModel
from opshift.model.graphs import ContainerProto, remove_messages, sort_by_keys, training_graphs
from opshift.model.messages import DecodeError, GraphProto, ModelProto, ValueInfoProto
from opshift.model.operator_ids import function_id
from opshift.model.types import declared_dims

UNPACKED_BASE, UNPACKED_RATIO = 1 << 20, 16
"""The unpacked size of a record is limited to a base, in bytes, plus a ratio times the size of its text."""

Item = TypeVar("Item")

FailFastTuple = Annotated[tuple[Item, ...], FailFast()]
"""Tuple with validation that stops at the first invalid item: one error is enough for a damaged record."""

Hex = Annotated[str, StringConstraints(pattern="^([0-9a-f]{2})*$")]

GraphPath = FailFastTuple[str]
"""Path of a graph or function: `graph`, `training_info` with index and part, or `function` with domain, name
and overload. Each nesting level adds an output of the node that holds the subgraph, the attribute, and the
position in the attribute."""


MAIN_GRAPH: GraphPath = ("graph",)


def top_level_graphs(model: ModelProto) -> Iterator[tuple[GraphPath, ContainerProto]]:
    """Yield the main graph, the training graphs and the functions, each with its path."""
    yield MAIN_GRAPH, model.graph
    for each in training_graphs(model):
        yield ("training_info", str(each.position), each.part), each.graph
    for function in model.functions:
        yield ("function", *function_id(function)), function


class RecordModel(BaseModel):
    """Base class of all parts of the record."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


class Precondition(RecordModel):
    """Fact about an input that must hold so that the group and the original node compute the same results.

    An unknown type is empty, and an unknown rank is -1. `value` is a digest of a constant input that the
    group does not read, because the conversion may have built the value into the group. An original with
    attribute references has a last precondition with only a digest of its attributes.
    """

    type: str = ""
    rank: int = -1
    value: str = ""


class Opset(RecordModel):
    """Opset import of a domain."""

    domain: str
    version: int


class RecordEntry(RecordModel):
    """Recorded node, and the group of nodes that replaced it.

    `opsets` are for the domains of the node and of its subgraphs. `original` is the serialized NodeProto in
    hex, empty if the group is the node itself. `group` has the first named output of each node, in order. The
    digest covers the group and the constants that were added for it.
    """

    opsets: FailFastTuple[Opset]
    original: Hex = ""
    group: FailFastTuple[str]
    inputs: FailFastTuple[Precondition]
    digest: Hex = ""

    def opset(self, domain: str) -> int | None:
        """Return the opset of a domain; `None` if the entry has no opset for it."""
        return next((each.version for each in self.opsets if each.domain == domain), None)


class RecordPart(RecordModel):
    """Record of one graph or function; `constants` are the names of added constants."""

    place: GraphPath
    entries: FailFastTuple[RecordEntry]
    constants: FailFastTuple[str] = ()


class AddedImport(RecordModel):
    """Opset import that a conversion added; `place` is `graph` for an import of the model."""

    place: GraphPath
    domain: str


class RecordedCopy(RecordModel):
    """Copy of a function, specialized for some calls; `name` is the name of the original function."""

    place: GraphPath
    name: str


class RecordedInput(RecordModel):
    """Graph input with an initializer: its position, and the serialized ValueInfoProto in hex."""

    position: int
    value: Hex


class ConversionRecord(RecordModel):
    """Complete record of a model.

    `ir_version` has the versions before the first recorded conversion and after the last one; `opsets` are
    the imports before the first one. `imports` and `copies` are the opset imports and function copies that
    conversions added; `initializer_inputs` are the graph inputs that they removed.
    """

    format: Literal[1]
    ir_version: tuple[int, int]
    opsets: FailFastTuple[Opset]
    imports: FailFastTuple[AddedImport] = ()
    copies: FailFastTuple[RecordedCopy] = ()
    initializer_inputs: FailFastTuple[RecordedInput] = ()
    parts: FailFastTuple[RecordPart] = ()


def read_record(model: ModelProto) -> ConversionRecord | None:
    """Return the record of a model, or `None`; raise InvalidModel if it is damaged or not unique."""
    texts = [each.value for each in model.metadata_props if each.key == METADATA_KEY]
    if not texts:
        return None
    try:
        (text,) = texts
        return ConversionRecord.model_validate_json(_unpack(text))
    except (ValueError, zlib.error) as error:
        raise damaged_record() from error


def write_record(model: ModelProto, record: ConversionRecord | None) -> None:
    """Write a record into the metadata of a model, replacing the old one; `None` removes the old one."""
    if record is None:
        remove_messages(model.metadata_props, [each.key == METADATA_KEY for each in model.metadata_props])
        return
    existing = (each for each in model.metadata_props if each.key == METADATA_KEY)
    entry = next(existing, None) or model.metadata_props.add(key=METADATA_KEY)
    entry.value = _pack(record.model_dump_json(exclude_defaults=True).encode())


def damaged_record() -> InvalidModel:
    """Return the error for a damaged record."""
    return InvalidModel(
        "the record of earlier conversions is damaged",
        place=f"metadata_props, key {METADATA_KEY!r}",
        remedy=f"remove the entry {METADATA_KEY!r}: the model can then be converted, "
        "but no replaced node is restored",
    )


def _pack(data: bytes) -> str:
    text = base64.b64encode(zlib.compress(data, 9))
    if len(data) > _unpacked_limit(len(text)):
        # Data that compresses too well for the limit is stored uncompressed, so that it remains readable.
        text = base64.b64encode(zlib.compress(data, 0))
    return text.decode()


def _unpack(text: str) -> bytes:
    """Return the data in a text from `_pack`; raise ValueError or `zlib.error` if damaged or too large."""
    unpacker = zlib.decompressobj()
    data = unpacker.decompress(base64.b64decode(text, validate=True), _unpacked_limit(len(text)))
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError("the record is truncated or too large")
    return data


def _unpacked_limit(size: int) -> int:
    """Return the unpacked size limit in bytes, which keeps a short text from exhausting the memory."""
    return UNPACKED_BASE + UNPACKED_RATIO * size


def recorded_inputs(graph: GraphProto, names: Set[str]) -> tuple[RecordedInput, ...]:
    """Return the record entries of the graph inputs with these names."""
    return tuple(
        RecordedInput(position=position, value=value.SerializeToString(deterministic=True).hex())
        for position, value in enumerate(graph.input if names else ())
        if value.name in names
    )


def restore_inputs(graph: GraphProto, recorded: Sequence[RecordedInput]) -> None:
    """Give graph inputs their recorded declarations and positions, after initializers became inputs.

    An initializer that was edited keeps its new declaration.
    """
    originals = _read_declarations(recorded)
    positions = {original.name: each.position for each, original in zip(recorded, originals, strict=True)}
    by_name = {original.name: original for original in originals}
    others = [value.name for value in graph.input if value.name not in positions]
    order = list(others)
    for name in sorted(positions, key=positions.__getitem__):
        order.insert(positions[name], name)
    for value in graph.input:
        original = by_name.get(value.name)
        if original is not None and _declares(original, value):
            # `value` may be a message of onnx, and `CopyFrom` accepts only the same class
            value.Clear()
            value.MergeFromString(original.SerializeToString(deterministic=True))
    places = {name: place for place, name in enumerate(order)}
    sort_by_keys(graph.input, [places[value.name] for value in graph.input])


def _read_declarations(recorded: Sequence[RecordedInput]) -> list[ValueInfoProto]:
    try:
        return [ValueInfoProto.FromString(bytes.fromhex(each.value)) for each in recorded]
    except DecodeError as error:
        raise damaged_record() from error


def _declares(original: ValueInfoProto, value: ValueInfoProto) -> bool:
    """Return whether a recorded declaration allows the element type and known sizes of `value`."""
    before, after = original.type.tensor_type, value.type.tensor_type
    dims, sizes = declared_dims(original.type), declared_dims(value.type)
    if before.elem_type != after.elem_type or dims is None or sizes is None:
        return before.elem_type == after.elem_type
    return len(dims) == len(sizes) and all(
        not isinstance(dim, int) or dim == size for dim, size in zip(dims, sizes, strict=True)
    )
