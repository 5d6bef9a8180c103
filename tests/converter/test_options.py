"""Parsing and validation of the options of a conversion."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import FrozenInstanceError
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.execution import build

from opshift.converter.convert import convert, convert_version, plan_version
from opshift.converter.options import ALLOW_VALUES, Options, StoredFlags, TargetLike, read_allow, read_target
from opshift.converter.streaming.convert_file import convert_file
from opshift.model.errors import OpshiftError, UsageError
from opshift.registry.errors import UnknownDomain, UnknownOpset
from opshift.registry.registry import default_registry


def test_flags_are_the_options_that_are_on_or_off() -> None:
    fields = {each.name: each.type for each in dataclasses.fields(Options)}
    assert StoredFlags.__annotations__.keys() == {name for name, kind in fields.items() if kind == "bool"} - {
        "inplace"
    }


def test_reads_one_value_and_several() -> None:
    assert read_allow("approximate") == {"approximate"}
    assert read_allow(ALLOW_VALUES) == set(ALLOW_VALUES)
    assert read_allow(()) == set()


def test_reads_an_iterator() -> None:
    def values() -> Iterator[str]:
        yield "approximate"
        yield "drop-training"

    assert read_allow(values()) == {"approximate", "drop-training"}


@pytest.mark.parametrize(
    ("allow", "reason"),
    [
        ("aproximate", "unknown allow value 'aproximate'; did you mean 'approximate'?"),
        (
            ["approximate", "drop-train"],
            "unknown allow value 'drop-train'; did you mean 'drop-training'?",
        ),
        ("magic", "unknown allow value 'magic'"),
        ("", "unknown allow value ''"),
    ],
)
def test_suggests_a_similar_allow_value(allow: str | list[str], reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_allow(allow)
    assert caught.value.reason == reason
    assert caught.value.remedy == (
        "the allowed values are approximate, assume-nonnegative, assume-nonempty, large, clamp, "
        "interface-types, drop-metadata, drop-training, drop-devices"
    )


@pytest.mark.parametrize("name", ["allow", "recognize", "shapes", "types", "without"])
@pytest.mark.parametrize("value", [5, b"x", [None], [[1]], {1: 2}], ids=repr)
def test_refuses_arguments_of_other_types(name: str, value: Any) -> None:
    with pytest.raises(UsageError):
        Options.of(17, **{name: value})


def test_refuses_lists_of_element_types() -> None:
    types: Any = {"float": ["double"]}
    with pytest.raises(UsageError, match="is not an element type"):
        Options.of(17, types=types)


@pytest.mark.parametrize(
    ("name", "runtime", "opset", "ir_version"),
    [
        ("openvino-2026.4.1", "openvino-2026.4.1", 28, None),
        ("onnxruntime-cuda-1.14", "onnxruntime-cuda-1.14.1", 18, 8),
        # a release of the same name is listed in releases.yaml, with the same opset
        ("onnxruntime-1.31", "onnxruntime-1.31", 26, 13),
    ],
)
def test_runtimes_are_targets(name: str, runtime: str, opset: int, ir_version: int | None) -> None:
    target = Options.of(name).target
    assert (target.opsets["ai.onnx"], target.ir_version) == (opset, ir_version)
    assert target.runtimes == (runtime,)


@pytest.mark.parametrize("function", [convert, convert_version, plan_version])
def test_rejects_options_before_reading_the_model(function: object) -> None:
    assert callable(function)
    with pytest.raises(UsageError, match="did you mean 'approximate'"):
        function("missing.onnx", 17, allow="aproximate")


def test_rejects_options_before_reading_the_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'approximate'"):
        convert_file("missing.onnx", tmp_path / "out.onnx", 17, allow="aproximate")  # type: ignore[arg-type]


def test_options_are_frozen_and_complete() -> None:
    options = Options.of({"": 17}, allow="approximate", ir_version="keep", check=True)
    assert options.target.opsets == {"ai.onnx": 17}
    assert options.target.requested_ir_version == "keep"
    assert options.registry is default_registry()
    assert options.allow == {"approximate"}
    assert (options.check, options.reversible, options.inplace) == (True, False, False)
    with pytest.raises(FrozenInstanceError):
        options.check = False  # type: ignore[misc]


ONNX = "ai.onnx"
ML = "ai.onnx.ml"
TRAINING = "ai.onnx.preview.training"

READ: list[tuple[str, TargetLike, Mapping[str, int], int | None]] = [
    ("number", 17, {ONNX: 17}, None),
    ("first opset", 1, {ONNX: 1}, None),
    (
        "newest opset",
        default_registry().newest_opset(ONNX),
        {ONNX: default_registry().newest_opset(ONNX)},
        None,
    ),
    ("integer of numpy", np.int64(17), {ONNX: 17}, None),  # type: ignore[list-item]
    ("unsigned integer of numpy", np.uint8(17), {ONNX: 17}, None),  # type: ignore[list-item]
    ("mapping to an integer of numpy", {"": np.int32(17)}, {ONNX: 17}, None),
    ("list of integers of numpy", [np.int64(17)], {ONNX: 17}, None),  # type: ignore[list-item]
    ("number as a string", "17", {ONNX: 17}, None),
    ("number with white space", " 17\n", {ONNX: 17}, None),
    ("mapping", {"": 17, ML: 3}, {ONNX: 17, ML: 3}, None),
    ("immutable mapping", MappingProxyType({"ai.onnx": 17}), {ONNX: 17}, None),
    ("both names of the default domain", {"": 17, "ai.onnx": 17}, {ONNX: 17}, None),
    ("domain", "ai.onnx.ml=3", {ML: 3}, None),
    ("preview domain", "ai.onnx.preview.training=1", {TRAINING: 1}, None),
    ("default domain", "ai.onnx=17", {ONNX: 17}, None),
    ("default domain without its name", "=17", {ONNX: 17}, None),
    ("release", "onnx-1.12", {ONNX: 17, ML: 3, TRAINING: 1}, 8),
    ("patch release", "onnx-1.12.1", {ONNX: 17, ML: 3, TRAINING: 1}, 8),
    ("patch release with different opsets", "onnx-1.1.2", {ONNX: 6, ML: 1}, 3),
    ("runtime", "onnxruntime-1.14", {ONNX: 18, ML: 3}, 8),
    ("patch release of a runtime", "onnxruntime-1.14.1", {ONNX: 18, ML: 3}, 8),
    ("another program", "tensorrt-8.6", {ONNX: 17}, None),
    ("another program with an IR version", "windowsml-1809", {ONNX: 7, ML: 1}, 3),
    (
        "two programs with different IR versions",
        ["onnx-1.12", "onnxruntime-1.13"],
        {ONNX: 17, ML: 3, TRAINING: 1},
        8,
    ),
    ("strings", ["17", "ai.onnx.ml=3"], {ONNX: 17, ML: 3}, None),
    ("release and an equal opset", ["onnx-1.12", "17"], {ONNX: 17, ML: 3, TRAINING: 1}, 8),
    ("iterator", iter(("ai.onnx.ml=3", "17")), {ML: 3, ONNX: 17}, None),
]


@pytest.mark.parametrize(
    ("target", "opsets", "ir_version"), [row[1:] for row in READ], ids=[row[0] for row in READ]
)
def test_reads_targets(target: TargetLike, opsets: Mapping[str, int], ir_version: int | None) -> None:
    parsed = read_target(target, default_registry())
    assert parsed.opsets == opsets
    assert {type(each) for each in parsed.opsets.values()} == {int}
    assert parsed.ir_version == ir_version


LIMITS: list[tuple[str, TargetLike, dict[str, int], bool, dict[str, int]]] = [
    ("older opset", "onnxruntime-1.14", {ONNX: 13}, False, {ONNX: 13, ML: 3}),
    ("newer opset", "onnxruntime-1.14", {ONNX: 21}, False, {ONNX: 18, ML: 3}),
    ("equal opset", "onnxruntime-1.14", {ONNX: 18}, False, {ONNX: 18, ML: 3}),
    ("two domains", "onnxruntime-1.14", {ONNX: 21, ML: 2}, False, {ONNX: 18, ML: 2}),
    ("exact", "onnxruntime-1.14", {ONNX: 13}, True, {ONNX: 18, ML: 3}),
    ("release of ONNX", "onnx-1.13", {ONNX: 13}, False, {ONNX: 18, ML: 3, TRAINING: 1}),
    ("two programs", ["onnxruntime-1.20", "tensorrt-8.6"], {ONNX: 21}, False, {ONNX: 17, ML: 5}),
    ("program and an opset", ["onnxruntime-1.20", "15"], {ONNX: 13, ML: 2}, False, {ONNX: 15, ML: 2}),
    ("unlisted release", "tensorrt-10.5", {ONNX: 22}, False, {ONNX: 20}),
    ("package of a program", "onnxruntime-web-1.14", {ONNX: 21}, False, {ONNX: 18, ML: 3}),
]


@pytest.mark.parametrize(
    ("target", "imports", "is_exact", "opsets"), [row[1:] for row in LIMITS], ids=[row[0] for row in LIMITS]
)
def test_programs_are_upper_limits(
    target: TargetLike, imports: Mapping[str, int], is_exact: bool, opsets: Mapping[str, int]
) -> None:
    found = Options.of(target, exact=is_exact).target.for_imports(imports)
    assert found.opsets == opsets


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("tensorrt-10.7", "tensorrt-10.6"),
        ("tensorrt-11", "tensorrt-11.1"),
        ("tensorrt-11.2", "tensorrt-11.1"),
        ("tensorrt-9", "tensorrt-9.0"),
        ("openvino-2022.2", "openvino-2022.1"),
        ("rknn-2.3.2", "rknn-1.6"),
        ("openvino-2027.0", "openvino-2026.4.1"),
        ("tract-1.0", "tract-0.23.9"),
        ("onnxruntime-1.99", "onnxruntime-1.32.0"),
        ("onnxruntime-web-1.99", "onnxruntime-web-1.32"),
    ],
)
def test_the_nearest_release_stands_for_an_unlisted_one(name: str, nearest: str) -> None:
    found, known = Options.of(name).target, Options.of(nearest).target
    assert (found.opsets, found.ir_version, found.runtimes) == (
        known.opsets,
        known.ir_version,
        known.runtimes,
    )
    assert found.notes == (f"{name} is not listed: the target is the nearest release, {nearest}",)


def test_the_report_says_which_opset_stays() -> None:
    def relu(opset: int) -> onnx.ModelProto:
        values = {"x": np.zeros(2, np.float32)}
        return build([helper.make_node("Relu", ["x"], ["y"])], values, ["y"], opset, ir_version=8)

    report = convert(relu(13), "onnxruntime-1.14").report
    assert report.notes == ("ai.onnx 13 stays, because onnxruntime-1.14 supports opsets up to 18",)
    assert "note: ai.onnx 13 stays" in str(report)
    assert not convert(relu(18), "onnxruntime-1.14").report.notes


INVALID: list[tuple[str, TargetLike, type[OpshiftError], str]] = [
    ("boolean", False, UsageError, "False is not a target"),
    ("boolean of numpy", np.bool_(True), UsageError, "np.True_ is not a target"),  # type: ignore[list-item]
    ("boolean in a mapping", {"": True}, UsageError, "True is not an opset version"),
    ("float of numpy", np.float64(17), UsageError, "is not a target"),  # type: ignore[list-item]
    ("file of a runtime", "dev.yaml", UsageError, "targets are opsets and names"),
    ("file of a runtime in a list", ["17", "dev.yaml"], UsageError, "targets are opsets and names"),
    ("future opset", "99", UnknownOpset, "no opset 99 of ai.onnx"),
    ("opset 0", {"": 0}, UnknownOpset, "no opset 0 of ai.onnx"),
    ("negative opset", "-1", UnknownOpset, "no opset -1 of ai.onnx"),
    ("undefined domain", "com.acme=1", UnknownDomain, "'com.acme'"),
    ("opset that is not a number", "ai.onnx=new", UsageError, "'ai.onnx=new' is not a target"),
    ("two opsets of a domain", ["17", "ai.onnx=18"], UsageError, "for ai.onnx: 17 and 18"),
    ("two releases", ["onnx-1.12", "onnx-1.13"], UsageError, "two opsets are requested"),
    (
        "more than a program supports",
        ["onnxruntime-1.14", "21"],
        UsageError,
        "21 and at most 18 for onnxruntime",
    ),
    ("older than all releases", "tensorrt-1.0", UsageError, "unknown version '1.0' of tensorrt"),
    ("unknown product", "pytorch-2.0", UsageError, "unknown release 'pytorch-2.0'"),
    ("package without its version", "onnxruntime-web-0.1", UsageError, "version '0.1' of onnxruntime-web"),
    ("execution provider", "CoreML", UsageError, "'CoreML' is an execution provider of onnxruntime"),
    ("package of a provider", "onnxruntime-nnapi", UsageError, "is an execution provider of onnxruntime"),
    ("provider with another name", "directml", UsageError, "is an execution provider of onnxruntime"),
    ("release of another product", "winml-1903", UsageError, "unknown release 'winml-1903'"),
    (
        "program without documented opsets",
        "ncnn-2025",
        UsageError,
        "ncnn does not document its newest opset",
    ),
    ("unknown release", "onnx-1.99", UsageError, "unknown version '1.99' of onnx"),
    ("empty list", [], UsageError, "no target is given"),
]


@pytest.mark.parametrize(
    ("target", "error", "reason"), [row[1:] for row in INVALID], ids=[row[0] for row in INVALID]
)
def test_rejects_invalid_targets(target: TargetLike, error: type[OpshiftError], reason: str) -> None:
    with pytest.raises(OpshiftError) as caught:
        read_target(target, default_registry())
    assert type(caught.value) is error
    assert reason in caught.value.reason
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("ir_version", "expected"), [(None, None), ("keep", "keep"), (8, 8), ("8", 8), (" 8 ", 8)], ids=repr
)
def test_reads_ir_versions(ir_version: int | str | None, expected: int | str | None) -> None:
    assert read_target(17, default_registry(), ir_version).requested_ir_version == expected


def test_target_is_optional_with_an_ir_version() -> None:
    parsed = read_target(None, default_registry(), 8)
    assert (parsed.opsets, parsed.ir_version, parsed.requested_ir_version) == ({}, None, 8)
    with pytest.raises(UsageError, match="no target is given"):
        read_target([], default_registry(), 8)


@pytest.mark.parametrize("name", default_registry().releases.onnx)
def test_accepts_every_onnx_release(name: str) -> None:
    assert read_target(f"onnx-{name}", default_registry()).opsets[ONNX] >= 1


@pytest.mark.parametrize("name", default_registry().releases.onnxruntime)
def test_accepts_every_onnxruntime_release(name: str) -> None:
    assert read_target(f"onnxruntime-{name}", default_registry()).opsets[ONNX] >= 7
