"""Facts from `onnx.defs` about ONNX's implementation of operators, such as missing shape inference."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from opshift.opsets import OPSETS
from opshift.registry.precompiled import load_precompiled
from opshift.registry.record import Record, from_file_content

ONNX_DEFS: Final = OPSETS / "onnx_defs.yaml"


class OnnxDefs(Record):
    """The content of `onnx_defs.yaml`, where comments describe the fields."""

    unlisted: tuple[str, ...]
    without_inference: tuple[str, ...]
    with_data_propagation: tuple[str, ...]
    function_opsets: dict[str, tuple[int, ...]]
    folders: dict[str, tuple[str, ...]]
    """Operators such as `ai.onnx.Softmax`, by the folder of their definition."""


@cache
def onnx_defs() -> OnnxDefs:
    """Return the content of `opsets/onnx_defs.yaml`."""
    return load_precompiled(ONNX_DEFS, (), lambda: _read_onnx_defs(ONNX_DEFS))


def _read_onnx_defs(path: Path) -> OnnxDefs:
    from opshift.registry.yaml_files import load_yaml

    return from_file_content(OnnxDefs, load_yaml(path), path)
