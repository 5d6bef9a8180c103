"""Serialized messages as pieces: bytes, and ranges of the file that the model was read from.

The locations of tensors in a message are derived from the descriptors of ONNX's messages.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol

from opshift.model.messages import AttributeProto, ModelProto, TensorProto
from opshift.model.wire_format import ReadBytes, field_head, fields

MODEL, TENSOR, ATTRIBUTE = "ModelProto", "TensorProto", "AttributeProto"

RAW_DATA: int = TensorProto.DESCRIPTOR.fields_by_name["raw_data"].number

_WIDTHS = {
    "raw_data": 1, "float_data": 4, "double_data": 8, "string_data": 1,
    "int32_data": 0, "int64_data": 0, "uint64_data": 0,
}  # fmt: skip
PAYLOAD_WIDTHS: Mapping[int, int] = {
    TensorProto.DESCRIPTOR.fields_by_name[name].number: width for name, width in _WIDTHS.items()
}
"""Width in bytes of the elements in each payload field of TensorProto; 0 if it varies."""

SCALAR_LIST_FIELDS = frozenset(
    AttributeProto.DESCRIPTOR.fields_by_name[name].number for name in ("floats", "ints", "strings")
)
"""Numbers of the AttributeProto fields for lists of numbers or strings: such an attribute has no tensor."""


class MessageField(NamedTuple):
    """Field of a message type: the type of the messages in the field, and whether the field is repeated."""

    message: str
    is_repeated: bool


@cache
def tensor_fields() -> Mapping[str, Mapping[int, MessageField]]:
    """Return the fields that may contain tensors, by message name and field number."""
    messages = _reachable(ModelProto.DESCRIPTOR)
    with_tensors: set[str] = set()
    found = {TENSOR}
    # Message types contain each other (attributes have graphs): repeat until no further type is found.
    while found - with_tensors:
        with_tensors |= found
        found = {
            name for name, parts in messages.items() if any(p.message in with_tensors for p in parts.values())
        }
    return {
        name: {number: part for number, part in parts.items() if part.message in with_tensors}
        for name, parts in messages.items()
        if name in with_tensors
    }


@cache
def mergeable_messages() -> frozenset[str]:
    """Return the message types with a singular field that may contain tensors.

    If such a field occurs several times, protobuf merges the occurrences.
    """
    return frozenset(
        name
        for name, parts in tensor_fields().items()
        if not all(part.is_repeated for part in parts.values())
    )


def _reachable(descriptor: Any) -> dict[str, dict[int, MessageField]]:
    """Return the fields with messages, by type name and number, of all types reachable from a descriptor."""
    found: dict[str, dict[int, MessageField]] = {}
    waiting = [descriptor]
    while waiting:
        current = waiting.pop()
        inner = [field for field in current.fields if field.message_type]
        parts = {each.number: MessageField(each.message_type.name, _is_repeated(each)) for each in inner}
        found[current.name] = parts
        waiting += [each.message_type for each in inner if each.message_type.name not in found]
    return found


def _is_repeated(field: Any) -> bool:
    """Return whether a field is repeated. Protobuf 6.31 added the property; version 7 removed the label."""
    found = getattr(field, "is_repeated", None)
    return bool(field.label == field.LABEL_REPEATED if found is None else found)


BLOCK = 1 << 20
"""Number of bytes that are converted at once, a multiple of the size of every element."""


class Range(NamedTuple):
    """Byte range of a file."""

    start: int
    end: int


class ElementConversion(Protocol):
    """Conversion of the elements of a tensor to another element type."""

    def new_size(self, size: int) -> int:
        """Return the number of bytes that `size` bytes of elements have after the conversion."""
        ...

    def convert(self, data: bytes) -> bytes:
        """Return converted elements."""
        ...

    def require_range(self, data: bytes) -> None:
        """Raise an error if elements cannot be converted."""
        ...


class ConvertedRange:
    """Elements in a byte range of a file, converted while they are written."""

    def __init__(self, elements: Range, conversion: ElementConversion) -> None:
        self.elements = elements
        self.conversion = conversion

    def __len__(self) -> int:
        return self.conversion.new_size(self.elements.end - self.elements.start)

    def blocks(self, read: ReadBytes) -> Iterator[bytes]:
        """Yield the converted elements."""
        yield from map(self.conversion.convert, read_blocks(self.elements, read))


def read_blocks(elements: Range, read: ReadBytes) -> Iterator[bytes]:
    """Yield the bytes of a range in blocks of whole elements."""
    for start in range(elements.start, elements.end, BLOCK):
        yield read(start, min(start + BLOCK, elements.end))


Piece = bytes | Range

OutputPiece = Piece | ConvertedRange

ReplaceTensor = Callable[[int, int, int], Sequence[OutputPiece] | None]
"""Function that returns the pieces that replace a tensor, or `None` to keep it. Its arguments are the
marked position in the tensor, and the start and end of the tensor."""


def unconverted(pieces: Sequence[OutputPiece]) -> list[Piece] | None:
    """Return the pieces as a list; `None` if it contains a `ConvertedRange`."""
    found = [each for each in pieces if not isinstance(each, ConvertedRange)]
    return found if len(found) == len(pieces) else None


def total_size(pieces: Sequence[OutputPiece]) -> int:
    """Return the total size of pieces in bytes."""
    return sum([each.end - each.start if isinstance(each, Range) else len(each) for each in pieces])


def size_of_ranges(pieces: Sequence[OutputPiece]) -> int:
    """Return the total size of the ranges among pieces in bytes, after their conversion."""
    return total_size([each for each in pieces if not isinstance(each, bytes)])


def rewrite_tensors(data: bytes, name: str, marks: Iterable[int], change: ReplaceTensor) -> list[OutputPiece]:
    """Replace the tensors at marked positions of a serialized message, and update the enclosing lengths.

    `name` is the message type, such as `ModelProto`; `marks` are the positions, in ascending order.
    """
    remaining = [len(data), *reversed(tuple(marks))]
    return [*(_Rewriter(data, remaining, change).rewritten(0, len(data), name) or [data])]


class _Rewriter:
    """Replacement of tensors in the bytes of a message; `marks` are positions in the tensors to replace."""

    def __init__(self, data: bytes, marks: list[int], change: ReplaceTensor) -> None:
        self._data = data
        self._marks = marks
        """Remaining marks in descending order, after a sentinel at the end of the message."""
        self._change = change

    def rewritten(self, start: int, end: int, name: str) -> Sequence[OutputPiece] | None:
        """Return the pieces of the (nested) message from `start` to `end`; `None` if it stays unchanged."""
        marks = self._marks
        if marks[-1] >= end:
            return None
        if name == TENSOR:
            return self._change(marks[-1], start, end)
        pieces: list[OutputPiece] = []
        parts, copied_up_to = tensor_fields()[name], start
        for field in fields(lambda first, last: self._data[first:last], start, end, marks=marks):
            part = parts.get(field.number)
            inner = self.rewritten(field.value, field.end, part.message) if part else None
            while marks[-1] < field.end:
                marks.pop()
            if inner is not None:
                pieces += [
                    self._data[copied_up_to : field.start] + field_head(field.number, total_size(inner)),
                    *inner,
                ]
                copied_up_to = field.end
            if marks[-1] >= end:
                break
        return [*pieces, self._data[copied_up_to:end]] if pieces else None
