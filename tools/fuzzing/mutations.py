"""Mutations of bytes, texts and models."""

from __future__ import annotations

from random import Random
from typing import Any

from opshift.model.messages import ModelProto

SIZES = (-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 7, 8, 100, 2**31, 10**9, 2**62, 2**63 - 1)
"""Integers at limits that code may depend on."""

FLOATS = (0.0, -0.0, 1.0, -1.0, 1e30, float("inf"), float("-inf"), float("nan"))

TEXTS = ("", "x", "y", "Relu", "Loop", "ai.onnx", "com.acme", "..", "a / b", "\0", "\x1b[31m", "é" * 9, "N")

TOKENS = (
    b"{}", b"[]", b"null", b"true", b"- ", b": ", b"\t", b"&a *a", b"*a", b"!!python/object:os.system",
    b"<<: ", b"1e999", b"2026-13-45", b"0x", b"99999999999999999999", b"[" * 500, b"{a: " * 200, b"..",
    b"\xff",
)  # fmt: skip
"""Texts that YAML and JSON parsers treat specially."""


def mutate_bytes(content: bytes, random: Random) -> bytes:
    """Flip, insert, delete, repeat or cut bytes."""
    data = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 5))):
        position = random.randrange(len(data) + 1)
        end = min(len(data), position + random.choice((1, 2, 8, 64)))
        kind = random.randrange(6)
        if kind == 0 and data:
            data[position % len(data)] ^= 1 << random.randrange(8)
        elif kind == 1:
            data[position:position] = random.randbytes(random.choice((1, 2, 8)))
        elif kind == 2:
            del data[position:end]
        elif kind == 3:
            data[position:position] = data[position:end] * random.choice((1, 2, 50))
        elif kind == 4:
            data[position:end] = random.choice(TOKENS)
        elif random.random() < 0.3:
            del data[position:]
    return bytes(data)


def mutate_text(content: bytes, random: Random) -> bytes:
    """Replace, repeat, delete or swap lines and words, or mutate bytes."""
    if random.random() < 0.3:
        return mutate_bytes(content, random)
    lines = content.split(b"\n")
    for _ in range(random.choice((1, 1, 2, 4))):
        position, other = random.randrange(len(lines)), random.randrange(len(lines))
        kind = random.randrange(5)
        if kind == 0:
            key, colon, _ = lines[position].partition(b": ")
            lines[position] = key + colon + random.choice((*TOKENS, str(random.choice(SIZES)).encode()))
        elif kind == 1:
            lines[position] = lines[other]
        elif kind == 2 and len(lines) > 1:
            del lines[position]
        elif kind == 3:
            lines[position] = b"  " + lines[position]
        else:
            lines.insert(position, random.choice(TOKENS))
    return b"\n".join(lines)


def mutate_model(content: bytes, random: Random) -> bytes:
    """Change fields of the messages of a model, or mutate its bytes."""
    if random.random() < 0.15:
        return mutate_bytes(content, random)
    model = ModelProto.FromString(content)
    try:
        for _ in range(random.choice((1, 1, 1, 2, 3, 6))):
            _mutate_message(random.choice(messages(model)), model, random)
    except UnicodeDecodeError:  # the content, which may be mutated already, has a name that is not UTF-8
        return mutate_bytes(content, random)
    return model.SerializeToString()


def messages(root: Any) -> list[Any]:
    """Return a message and all messages in it."""
    found = [root]
    for message in found:
        for field, value in message.ListFields():
            if field.message_type is not None:
                found += value if is_repeated(value) else [value]
    return found


def is_repeated(value: Any) -> bool:
    """Return whether the value of a field is a list."""
    return hasattr(value, "__len__") and not isinstance(value, str | bytes)


def _mutate_message(message: Any, model: Any, random: Random) -> None:
    """Change one field of a message, or copy another message of the same class over it."""
    if random.random() < 0.15:
        others = [each for each in messages(model) if type(each) is type(message) and each is not message]
        if others:
            copy = type(message).FromString(random.choice(others).SerializeToString())
            message.CopyFrom(copy)
            return
    field = random.choice(message.DESCRIPTOR.fields)
    value = getattr(message, field.name)
    if random.random() < 0.1:
        message.ClearField(field.name)
    elif is_repeated(value):
        _mutate_repeated(value, field, model, random)
    elif field.message_type is None:
        setattr(message, field.name, _any_value(value, field, model, random))
    elif random.random() < 0.3:
        value.SetInParent()


def _mutate_repeated(values: Any, field: Any, model: Any, random: Random) -> None:
    position = random.randrange(len(values)) if len(values) else 0
    kind = random.randrange(4)
    if kind == 0 and len(values):
        del values[position]
    elif kind == 1 and len(values) > 1:
        items = list(values)
        random.shuffle(items)
        copies = (
            [type(each).FromString(each.SerializeToString()) for each in items]
            if field.message_type
            else items
        )
        del values[:]
        values.extend(copies)
    elif field.message_type is not None:
        if len(values) and kind == 2:
            values.add().CopyFrom(values[position])
        elif len(values) < 100:
            values.add()
    elif len(values) and kind == 2:
        values[position] = _any_value(values[position], field, model, random)
    else:
        values.append(_any_value(None, field, model, random))


def _any_value(value: Any, field: Any, model: Any, random: Random) -> Any:
    kind = field.cpp_type
    if kind in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return random.choice(FLOATS)
    if kind == field.CPPTYPE_STRING:
        is_bytes = field.type == field.TYPE_BYTES
        if is_bytes and value and random.random() < 0.5:
            return mutate_bytes(value, random)
        names = [name for node in model.graph.node for name in (*node.input, *node.output)]
        text = random.choice((*TEXTS, *names[:200]))
        return text.encode() if is_bytes else text
    if kind == field.CPPTYPE_BOOL:
        return random.random() < 0.5
    if kind == field.CPPTYPE_ENUM:
        return random.choice(field.enum_type.values).number
    number = (value or 0) + random.choice((-1, 1)) if random.random() < 0.4 else random.choice(SIZES)
    low, high = {
        field.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
        field.CPPTYPE_UINT32: (0, 2**32 - 1),
        field.CPPTYPE_UINT64: (0, 2**64 - 1),
    }.get(kind, (-(2**63), 2**63 - 1))
    return min(max(number, low), high)
