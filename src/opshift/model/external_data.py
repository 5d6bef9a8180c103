"""Entries of tensors whose elements are in a separate file.

Source: ONNX's IR specification, "External Tensor Data".
"""

from typing import NamedTuple

from opshift.model.messages import TensorProto

EXTERNAL = 1
"""`TensorProto.data_location` of a tensor with elements in a separate file."""

MAX_DIGITS = 18
"""Longer numbers may not fit into 64 bits, and Python refuses to parse very long ones."""


class ExternalData(NamedTuple):
    """Values of the entries in `external_data`; a missing entry has an empty value.

    The location is relative to the model's folder. Offset and length are decimal numbers of bytes. The
    checksum is the SHA1 digest of the file.
    """

    location: str = ""
    offset: str = ""
    length: str = ""
    checksum: str = ""


def read_external_data(tensor: TensorProto) -> ExternalData:
    """Return the external data entries of a tensor; the last entry for a key wins.

    Raises:
        UnicodeDecodeError: a key or value is not UTF-8 text.
    """
    entries = {_text(each.key): _text(each.value) for each in tensor.external_data}
    return ExternalData(*(entries.get(key, "") for key in ExternalData._fields))


def byte_count(text: str) -> int | None:
    """Return an offset or length as a number; `None` if it is not a decimal number of at most 18 digits."""
    # int() also accepts signs, spaces, underscores and digits of other scripts.
    is_number = text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS
    return int(text) if is_number else None


def _text(value: str | bytes) -> str:
    """Return a string field, which some releases of protobuf return as bytes if it is not UTF-8."""
    return value if isinstance(value, str) else value.decode()
