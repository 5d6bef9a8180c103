"""Records of reversible conversions: damaged ones are reported, inapplicable entries are skipped."""

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
from support.execution import assert_equal, build, op_types, run

from opshift.converter.convert import convert_version, plan_version
from opshift.converter.plan.changes import METADATA_KEY
from opshift.converter.reversible.record import (
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


def downgraded_model() -> onnx.ModelProto:
    nodes = [helper.make_node("Gelu", ["x"], ["g"]), helper.make_node("HardSwish", ["g"], ["y"])]
    model = build(nodes, {"x": X}, ["y"], 20, ir_version=9)
    result: onnx.ModelProto = convert_version(model, 13, reversible=True)
    return result


def pack(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


def record_document() -> dict[str, Any]:
    result: dict[str, Any] = json.loads(
        zlib.decompress(base64.b64decode(downgraded_model().metadata_props[0].value))
    )
    return result


def with_record(text: str) -> onnx.ModelProto:
    model = downgraded_model()
    model.metadata_props[0].value = text
    return model


RECORD_TEXT = downgraded_model().metadata_props[0].value
DAMAGED = [
    ("empty", ""),
    ("not base64", "?" * 40),
    ("not ASCII", "ä" * 40),
    ("truncated", RECORD_TEXT[: len(RECORD_TEXT) // 2 // 4 * 4]),
    ("extended", RECORD_TEXT.rstrip("=") + "AAAA"),
    ("not compressed", base64.b64encode(b"{}").decode()),
    ("not JSON", pack(b"{")),
    ("list", pack(b"[]")),
    ("deeply nested", pack(b"[" * 100_000)),
    ("unknown format", pack(json.dumps({**record_document(), "format": 2}).encode())),
    ("without opsets", pack(json.dumps({"format": 1, "ir_version": [7, 7]}).encode())),
    ("too large after decompression", pack(b" " * (UNPACKED_BASE + UNPACKED_RATIO * 100_000))),
    ("many invalid parts", pack(b'{"parts":[' + b"[]," * 300_000 + b"[]]}")),
]


@pytest.mark.parametrize("text", [row[1] for row in DAMAGED], ids=[row[0] for row in DAMAGED])
def test_rejects_damaged_records(text: str) -> None:
    model = with_record(text)
    before = model.SerializeToString()
    for convert in (convert_version, plan_version):
        with pytest.raises(InvalidModel) as caught:
            convert(model, 20)
        assert METADATA_KEY in str(caught.value.place)
        assert "remove the entry" in caught.value.remedy
    assert model.SerializeToString() == before


def test_rejects_two_records() -> None:
    model = downgraded_model()
    model.metadata_props.add(key=METADATA_KEY, value=RECORD_TEXT)
    with pytest.raises(InvalidModel):
        convert_version(model, 20)


def entry_of(record: dict[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = record["parts"][0]["entries"][0]
    return entry


def edit_entry(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda record: entry_of(record).update(fields)


def node_hex(op_type: str, inputs: list[str], outputs: list[str], **attributes: Any) -> str:
    return str(helper.make_node(op_type, inputs, outputs, **attributes).SerializeToString().hex())


INAPPLICABLE: list[tuple[str, Callable[[dict[str, Any]], None]]] = [
    ("unknown operator", edit_entry(original=node_hex("Nothing", ["x"], ["g"]))),
    ("operator of a custom domain", edit_entry(original=node_hex("Gelu", ["x"], ["g"], domain="com.acme"))),
    ("unknown opset", edit_entry(opsets=[{"domain": "ai.onnx", "version": 10**30}])),
    ("opset below 1", edit_entry(opsets=[{"domain": "ai.onnx", "version": -1}])),
    ("opset before the operator", edit_entry(opsets=[{"domain": "ai.onnx", "version": 7}])),
    ("no opset", edit_entry(opsets=[])),
    ("domain without import", edit_entry(opsets=[{"domain": "com.acme", "version": 1}])),
    ("empty group", edit_entry(group=[])),
    ("different group", edit_entry(group=["y"])),
    ("duplicate node in the group", edit_entry(group=["g", "g"])),
    ("unknown node in the group", edit_entry(group=["absent"])),
    ("different digest", edit_entry(digest="00" * 8)),
    ("unknown input", edit_entry(original=node_hex("Gelu", ["absent"], ["g"]))),
    ("input produced later", edit_entry(original=node_hex("Gelu", ["y"], ["g"]))),
    ("output as input", edit_entry(original=node_hex("Gelu", ["g"], ["g"]))),
    ("value of the group as input", edit_entry(original=node_hex("Gelu", ["erf"], ["g"]))),
    ("no output of the group", edit_entry(original=node_hex("Gelu", ["x"], ["h"]))),
    ("output produced elsewhere", edit_entry(original=node_hex("Gelu", ["x"], ["g", "y"]))),
    ("extra input", edit_entry(original=node_hex("Gelu", ["x", "x"], ["g"]))),
    ("attribute of a different type", edit_entry(original=node_hex("Gelu", ["x"], ["g"], approximate=1))),
    ("different facts", edit_entry(inputs=[{"type": "int64"}])),
    ("too few facts", edit_entry(inputs=[])),
    (
        "unknown graph",
        lambda record: record["parts"][0].update(place=["graph", "y", "body", "0"]),
    ),
    (
        "unknown function",
        lambda record: record["parts"][0].update(place=["function", "a", "b", ""]),
    ),
    ("empty place", lambda record: record["parts"][0].update(place=[])),
    ("incomplete place", lambda record: record["parts"][0].update(place=["graph", "y"])),
    ("unknown constants", lambda record: record["parts"][0].update(constants=["absent"])),
]


@pytest.mark.parametrize("edit", [row[1] for row in INAPPLICABLE], ids=[row[0] for row in INAPPLICABLE])
def test_skips_inapplicable_entries(edit: Callable[[dict[str, Any]], None]) -> None:
    """The downgraded nodes are converted instead, with the same outputs."""
    record = record_document()
    edit(record)
    model = with_record(pack(json.dumps(record).encode()))
    result = convert_version(model, 20)
    assert "Gelu" not in op_types(result)
    assert_equal(run(result, {"x": X}), run(model, {"x": X}))


def test_rejects_entries_without_a_node() -> None:
    record = record_document()
    entry_of(record)["original"] = "ff"
    with pytest.raises(InvalidModel):
        convert_version(with_record(pack(json.dumps(record).encode())), 20)


def test_converts_models_without_a_record() -> None:
    model = downgraded_model()
    del model.metadata_props[:]
    assert "Gelu" not in op_types(convert_version(model, 20))


@pytest.mark.parametrize("name", ["weight", "w" * 5_000_000], ids=["small", "highly compressible"])
def test_reads_written_records(name: str) -> None:
    model = ModelProto()
    record = ConversionRecord(format=1, ir_version=(9, 7), opsets=(Opset(domain=name, version=20),))
    for _ in range(2):
        write_record(model, record)
        assert len(model.metadata_props) == 1
        assert read_record(model) == record
    write_record(model, None)
    assert read_record(model) is None
