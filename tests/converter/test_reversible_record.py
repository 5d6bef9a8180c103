"""The record of reversible conversions: what is not as it was written is told, or does no harm."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.running import assert_equal, build, op_types, run

from opshift.converter.convert import convert_version, plan_version
from opshift.converter.reversible.record import (
    METADATA_KEY,
    UNPACKED_BASE,
    UNPACKED_RATIO,
    ConversionRecord,
    Opset,
    read_record,
    write_record,
)
from opshift.model.errors import InvalidModel
from opshift.model.messages import ModelProto

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


def lowered() -> onnx.ModelProto:
    nodes = [helper.make_node("Gelu", ["x"], ["g"]), helper.make_node("HardSwish", ["g"], ["y"])]
    model = build(nodes, {"x": X}, ["y"], 20, ir_version=9)
    result: onnx.ModelProto = convert_version(model, 13, reversible=True)
    return result


def packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(lowered().metadata_props[0].value)))
    return found


def with_text(text: str) -> onnx.ModelProto:
    model = lowered()
    model.metadata_props[0].value = text
    return model


TEXT = lowered().metadata_props[0].value
DAMAGED = [
    ("empty", ""),
    ("no base64", "?" * 40),
    ("not ASCII", "ä" * 40),
    ("cut off", TEXT[: len(TEXT) // 2 // 4 * 4]),
    ("longer than it was", TEXT.rstrip("=") + "AAAA"),
    ("not compressed", base64.b64encode(b"{}").decode()),
    ("no JSON", packed(b"{")),
    ("a list", packed(b"[]")),
    ("deep", packed(b"[" * 100_000)),
    ("of another format", packed(json.dumps({**document(), "format": 2}).encode())),
    ("without opsets", packed(json.dumps({"format": 1, "ir_version": [7, 7]}).encode())),
    ("larger than a short text may be", packed(b" " * (UNPACKED_BASE + UNPACKED_RATIO * 100_000))),
    ("full of wrong parts", packed(b'{"parts":[' + b"[]," * 300_000 + b"[]]}")),
]


@pytest.mark.parametrize("text", [row[1] for row in DAMAGED], ids=[row[0] for row in DAMAGED])
def test_a_damaged_record_is_told_and_the_model_left_alone(text: str) -> None:
    model = with_text(text)
    before = model.SerializeToString()
    for convert in (convert_version, plan_version):
        with pytest.raises(InvalidModel) as caught:
            convert(model, 20)
        assert METADATA_KEY in str(caught.value.place)
        assert "remove the entry" in caught.value.remedy
    assert model.SerializeToString() == before


def test_two_records_are_one_too_many() -> None:
    model = lowered()
    model.metadata_props.add(key=METADATA_KEY, value=TEXT)
    with pytest.raises(InvalidModel):
        convert_version(model, 20)


def entry_of(record: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = record["parts"][0]["entries"][0]
    return found


def changed(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda record: entry_of(record).update(fields)


def proto(op_type: str, inputs: list[str], outputs: list[str], **stated: Any) -> str:
    return str(helper.make_node(op_type, inputs, outputs, **stated).SerializeToString().hex())


UNFIT: list[tuple[str, Callable[[dict[str, Any]], None]]] = [
    ("an operator that there is not", changed(original=proto("Nothing", ["x"], ["g"]))),
    ("an operator of another domain", changed(original=proto("Gelu", ["x"], ["g"], domain="com.acme"))),
    ("an opset that there is not", changed(opsets=[{"domain": "ai.onnx", "version": 10**30}])),
    ("an opset below 1", changed(opsets=[{"domain": "ai.onnx", "version": -1}])),
    ("an opset before the operator", changed(opsets=[{"domain": "ai.onnx", "version": 7}])),
    ("no opset", changed(opsets=[])),
    ("a domain that is not imported", changed(opsets=[{"domain": "com.acme", "version": 1}])),
    ("no nodes in its place", changed(group=[])),
    ("other nodes in its place", changed(group=["y"])),
    ("the same node twice", changed(group=["g", "g"])),
    ("nodes that there are not", changed(group=["absent"])),
    ("another digest", changed(digest="00" * 8)),
    ("an input that there is not", changed(original=proto("Gelu", ["absent"], ["g"]))),
    ("an input that is made later", changed(original=proto("Gelu", ["y"], ["g"]))),
    ("its own output as input", changed(original=proto("Gelu", ["g"], ["g"]))),
    ("a value of its group as input", changed(original=proto("Gelu", ["erf"], ["g"]))),
    ("no output of its group", changed(original=proto("Gelu", ["x"], ["h"]))),
    ("an output that is made elsewhere", changed(original=proto("Gelu", ["x"], ["g", "y"]))),
    ("more inputs than the operator has", changed(original=proto("Gelu", ["x", "x"], ["g"]))),
    ("an attribute of another type", changed(original=proto("Gelu", ["x"], ["g"], approximate=1))),
    ("other facts", changed(inputs=[{"type": "int64"}])),
    ("too few facts", changed(inputs=[])),
    (
        "a graph that there is not",
        lambda record: record["parts"][0].update(place=["graph", "y", "body", "0"]),
    ),
    (
        "a function that there is not",
        lambda record: record["parts"][0].update(place=["function", "a", "b", ""]),
    ),
    ("no place", lambda record: record["parts"][0].update(place=[])),
    ("half a place", lambda record: record["parts"][0].update(place=["graph", "y"])),
    ("constants that there are not", lambda record: record["parts"][0].update(constants=["absent"])),
]


@pytest.mark.parametrize("change", [row[1] for row in UNFIT], ids=[row[0] for row in UNFIT])
def test_an_entry_that_does_not_fit_is_passed_over(change: Callable[[dict[str, Any]], None]) -> None:
    """The node is converted as it is, and the result has the same numbers."""
    record = document()
    change(record)
    model = with_text(packed(json.dumps(record).encode()))
    result = convert_version(model, 20)
    assert "Gelu" not in op_types(result)
    assert_equal(run(result, {"x": X}), run(model, {"x": X}))


def test_an_entry_that_holds_no_node_is_told() -> None:
    record = document()
    entry_of(record)["original"] = "ff"
    with pytest.raises(InvalidModel):
        convert_version(with_text(packed(json.dumps(record).encode())), 20)


def test_without_the_record_the_model_is_converted_as_it_is() -> None:
    model = lowered()
    del model.metadata_props[:]
    assert "Gelu" not in op_types(convert_version(model, 20))


@pytest.mark.parametrize("name", ["weight", "w" * 5_000_000], ids=["small", "that packs too well"])
def test_a_record_is_read_as_it_was_written(name: str) -> None:
    model = ModelProto()
    record = ConversionRecord(format=1, ir_version=(9, 7), opsets=(Opset(domain=name, version=20),))
    for _ in range(2):
        write_record(model, record)
        assert len(model.metadata_props) == 1
        assert read_record(model) == record
    write_record(model, None)
    assert read_record(model) is None
