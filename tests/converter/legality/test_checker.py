"""What ONNX's own checker rejects for a reason of the specification is rejected here too."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import onnx
import pytest
from google.protobuf.descriptor import FieldDescriptor
from hypothesis import given, settings
from hypothesis import strategies as st
from support.legality import graphs, models, nodes, others, tensors
from support.legality.case import Case, parsed

from opshift.converter.legality.check import check
from opshift.converter.legality.findings import Level

CASES = (*models.CASES, *graphs.CASES, *nodes.CASES, *tensors.CASES, *others.CASES)
MODELS = tuple(sorted({case.keeping().SerializeToString(deterministic=True) for case in CASES}))
TEXTS = (
    "x",
    "y",
    "a",
    "b",
    "w",
    "",
    "F",
    "acme",
    "ai.onnx.ml",
    "Relu",
    "Add",
    "axis",
    "to",
    "body",
    "location",
)
NUMBERS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 16, 21, 27, -1, 100, 2**31 - 1)
BYTES = (b"", b"abc", bytes(8), b"\xff\xfe")
SPELLING = "for domain 'ai.onnx'"
"""The checker holds `ai.onnx` for another domain than the empty one; here they are one."""


def rejection(model: Any) -> str:
    """Why ONNX's checker rejects a model; empty if it does not."""
    try:
        onnx.checker.check_model(onnx.ModelProto.FromString(model.SerializeToString()))
    except Exception as error:
        return str(error)
    return ""


def has_errors(model: Any) -> bool:
    return any(each.level is Level.ERROR for each in check(model, folder="."))


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_what_the_checker_rejects_is_rejected(case: Case) -> None:
    model = case.breaking()
    assert not rejection(model) or has_errors(model), rejection(model)


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_what_keeps_a_rule_is_no_worse_for_the_checker(case: Case) -> None:
    model = case.keeping()
    reason = rejection(model)
    assert not reason or "should be stored in" in reason, reason


def test_the_default_domain_has_two_spellings() -> None:
    model = parsed("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    model.graph.node[0].domain = "ai.onnx"
    assert SPELLING in rejection(model)
    assert check(model) == ()


def messages(message: Any) -> Iterator[Any]:
    """A message and those in it."""
    yield message
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for each in value if field.is_repeated else [value]:
                yield from messages(each)


def mutate(model: Any, chance: random.Random) -> None:
    """Change one field somewhere in a model."""
    message = chance.choice(list(messages(model)))
    there = [field for field, _ in message.ListFields()]
    field = chance.choice(there if there and chance.random() < 0.75 else message.DESCRIPTOR.fields)
    if chance.random() < 0.3:
        message.ClearField(field.name)
    elif field.is_repeated:
        _mutate_list(getattr(message, field.name), field, chance)
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        getattr(message, field.name).SetInParent()
    else:
        setattr(message, field.name, _value(field, chance))


def _mutate_list(values: Any, field: Any, chance: random.Random) -> None:
    if values and chance.random() < 0.4:
        del values[chance.randrange(len(values))]
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        values.add().MergeFrom(chance.choice(values) if values and chance.random() < 0.7 else values.add())
    else:
        values.append(_value(field, chance))


def _value(field: Any, chance: random.Random) -> Any:
    if field.type == FieldDescriptor.TYPE_STRING:
        return chance.choice(TEXTS)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return chance.choice(BYTES)
    if field.type == FieldDescriptor.TYPE_ENUM:
        return chance.choice([each.number for each in field.enum_type.values])
    return chance.choice(NUMBERS)


@settings(max_examples=300, deadline=None)
@given(data=st.sampled_from(MODELS), seed=st.integers(0, 2**32), count=st.integers(1, 3))
def test_whatever_is_changed_the_checker_finds_no_more(data: bytes, seed: int, count: int) -> None:
    """And no change, however odd, makes the check fail."""
    model = onnx.ModelProto.FromString(data)
    chance = random.Random(seed)
    for _ in range(count):
        mutate(model, chance)
    has_found = has_errors(model)
    reason = rejection(model)
    assert not reason or has_found or SPELLING in reason, reason
