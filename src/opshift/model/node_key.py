"""Node keys: operator, attributes and arity of a node, without value names.

Serializing a node is several times faster than reading its attributes one by one. Input and output names come
first in the serialized node, so the bytes after them identify its operator and attributes.
"""

from collections.abc import Iterable
from math import prod

from opshift.model.attributes import TENSOR
from opshift.model.errors import not_utf8_error
from opshift.model.graphs import NodeRecord
from opshift.model.messages import NodeProto, TensorProto
from opshift.model.node import serialized_attributes

OperatorKey = tuple[str | bytes, ...]
"""op_type, domain and serialized attributes of a node."""

NodeKey = tuple[OperatorKey, int, int, tuple[int, ...]]
"""Key of a node: its operator key, number of inputs, number of outputs, and pattern of names.

The pattern has a number for each input and output: 0 for an omitted value, and otherwise the same number for
the same name. The pattern is empty if all values are present and differ.
"""

MAX_KEYS, MAX_KEY_BYTES = 1024, 1024
"""Maximum number of cached operator keys, and maximum size of a key in bytes; they bound the memory."""

MAX_KEY_ELEMENTS = 32
"""Maximum number of elements of a tensor in a key: most constants are axes, sizes and scalars."""

_CACHE: dict[bytes | None, OperatorKey] = {}
"""Cache of operator keys by the serialized node without names."""

NAME_TAG = b"\x1a"
"""Tag of `NodeProto.name` (field 3, length-delimited), which follows the names of inputs and outputs."""

MAX_ONE_BYTE_LENGTH, MAX_TWO_BYTE_LENGTH = 0x7F, 0x3FFF
"""Maximum length that a varint encodes in one byte, and maximum length in two bytes."""


def is_known(remainder: bytes | None) -> bool:
    """Return whether an operator key is cached; `remainder` is the result of `serialize_without_names`."""
    return remainder in _CACHE


def node_key_of(record: NodeRecord, proto: NodeProto) -> NodeKey:
    """Return the key of a node: nodes with equal keys have equal operators, attributes and arity.

    Raises:
        InvalidModel: a name is not UTF-8 text.
    """
    _, _, _, inputs, outputs = record
    return key_of_serialized(record, proto, serialize_without_names(proto, inputs + outputs))


def key_of_serialized(record: NodeRecord, proto: NodeProto, remainder: bytes | None) -> NodeKey:
    """Return the key of a node; `remainder` is the result of `serialize_without_names`."""
    _, _, _, inputs, outputs = record
    return (_CACHE.get(remainder) or _read_key(record, proto, remainder), *arity_of(inputs, outputs))


def arity_of(inputs: tuple[str, ...], outputs: tuple[str, ...]) -> tuple[int, int, tuple[int, ...]]:
    """Return the number of inputs, the number of outputs, and the pattern of names of a node key."""
    names, count = inputs + outputs, len(inputs)
    # Outputs have unique names: only inputs can repeat.
    if "" not in names and (count < 2 or len(set(inputs)) == count):
        return count, len(outputs), ()
    numbers = {"": 0}
    return count, len(outputs), tuple([numbers.setdefault(name, len(numbers)) for name in names])


def has_small_tensors(proto: NodeProto) -> bool:
    """Return whether a node has attributes, and each is a tensor with few elements and no strings."""
    attributes = proto.attribute
    return bool(attributes) and all(each.type == TENSOR and _is_small(each.t) for each in attributes)


def _is_small(tensor: TensorProto) -> bool:
    return prod(tensor.dims[:]) <= MAX_KEY_ELEMENTS and not tensor.string_data


def is_small_key(key: NodeKey) -> bool:
    """Return whether a node key is small enough to be cached beyond one model."""
    return sum(map(len, key[0])) <= MAX_KEY_BYTES


def _read_key(record: NodeRecord, proto: NodeProto, remainder: bytes | None) -> OperatorKey:
    _, domain, op_type, _, _ = record
    result: OperatorKey = (op_type, domain, *serialized_attributes(proto))
    # A doc string or metadata is part of `remainder` and probably unique, so caching would not help.
    has_text = bool(proto.doc_string or getattr(proto, "metadata_props", ()))
    is_cacheable = remainder and len(remainder) <= MAX_KEY_BYTES and not has_text
    if remainder and is_cacheable and _is_complete(remainder, proto, result):
        if len(_CACHE) >= MAX_KEYS:
            _CACHE.clear()
        _CACHE[remainder] = result
    return result


def serialize_without_names(proto: NodeProto, names: tuple[str, ...]) -> bytes | None:
    """Serialize a NodeProto without its own name and the names of its inputs and outputs.

    Return `None` if the end of the names cannot be computed cheaply: names are long or not ASCII.

    Raises:
        InvalidModel: a name is not UTF-8 text.
    """
    text = require_utf8_names(names)
    length = len(text)
    if length > MAX_TWO_BYTE_LENGTH or not text.isascii():
        return None
    # Each name takes a tag byte and a length of one byte, or of two above MAX_ONE_BYTE_LENGTH.
    start = length + 2 * len(names)
    if length > MAX_ONE_BYTE_LENGTH:
        start += sum(len(each) > MAX_ONE_BYTE_LENGTH for each in names)
    raw: bytes = proto.SerializeToString()
    if raw[start : start + 1] == NAME_TAG:  # a comparison of bytes is faster than a call of `startswith`
        length = raw[start + 1]
        if length > MAX_ONE_BYTE_LENGTH:
            return None
        start += 2 + length
    return raw[start:]


def require_utf8_names(names: Iterable[str]) -> str:
    """Return the concatenation of all names, after checking that each is `str`, not bytes.

    Some releases of protobuf return a string field that is not valid UTF-8 as bytes.

    Raises:
        InvalidModel: a name is not UTF-8 text.
    """
    try:
        return "".join(names)
    except TypeError as error:
        raise not_utf8_error() from error


def _is_complete(remainder: bytes, proto: NodeProto, operator_key: OperatorKey) -> bool:
    """Return whether serialized bytes contain the whole operator key and no names.

    Protobuf does not guarantee that fields are serialized in the order of their numbers.
    """
    parsed = type(proto).FromString(remainder)
    has_names = parsed.input or parsed.output or parsed.name
    return not has_names and (parsed.op_type, parsed.domain, *serialized_attributes(parsed)) == operator_key
