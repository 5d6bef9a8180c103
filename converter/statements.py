"""What nodes say but for names: nodes that say the same are alike.

To ask for attributes one by one takes several times as long as to have the whole node as bytes. The names
come first there, so what lies behind them says the rest.
"""

from __future__ import annotations

from typing import Any

from opshift.adapters.node import attribute_bytes
from opshift.converter.lines import Line
from opshift.converter.soundness import require_text

Statement = tuple[Any, ...]
"""A node's op_type and domain, and its attributes as bytes."""
Outline = tuple[Statement, int, int, tuple[bool, ...]]
"""A statement, how many inputs and outputs the node has, and which are there if any is left out."""
MOST, LARGEST = 1024, 1024
"""How many statements are remembered, and of how many bytes."""
_KNOWN: dict[bytes | None, Statement] = {}
"""By what is left of a node without names, what it says."""
NAME = b"\x1a"
"""The tag of `NodeProto.name`, which follows the names of inputs and outputs."""
ONE_BYTE, TWO_BYTES = 0x7F, 0x3FFF
"""The greatest lengths that are written as one byte and as two."""


def statement_of(line: Line, proto: Any, names: tuple[str, ...]) -> Statement:
    """What a node says, whose inputs and outputs have these names.

    Raises:
        InvalidModel: a name is no text.
    """
    rest = without_names(proto, names)
    found = _KNOWN.get(rest)
    return _read(line, proto, rest) if found is None else found


def outline_of(line: Line, proto: Any, names: tuple[str, ...]) -> Outline:
    """All that a node says but for its names; as `statement_of`."""
    _, _, _, inputs, outputs = line
    present = tuple(map(bool, names)) if "" in names else ()
    return statement_of(line, proto, names), len(inputs), len(outputs), present


def is_short(outline: Outline) -> bool:
    """Whether a node says little, so that it may be remembered."""
    return sum(map(len, outline[0])) <= LARGEST


def _read(line: Line, proto: Any, rest: bytes | None) -> Statement:
    _, domain, op_type, _, _ = line
    found: Statement = (op_type, domain, *attribute_bytes(proto))
    if rest and len(rest) <= LARGEST and not _has_text(proto) and _says(rest, proto, found):
        if len(_KNOWN) >= MOST:
            _KNOWN.clear()
        _KNOWN[rest] = found
    return found


def without_names(proto: Any, names: tuple[str, ...]) -> bytes | None:
    """A NodeProto as bytes, without its name and those of its inputs and outputs, which are `names`.

    `None` if it cannot be told at once where they end.

    Raises:
        InvalidModel: a name is no text.
    """
    text = require_text(names)
    length = len(text)
    if length > TWO_BYTES or not text.isascii():
        return None
    start = length + 2 * len(names)
    if length > ONE_BYTE:
        start += sum(len(each) > ONE_BYTE for each in names)
    raw: bytes = proto.SerializeToString()
    if raw[start : start + 1] == NAME:
        length = raw[start + 1]
        if length > ONE_BYTE:
            return None
        start += 2 + length
    return raw[start:]


def _has_text(proto: Any) -> bool:
    """Whether a node is described, most likely as no other."""
    return bool(proto.doc_string or getattr(proto, "metadata_props", ()))


def _says(rest: bytes, proto: Any, statement: Statement) -> bool:
    """Whether bytes hold all of a statement and no more names: no law has fields written in their order."""
    read = type(proto).FromString(rest)
    has_names = read.input or read.output or read.name
    return not has_names and (read.op_type, read.domain, *attribute_bytes(read)) == statement
