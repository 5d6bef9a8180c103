"""`bump` raises `model_version` as `compare` requires, and only if the model changes."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

import opshift
from opshift import (
    UsageError,
    compare,
    convert,
    convert_file,
    convert_version,
    pack_version,
    plan_version,
    unpack_version,
)
from opshift.converter.bump import OriginalProperties

GOLDEN = Path(__file__).parents[1] / "golden" / "segmenter-9.onnx"
FUNCTION = '<domain: "f", opset_import: ["" : 13]> F (a) => (b) { b = Softmax (a) }'


def model(version: str, opset: int = 13, ir_version: int = 7, functions: str = "") -> onnx.ModelProto:
    nodes = "y = f.F (x)" if functions else "y = Softmax <axis = 1> (x)"
    imports = f'<ir_version: {ir_version}, opset_import: ["" : {opset}, "f" : 1]>'
    text = f"{imports} g (float[2, 3, 4] x) => (float[2, 3, 4] y) {{ {nodes} }} {functions}"
    found = onnx.parser.parse_model(text)
    found.model_version = pack_version(version)
    return found


@pytest.mark.parametrize(
    ("version", "target", "expected"),
    [
        ("1.2.3", 17, "1.3.0"),
        ("1.2.3", 9, "1.2.4"),
        ("1.2.3", 13, "1.2.3"),
        ("0.1.0", 17, "0.2.0"),
        ("40000.1.0", 17, "40000.2.0"),
        ("7", 17, "8"),
        ("7", 9, "8"),
        ("0", 17, "1"),
    ],
)
def test_raises_version_in_its_form(version: str, target: int, expected: str) -> None:
    old = model(version)
    new = convert_version(old, target, bump=True)
    assert unpack_version(new.model_version) == expected
    assert compare(old, new).enough
    assert compare(old, new).lowest == expected
    assert unpack_version(old.model_version) == version


def test_keeps_version_by_default() -> None:
    result = convert(model("1.2.3"), 17)
    assert unpack_version(result.model.model_version) == "1.2.3"
    assert result.report.model_version is None


def test_reports_new_version() -> None:
    assert convert(model("1.2.3"), 17, bump=True).report.model_version == "1.3.0"


def test_raises_version_for_a_newer_ir_version() -> None:
    assert convert(model("1.2.3"), ir_version=8, bump=True).report.model_version == "1.3.0"
    assert convert(model("1.2.3"), ir_version=6, bump=True).report.model_version == "1.2.4"


def test_initializers_that_become_inputs_require_minor() -> None:
    old = onnx.parser.parse_model(
        '<ir_version: 4, opset_import: ["" : 9]> g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> '
        "{ y = Add (x, w) }"
    )
    old.model_version = pack_version("1.2.3")
    new = convert_version(old, ir_version=3, bump=True)
    assert unpack_version(new.model_version) == "1.3.0" == compare(old, new).lowest


def test_keeps_no_copy_of_initializers() -> None:
    old = onnx.parser.parse_model(
        '<ir_version: 3, opset_import: ["" : 8]> g (float x, float[N] w) => (float[N] y) { y = Add (x, w) }'
    )
    old.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros(1 << 18, np.float32), "w"))
    tracemalloc.start()
    original = OriginalProperties.of(old)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 1 << 18
    assert not [*original.signature.changes(old)]


def test_raises_version_for_changes_in_functions() -> None:
    old = model("1.2.3", 17, 8, FUNCTION)
    assert convert(old, 17, bump=True).report.model_version == "1.3.0"
    assert convert(model("1.2.3", 13, 8, FUNCTION), 13, bump=True).report.model_version is None


INTERFACES: list[tuple[dict[str, Any], str | None]] = [
    ({"types": "float=double"}, "1.3.0"),
    ({"types": "float=double", "keep_interface": True}, "1.2.4"),
    ({"types": "bfloat16=float"}, None),
    ({"types": "float=float16", "allow": "approximate"}, "2.0.0"),
    ({"shapes": "x=2,3,4", "ir_version": 7}, None),
]


@pytest.mark.parametrize(("options", "expected"), INTERFACES, ids=str)
def test_raises_version_for_changed_element_types(options: dict[str, Any], expected: str | None) -> None:
    assert convert(model("1.2.3"), bump=True, **options).report.model_version == expected


@pytest.mark.parametrize(("size", "expected"), [("4", "2.0.0"), ("N", "1.2.4")])
def test_raises_version_for_declared_shapes(size: str, expected: str) -> None:
    old = model("1.2.3")
    old.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "M"
    new = convert_version(old, 13, shapes=f"x=2,3,{size}", bump=True)
    assert unpack_version(new.model_version) == expected == compare(old, new).lowest


def test_raises_version_for_recognized_operators() -> None:
    old = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 24]> g (float[N] x) => (float[N] y) '
        "{ s = Sigmoid (x) y = Mul (x, s) }"
    )
    old.model_version = pack_version("1.2.3")
    options: dict[str, Any] = {"recognize": ["Swish"], "bump": True}
    assert convert(old, 24, **options).report.model_version == "1.2.4"
    assert plan_version(old, 24, **options).model_version == "1.2.4"
    assert unpack_version(convert_version(old, 24, **options).model_version) == "1.2.4"


@pytest.mark.parametrize("version", ["4294967295", "65535.65535.4294967295"])
@pytest.mark.parametrize("target", [9, 17])
def test_refuses_the_highest_version_and_keeps_the_model(version: str, target: int) -> None:
    old = model(version)
    content = old.SerializeToString()
    with pytest.raises(UsageError, match="has no higher"):
        convert_version(old, target, bump=True, inplace=True)
    with pytest.raises(UsageError, match="has no higher"):
        plan_version(old, target, bump=True)
    assert old.SerializeToString() == content
    assert convert_version(old, 13, bump=True) == old


def test_raises_version_of_files_and_bytes(tmp_path: Path) -> None:
    data = model("1.2.3").SerializeToString()
    (tmp_path / "old.onnx").write_bytes(data)
    report = convert_file(tmp_path / "old.onnx", tmp_path / "new.onnx", 17, bump=True)
    assert report.model_version == "1.3.0"
    assert onnx.load(tmp_path / "new.onnx").model_version == pack_version("1.3.0")
    converted = opshift.ModelProto.FromString(convert_version(data, 17, bump=True))
    assert converted.model_version == pack_version("1.3.0")


@pytest.mark.parametrize("target", [9, 10, 11, 13, 17, 21])
def test_real_model_gets_the_required_version(target: int) -> None:
    assert compare(GOLDEN, convert_version(GOLDEN, target, bump=True)).enough
