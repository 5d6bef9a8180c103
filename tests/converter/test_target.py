"""Targets: what each way to name one means."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pytest

from opshift.converter.target import TargetLike, read_target
from opshift.model.errors import OpshiftError, UsageError
from opshift.registry.errors import UnknownDomain, UnknownOpset
from opshift.registry.registry import default_registry

ONNX = "ai.onnx"
ML = "ai.onnx.ml"
TRAINING = "ai.onnx.preview.training"

READ: list[tuple[str, TargetLike, Mapping[str, int], int | None]] = [
    ("a number", 17, {ONNX: 17}, None),
    ("the first opset", 1, {ONNX: 1}, None),
    (
        "the newest opset",
        default_registry().newest_opset(ONNX),
        {ONNX: default_registry().newest_opset(ONNX)},
        None,
    ),
    ("a number as text", "17", {ONNX: 17}, None),
    ("a number in blanks", " 17\n", {ONNX: 17}, None),
    ("a mapping", {"": 17, ML: 3}, {ONNX: 17, ML: 3}, None),
    ("a mapping that cannot be changed", MappingProxyType({"ai.onnx": 17}), {ONNX: 17}, None),
    ("both names of the default domain, in agreement", {"": 17, "ai.onnx": 17}, {ONNX: 17}, None),
    ("a domain", "ai.onnx.ml=3", {ML: 3}, None),
    ("a domain of another team", "ai.onnx.preview.training=1", {TRAINING: 1}, None),
    ("the default domain", "ai.onnx=17", {ONNX: 17}, None),
    ("the default domain without its name", "=17", {ONNX: 17}, None),
    ("a release", "onnx-1.12", {ONNX: 17, ML: 3, TRAINING: 1}, 8),
    ("a patch release", "onnx-1.12.1", {ONNX: 17, ML: 3, TRAINING: 1}, 8),
    ("a patch release with opsets of its own", "onnx-1.1.2", {ONNX: 6, ML: 1}, 3),
    ("a runtime", "onnxruntime-1.14", {ONNX: 18, ML: 3}, 8),
    ("a patch release of a runtime", "onnxruntime-1.14.1", {ONNX: 18, ML: 3}, 8),
    ("another program", "tensorrt-8.6", {ONNX: 17}, None),
    ("another program with an IR version", "windowsml-1809", {ONNX: 7, ML: 1}, 3),
    (
        "two that agree, of which the older counts",
        ["onnx-1.12", "onnxruntime-1.13"],
        {ONNX: 17, ML: 3, TRAINING: 1},
        8,
    ),
    ("texts", ["17", "ai.onnx.ml=3"], {ONNX: 17, ML: 3}, None),
    ("a release, and what it says anyway", ["onnx-1.12", "17"], {ONNX: 17, ML: 3, TRAINING: 1}, 8),
    ("an iterator", iter(("ai.onnx.ml=3", "17")), {ML: 3, ONNX: 17}, None),
]


@pytest.mark.parametrize(
    ("target", "opsets", "ir_version"), [row[1:] for row in READ], ids=[row[0] for row in READ]
)
def test_a_target_is_read_from(target: TargetLike, opsets: Mapping[str, int], ir_version: int | None) -> None:
    found = read_target(target, default_registry())
    assert found.opsets == opsets
    assert found.ir_version == ir_version


REFUSED: list[tuple[str, TargetLike, type[OpshiftError], str]] = [
    ("a truth value", False, UsageError, "False is not a target"),
    ("an opset of the future", "99", UnknownOpset, "no opset 99 of ai.onnx"),
    ("opset 0", {"": 0}, UnknownOpset, "no opset 0 of ai.onnx"),
    ("a negative opset", "-1", UnknownOpset, "no opset -1 of ai.onnx"),
    ("a domain that nobody defined", "com.acme=1", UnknownDomain, "'com.acme'"),
    ("an opset that is no number", "ai.onnx=new", UsageError, "'ai.onnx=new' is not a target"),
    ("two opsets of a domain", ["17", "ai.onnx=18"], UsageError, "ai.onnx has two targets, 17 and 18"),
    ("two releases", ["onnx-1.12", "onnx-1.13"], UsageError, "has two targets, 17 and 18"),
    ("a product that is not known", "pytorch-2.0", UsageError, "unknown release 'pytorch-2.0'"),
    ("a release that is not known", "onnx-1.99", UsageError, "unknown version '1.99' of onnx"),
    ("nothing", [], UsageError, "no target is given"),
]


@pytest.mark.parametrize(
    ("target", "error", "reason"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_no_target_is_read_from(target: TargetLike, error: type[OpshiftError], reason: str) -> None:
    with pytest.raises(OpshiftError) as caught:
        read_target(target, default_registry())
    assert type(caught.value) is error
    assert reason in caught.value.reason
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("ir_version", "read"), [(None, None), ("keep", "keep"), (8, 8), ("8", 8), (" 8 ", 8)], ids=repr
)
def test_an_ir_version_is_read_from(ir_version: int | str | None, read: int | str | None) -> None:
    assert read_target(17, default_registry(), ir_version).requested_ir_version == read


def test_with_an_ir_version_there_need_be_no_target() -> None:
    found = read_target(None, default_registry(), 8)
    assert (found.opsets, found.ir_version, found.requested_ir_version) == ({}, None, 8)
    with pytest.raises(UsageError, match="no target is given"):
        read_target([], default_registry(), 8)


@pytest.mark.parametrize("name", default_registry().releases.onnx)
def test_every_release_of_onnx_is_a_target(name: str) -> None:
    assert read_target(f"onnx-{name}", default_registry()).opsets[ONNX] >= 1


@pytest.mark.parametrize("name", default_registry().releases.onnxruntime)
def test_every_release_of_onnxruntime_is_a_target(name: str) -> None:
    assert read_target(f"onnxruntime-{name}", default_registry()).opsets[ONNX] >= 7
