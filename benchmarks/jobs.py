"""Jobs to compare; each is called with an onnx.ModelProto and a target opset, and returns a model."""

from __future__ import annotations

from collections.abc import Callable

import onnx
from onnx import version_converter

from opshift import convert_version

Job = Callable[[onnx.ModelProto, int], object]


def convert_copy(model: onnx.ModelProto, target: int) -> object:
    return convert_version(model, target)


def in_place(model: onnx.ModelProto, target: int) -> object:
    return convert_version(model, target, inplace=True)


def theirs(model: onnx.ModelProto, target: int) -> object:
    return version_converter.convert_version(model, target)


def copied(model: onnx.ModelProto, target: int) -> object:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def serialized(model: onnx.ModelProto, target: int) -> object:
    return onnx.ModelProto.FromString(model.SerializeToString())


OURS, IN_PLACE, THEIRS, COPIED, SERIALIZED = (
    "opshift", "opshift, in place", "ONNX", "CopyFrom", "serialize and parse",
)  # fmt: skip
JOBS: dict[str, Job] = {
    OURS: convert_copy,
    IN_PLACE: in_place,
    THEIRS: theirs,
    COPIED: copied,
    SERIALIZED: serialized,
}
