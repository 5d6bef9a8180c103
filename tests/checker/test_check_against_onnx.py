"""Models that ONNX's own checker rejects under the specification are rejected here as well."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import onnx
import pytest
from google.protobuf.descriptor import FieldDescriptor
from hypothesis import given, settings
from hypothesis import strategies as st
from support.checker_cases import features, graphs, models, nodes, shapes, tensors
from support.checker_cases.case import Case, parse_text

from opshift.checker.check import check
from opshift.checker.findings import Level

pytestmark = pytest.mark.every_case

CASES = (
    *models.CASES,
    *graphs.CASES,
    *nodes.CASES,
    *shapes.CASES,
    *tensors.CASES,
    *features.CASES,
)
MODELS = tuple(sorted({case.keeping().SerializeToString(deterministic=True) for case in CASES}))
STRINGS = (
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
DOMAIN_SPELLING = "for domain 'ai.onnx'"
"""ONNX's checker distinguishes `ai.onnx` from the empty domain; here they are equal."""


def rejection(model: Any) -> str:
    """Return the error of ONNX's checker, or an empty string if it accepts the model."""
    try:
        onnx.checker.check_model(onnx.ModelProto.FromString(model.SerializeToString()))
    except Exception as error:
        return str(error)
    return ""


def has_errors(model: Any) -> bool:
    return any(each.level is Level.ERROR for each in check(model, folder="."))


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_rejects_models_that_onnx_checker_rejects(case: Case) -> None:
    model = case.breaking()
    assert not rejection(model) or has_errors(model), rejection(model)


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_onnx_checker_accepts_valid_models(case: Case) -> None:
    model = case.keeping()
    reason = rejection(model)
    assert not reason or "should be stored in" in reason, reason


def test_accepts_both_spellings_of_default_domain() -> None:
    model = parse_text("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    model.graph.node[0].domain = "ai.onnx"
    assert DOMAIN_SPELLING in rejection(model)
    assert check(model) == ()


def messages(message: Any) -> Iterator[Any]:
    """Yield a message and all messages nested in it."""
    yield message
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for each in value if field.is_repeated else [value]:
                yield from messages(each)


def mutate(model: Any, rng: random.Random) -> None:
    """Change one random field of a model."""
    message = rng.choice(list(messages(model)))
    set_fields = [field for field, _ in message.ListFields()]
    field = rng.choice(set_fields if set_fields and rng.random() < 0.75 else message.DESCRIPTOR.fields)
    if rng.random() < 0.3:
        message.ClearField(field.name)
    elif field.is_repeated:
        _mutate_list(getattr(message, field.name), field, rng)
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        getattr(message, field.name).SetInParent()
    else:
        setattr(message, field.name, _value(field, rng))


def _mutate_list(values: Any, field: Any, rng: random.Random) -> None:
    if values and rng.random() < 0.4:
        del values[rng.randrange(len(values))]
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        values.add().MergeFrom(rng.choice(values) if values and rng.random() < 0.7 else values.add())
    else:
        values.append(_value(field, rng))


def _value(field: Any, rng: random.Random) -> Any:
    if field.type == FieldDescriptor.TYPE_STRING:
        return rng.choice(STRINGS)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return rng.choice(BYTES)
    if field.type == FieldDescriptor.TYPE_ENUM:
        return rng.choice([each.number for each in field.enum_type.values])
    return rng.choice(NUMBERS)


@pytest.mark.full
@settings(max_examples=300)
@given(data=st.sampled_from(MODELS), seed=st.integers(0, 2**32), count=st.integers(1, 3))
def test_rejects_mutations_that_onnx_checker_rejects(data: bytes, seed: int, count: int) -> None:
    """The check also never raises, whatever the mutation."""
    model = onnx.ModelProto.FromString(data)
    rng = random.Random(seed)
    for _ in range(count):
        mutate(model, rng)
    is_rejected = has_errors(model)
    reason = rejection(model)
    assert not reason or is_rejected or DOMAIN_SPELLING in reason, reason
