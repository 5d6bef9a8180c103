"""The record of what conversions replaced: one entry of a model's metadata.

The entry's value is base64 of zlib of JSON; its size is in proportion to the number of recorded nodes.
"""

from __future__ import annotations

import base64
import zlib
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, FailFast, StringConstraints

from opshift.converter.errors import InvalidModel
from opshift.converter.reversible.key import KEY

ROOM, RATIO = 1 << 20, 16
"""No record takes more bytes unpacked than `ROOM` and `RATIO` times those of its text."""

Item = TypeVar("Item")
Many = Annotated[tuple[Item, ...], FailFast()]
"""A list of which one wrong item is told, however many there are."""
Hex = Annotated[str, StringConstraints(pattern="^([0-9a-f]{2})*$")]
Place = Many[str]
"""`graph`, `training_info` with index and part, or `function` with domain, name and overload; then for
each graph further in an output of the node that holds it, the attribute, and the position in that."""


class Recorded(BaseModel):
    """A piece of the record."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


class Given(Recorded):
    """What is known of an input of a node; a group and the node it stands for agree only under it.

    Attributes:
        type: the element type, empty if not known.
        rank: the number of dimensions, -1 if not known.
        value: the digest of a constant that the group does not read, since its value is part of the group.
    """

    type: str = ""
    rank: int = -1
    value: str = ""


class Opset(Recorded):
    """The opset of a domain."""

    domain: str
    version: int


class Entry(Recorded):
    """A node, and the group of nodes that stands in its place.

    Attributes:
        opsets: of the domain of the node, and of those of nodes in graphs that it holds.
        original: the NodeProto; empty if the group is that very node.
        group: of each node in the place, in order, the first output that has a name.
        inputs: of each input of the original.
        digest: of the group and of the constants that were added for it.
    """

    opsets: Many[Opset]
    original: Hex = ""
    group: Many[str]
    inputs: Many[Given]
    digest: Hex = ""

    def opset(self, domain: str) -> int | None:
        """The opset of a domain."""
        return next((each.version for each in self.opsets if each.domain == domain), None)


class Part(Recorded):
    """What is recorded of one graph or function; `constants` are the names of those that were added."""

    place: Place
    entries: Many[Entry]
    constants: Many[str] = ()


class Import(Recorded):
    """An opset import that a conversion added; `place` is `graph` for the model."""

    place: Place
    domain: str


class Copy(Recorded):
    """A function that a conversion specialised for some calls, and what it is a copy of."""

    place: Place
    name: str


class Record(Recorded):
    """All that is recorded.

    Attributes:
        ir_version: before the first recorded conversion, and after the last.
        opsets: those of the model before the first recorded conversion.
    """

    format: Literal[1]
    ir_version: tuple[int, int]
    opsets: Many[Opset]
    imports: Many[Import] = ()
    copies: Many[Copy] = ()
    parts: Many[Part] = ()


class Header(NamedTuple):
    """A record but for its parts, and whether the conversion that writes it is recorded."""

    record: Record
    is_continued: bool


def read_record(model: Any) -> Record | None:
    """The record that a model carries.

    Raises:
        InvalidModel: it is not as it was written, or there are two.
    """
    texts = [each.value for each in model.metadata_props if each.key == KEY]
    if not texts:
        return None
    try:
        (text,) = texts
        return Record.model_validate_json(_unpacked(text))
    except (ValueError, zlib.error) as error:
        raise unusable() from error


def write_record(model: Any, record: Record | None) -> None:
    """Put a record into a model's metadata in place of the one that is there, or take that out."""
    kept = [index for index, each in enumerate(model.metadata_props) if each.key == KEY]
    if record is None:
        for index in reversed(kept):
            del model.metadata_props[index]
        return
    entry = model.metadata_props[kept[0]] if kept else model.metadata_props.add()
    entry.key, entry.value = KEY, _packed(record.model_dump_json(exclude_defaults=True).encode())


def unusable() -> InvalidModel:
    """The error for a record that does not make sense."""
    return InvalidModel(
        "the record of earlier conversions is damaged",
        place=f"metadata_props, key {KEY!r}",
        remedy=f"remove the entry {KEY!r}: the model is converted without it, and nothing is put back",
    )


def _packed(data: bytes) -> str:
    text = base64.b64encode(zlib.compress(data, 9))
    if len(data) > _most(len(text)):
        text = base64.b64encode(zlib.compress(data, 0))
    return text.decode()


def _unpacked(text: str) -> bytes:
    unpacker = zlib.decompressobj()
    data = unpacker.decompress(base64.b64decode(text, validate=True), _most(len(text)))
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError("it is cut off, or larger than any record")
    return data


def _most(size: int) -> int:
    """How many bytes a record may take unpacked, so that a short text cannot fill the memory."""
    return ROOM + RATIO * size
